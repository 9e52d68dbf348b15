"""What v1.36 does against its documentation, and we with it, as far as no other test pins it.

See docs/differences.md.
"""

from __future__ import annotations

from typing import Any

import pytest

from kube_pyscheduler.framework.status import Code
from tests.builders import make_node, make_pod
from tests.clusters import Cluster
from tests.plugins.pod_world import only
from tests.storage import claim_volumes

ZONE = "topology.kubernetes.io/zone"


def affinity(kind: str, operator: str, value: str) -> dict[str, Any]:
    expressions = {"matchExpressions": [{"key": "gen", "operator": operator, "values": [value]}]}
    if kind == "preferred":
        preferred = [{"weight": 1, "preference": expressions}]
        return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    required = {"nodeSelectorTerms": [expressions]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


@pytest.mark.parametrize("operator", ["Gt", "Lt"])
def test_a_negative_number_in_a_preferred_term_fails_the_attempt(operator: str) -> None:
    cluster = Cluster([make_node("a", labels={"gen": "5"}), make_node("b")])
    decision = cluster.schedule(make_pod(affinity=affinity("preferred", operator, "-1")))
    assert decision.status.code == Code.ERROR
    assert decision.status.message.startswith('running PreScore plugin "NodeAffinity": ')
    assert 'Invalid value: "-1"' in decision.status.message


def test_a_negative_number_in_a_required_term_matches_no_node() -> None:
    cluster = Cluster([make_node("a", labels={"gen": "5"}), make_node("b")])
    assert cluster.fit(make_pod(affinity=affinity("required", "Gt", "-1"))) == set()
    assert cluster.fit(make_pod(affinity=affinity("required", "Gt", "0"))) == {"a"}


def test_pod_level_requests_are_not_scored() -> None:
    pod_level = make_pod(containers=[{"name": "c"}], resources={"requests": {"cpu": "3", "memory": "6Gi"}})
    cluster = Cluster([make_node("a"), make_node("b")], profile=only("NodeResourcesFit"))
    assert cluster.totals(pod_level) == cluster.totals(make_pod(requests={}))
    assert cluster.totals(pod_level) != cluster.totals(make_pod(requests={"cpu": "3", "memory": "6Gi"}))


def test_a_resource_whose_ratio_scores_nothing_is_left_out_of_the_mean() -> None:
    ratio = {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]}
    strategy = {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": ratio}
    nodes = [make_node("huge", allocatable={"memory": "8000Gi"}), make_node("usual")]
    cluster = Cluster(nodes, profile=only("NodeResourcesFit", args={"scoringStrategy": strategy}))
    # huge: CPU is half full, memory almost empty; the mean of 50 and 0 would be 25.
    assert cluster.totals(make_pod(requests={"cpu": "2", "memory": "4Gi"})) == {"huge": 50, "usual": 50}


def test_a_node_that_takes_no_pods_at_all_counts_as_one_that_is_full() -> None:
    cluster = Cluster([make_node("n", allocatable={"pods": "0"})])
    status = cluster.refusals(make_pod())["n"]
    assert (status.code, status.reasons) == (Code.UNSCHEDULABLE, ("Too many pods",))


def test_only_the_image_names_of_pods_are_completed() -> None:
    def node(name: str, image: str) -> Any:
        return make_node(name, images=[{"names": [image], "sizeBytes": 900_000_000}])

    cluster = Cluster([node("bare", "app"), node("tagged", "app:latest")], profile=only("ImageLocality"))
    for image in ("app", "app:latest"):
        totals = cluster.totals(make_pod(containers=[{"name": "c", "image": image}]))
        assert totals["bare"] == 0
        assert totals["tagged"] > 0


def test_a_terminating_pod_is_not_counted_for_spread_and_yet_gone_as_a_victim() -> None:
    """Taking it away makes room in the skew although it took none."""
    labels = {"app": "web"}
    nodes = [make_node("a", labels={ZONE: "a"}), make_node("b", labels={ZONE: "b"}, unschedulable=True)]
    pods = [make_pod(f"w{number}", node="a", labels=labels, priority=100) for number in range(2)]
    going = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    pods.append(make_pod("going", node="a", labels=labels, metadata=going))
    constraint = {
        "maxSkew": 2,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": labels},
    }
    pod = make_pod("p", labels=labels, priority=50, topologySpreadConstraints=[constraint])
    decision = Cluster(nodes, pods).schedule(pod)
    assert decision.node is None
    assert decision.post_filter is not None
    assert decision.post_filter.nominated == "a"
    assert [victim.name for victim in decision.post_filter.victims] == ["going"]


def test_where_an_early_pre_filter_refuses_for_good_nobody_looks_for_victims() -> None:
    """DynamicResources has no state then, and its PostFilter fails before DefaultPreemption is asked."""
    cluster = Cluster([make_node("a"), make_node("b")])
    decision = cluster.schedule(make_pod(volumes=claim_volumes("missing"), priority=100))
    text = '0/2 nodes are available: persistentvolumeclaim "missing" not found. not found'
    assert decision.status.message == text
