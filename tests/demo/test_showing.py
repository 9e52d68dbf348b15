from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from kube_pyscheduler.demo.daemon_metrics import Numbers, parse
from kube_pyscheduler.demo.picture import Picture
from kube_pyscheduler.demo.scenario import Separation
from kube_pyscheduler.demo.screen import Screen
from kube_pyscheduler.demo.summary import Pointers, print_pointers, print_summary
from kube_pyscheduler.demo.verdict import Verdict, check_separation
from kube_pyscheduler.kit.clock import FakeClock
from kube_pyscheduler.objects.node import Node, NodeSpec, NodeStatus, Taint
from tests.builders import make_pod

METRICS = """
# HELP scheduler_schedule_attempts_total Number of attempts
# TYPE scheduler_schedule_attempts_total counter
scheduler_schedule_attempts_total{profile="kube-pyscheduler",result="scheduled"} 30.0
scheduler_schedule_attempts_total{profile="kube-pyscheduler",result="unschedulable"} 10.0
scheduler_scheduling_algorithm_duration_seconds_bucket{le="+Inf"} 40.0
scheduler_scheduling_algorithm_duration_seconds_count 40.0
scheduler_scheduling_algorithm_duration_seconds_sum 0.02
scheduler_pod_scheduling_sli_duration_seconds_count{attempts="1"} 30.0
scheduler_pod_scheduling_sli_duration_seconds_sum{attempts="1"} 0.6
"""


def a_node(name: str, zone: str, **spec: Any) -> Node:
    metadata = make_pod(name).metadata
    labels = {"topology.kubernetes.io/zone": zone}
    return Node(
        metadata=type(metadata)(name=name, labels=labels),
        spec=NodeSpec(**spec),
        status=NodeStatus(allocatable={"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "2"}),
    )


def a_picture() -> Picture:
    condition = {"type": "PodScheduled", "status": "False", "message": "0/2 nodes are available: 2 Insufficient cpu."}
    pods = [
        make_pod("redis-0", node="n1", labels={"app": "redis"}, requests={"cpu": "1", "memory": "2Gi"}),
        make_pod("redis-1", node="n2", labels={"app": "redis"}, requests={"cpu": "500m", "nvidia.com/gpu": "1"}),
        make_pod("done", node="n1", status={"phase": "Succeeded"}),
        make_pod("big", status={"conditions": [condition]}),
    ]
    nodes = [
        a_node("n2", "zone-b", taints=(Taint("dedicated", "infra", "NoSchedule"),)),
        a_node(
            "n1", "zone-a", unschedulable=True, taints=(Taint("node.kubernetes.io/unschedulable", "", "NoSchedule"),)
        ),
    ]
    return Picture(pods, nodes, [])


def console(*, terminal: bool) -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(file=out, force_terminal=terminal, width=120, highlight=False, color_system=None), out


def test_numbers_are_read_from_the_metrics_page() -> None:
    numbers = parse(METRICS)
    assert numbers == Numbers(decisions=40, deciding=0.02, scheduled=30, latency=0.02)
    assert numbers.decisions_a_second == 2000


def test_a_page_without_our_metrics() -> None:
    assert parse("up 1\n") == Numbers(0, 0.0, 0, 0.0)
    assert parse("").decisions_a_second == 0


def test_loads_are_ordered_and_leave_out_what_has_ended() -> None:
    first, second = a_picture().loads()
    assert (first.node.name, first.remarks, [p.name for p in first.pods]) == ("n1", "cordoned", ["redis-0"])
    assert (second.node.name, second.remarks) == ("n2", "dedicated=infra")
    assert second.used["nvidia.com/gpu"] == 1000


def test_without_a_terminal_every_piece_of_news_is_one_line() -> None:
    output, out = console(terminal=False)
    clock = FakeClock()
    with Screen(output, clock) as screen:
        assert not screen.moves
        screen.say("Starting")
        clock.advance(2.5)
        screen.show(a_picture())
        screen.show(a_picture())
    assert out.getvalue().splitlines() == [
        "  0.0s  Starting",
        "  2.5s    redis-0 → n1",
        "  2.5s    redis-1 → n2",
        "  2.5s    done → n1",
        "  2.5s    big waits: 0/2 nodes are available: 2 Insufficient cpu.",
    ]


def test_on_a_terminal_the_nodes_are_shown_with_their_pods() -> None:
    output, out = console(terminal=True)
    with Screen(output, FakeClock()) as screen:
        assert screen.moves
        screen.show(a_picture())
    shown = out.getvalue()
    assert "3 of 4 pods have a node" in shown
    assert "n1 cordoned" in shown
    assert "■ redis" in shown
    assert "███░░░░░░░░░" in shown


def test_the_summary_names_every_pod_and_node() -> None:
    output, out = console(terminal=False)
    picture = a_picture()
    separations = [check_separation(Separation("two of redis", {"app": "redis"}), picture.pods)]
    print_summary(output, picture, Verdict(separations, ["big should run"], ["a remark"]), parse(METRICS))
    text = out.getvalue()
    for words in (
        "big",
        "2 Insufficient cpu.",
        "redis-1 on n2",
        "apart",
        "1.00 / 4",
        "2.00 / 8",
        "dedicated=infra",
        "Note: a remark",
        "40 decisions in 20 ms of deciding: 2000 a second. 30 pods were bound, 20 ms after they appeared",
        "Not as expected: big should run",
    ):
        assert words in text


def test_a_violated_separation_is_shown() -> None:
    output, out = console(terminal=False)
    pods = [make_pod(name, node="n1", labels={"app": "redis"}) for name in ("a", "b")]
    separations = [check_separation(Separation("two of redis", {"app": "redis"}), pods)]
    print_summary(output, Picture(pods, [], []), Verdict(separations, [], []), parse(""))
    assert "together: a, b" in out.getvalue()


def test_pointers_to_look_further() -> None:
    pointers = Pointers("kubectl", "/tmp/x/kubeconfig", "http://127.0.0.1:1/metrics", "/tmp/x", "demo")
    output, out = console(terminal=False)
    print_pointers(output, pointers, stays=False)
    assert out.getvalue().splitlines() == [
        "To look around in it yourself: kube-pyscheduler demo --keep, and with the paths it prints",
        "  kubectl --kubeconfig FILE --namespace demo get pods -o wide",
        "  curl http://127.0.0.1:PORT/metrics",
    ]
    print_pointers(output, pointers, stays=True)
    assert "kubectl --kubeconfig /tmp/x/kubeconfig --namespace demo get pods -o wide" in out.getvalue()
    assert "curl http://127.0.0.1:1/metrics" in out.getvalue()
