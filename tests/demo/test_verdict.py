from __future__ import annotations

from typing import Any

import pytest

from kube_pyscheduler.demo.picture import Picture
from kube_pyscheduler.demo.scenario import Expectations, Separation
from kube_pyscheduler.demo.verdict import awaited, check_separation, judge, unsettled
from kube_pyscheduler.objects.storage import PersistentVolumeClaim
from tests.builders import make_pod

ALL_PLUGINS = frozenset({"InterPodAffinity", "VolumeBinding"})
MASTERS = Separation("two masters", {"role": "master"})
EXPECTED = Expectations("demo", waiting={"big": "Insufficient cpu"}, separation=[MASTERS])


def waiting(name: str, message: str) -> Any:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return make_pod(name, status={"conditions": [condition]})


def master(name: str, node: str) -> Any:
    return make_pod(name, node=node, labels={"role": "master"})


BIG = waiting("big", "0/3 nodes are available: 3 Insufficient cpu.")


@pytest.mark.parametrize(
    ("kind", "spec", "status", "lack"),
    [
        ("Deployment", {"replicas": 3}, {"readyReplicas": 3}, ""),
        ("Deployment", {"replicas": 3}, {"readyReplicas": 1}, "1 of 3 pods ready"),
        ("StatefulSet", {"replicas": 2}, {}, "0 of 2 pods ready"),
        ("DaemonSet", {}, {}, "0 of 1 pods ready"),
        ("DaemonSet", {}, {"desiredNumberScheduled": 4, "numberReady": 4}, ""),
        ("Job", {"completions": 4}, {"succeeded": 3, "ready": 1}, ""),
        ("Job", {"completions": 4}, {"succeeded": 3}, "3 of 4 pods ready"),
        ("Service", {}, {}, ""),
    ],
)
def test_what_a_workload_lacks(kind: str, spec: dict[str, Any], status: dict[str, Any], lack: str) -> None:
    body = {"kind": kind, "metadata": {"generation": 1}, "spec": spec, "status": {"observedGeneration": 1, **status}}
    assert awaited(body) == lack


def test_a_workload_that_no_controller_has_seen() -> None:
    body = {"kind": "Deployment", "metadata": {"generation": 2}, "spec": {"replicas": 0}, "status": {}}
    assert awaited(body) == "not seen by its controller yet"


@pytest.mark.parametrize(
    ("pod", "why"),
    [
        (make_pod("web", node="n"), ""),
        (make_pod("web", node="n", status={"phase": "Succeeded"}), ""),
        (make_pod("web", node="n", status={"phase": "Pending"}), "is Pending on n"),
        (make_pod("web"), "should run but waits: nobody has looked at it yet"),
        (waiting("web", "no room"), "should run but waits: no room"),
        (BIG, ""),
        (make_pod("big", node="n"), "should wait (Insufficient cpu) but is on n"),
        (make_pod("big"), 'should wait for "Insufficient cpu" but says: nothing yet'),
        (waiting("big", "no ports"), 'should wait for "Insufficient cpu" but says: no ports'),
    ],
)
def test_where_a_pod_should_be(pod: Any, why: str) -> None:
    assert unsettled(pod, EXPECTED) == why


def test_pods_of_a_set_on_one_node_are_found() -> None:
    pods = [master("a", "n1"), master("b", "n2"), master("c", "n1"), make_pod("other", node="n1")]
    assert check_separation(MASTERS, pods).together == [("a", "c", "n1")]


def test_a_set_may_hold_only_for_equal_labels() -> None:
    by_shard = Separation("master and replica", {"app": "redis"}, "shard")
    pods = [
        make_pod("m0", node="n1", labels={"app": "redis", "shard": "0"}),
        make_pod("r1", node="n1", labels={"app": "redis", "shard": "1"}),
        make_pod("r0", node="n2", labels={"app": "redis", "shard": "0"}),
        make_pod("m1", node="n1", labels={"app": "redis", "shard": "1"}),
    ]
    assert check_separation(by_shard, pods).together == [("r1", "m1", "n1")]


def test_all_is_well() -> None:
    picture = Picture([master("a", "n1"), master("b", "n2"), BIG], [], [])
    verdict = judge(picture, [], EXPECTED, ALL_PLUGINS)
    assert (verdict.problems, verdict.remarks) == ([], [])


def test_a_violated_separation_is_a_problem() -> None:
    picture = Picture([master("a", "n1"), master("b", "n1"), BIG], [], [])
    assert judge(picture, [], EXPECTED, ALL_PLUGINS).problems == ["two masters: a and b are both on n1"]


def test_without_the_plugin_it_is_only_said_that_nobody_enforces_it() -> None:
    picture = Picture([master("a", "n1"), master("b", "n1"), BIG], [], [])
    verdict = judge(picture, [], EXPECTED, frozenset())
    assert verdict.problems == []
    assert len(verdict.remarks) == 1
    assert "InterPodAffinity is not built yet" in verdict.remarks[0]


def test_nothing_to_compare_is_a_problem() -> None:
    picture = Picture([master("a", "n1"), BIG], [], [])
    assert judge(picture, [], EXPECTED, ALL_PLUGINS).problems == ["two masters: only 1 pods found, nothing to compare"]


def test_claims_without_a_volume() -> None:
    claim = PersistentVolumeClaim(metadata=make_pod("data-0").metadata)
    picture = Picture([master("a", "n1"), master("b", "n2"), BIG], [], [claim])
    assert judge(picture, [], EXPECTED, ALL_PLUGINS).problems == ["claims without a volume: data-0"]
    (remark,) = judge(picture, [], EXPECTED, frozenset({"InterPodAffinity"})).remarks
    assert "VolumeBinding is not built yet: 1 claims" in remark


def test_a_pod_that_should_wait_must_exist() -> None:
    picture = Picture([master("a", "n1"), master("b", "n2")], [], [])
    assert judge(picture, [], EXPECTED, ALL_PLUGINS).problems == ["big: there is no such pod"]
