"""Profiles in which every filter judges every node."""

from __future__ import annotations

from typing import Any

import pytest

from kube_pyscheduler.framework.status import Code, Status, combined, error, unresolvable, unschedulable
from kube_pyscheduler.objects.pod import Pod
from tests.builders import make_node, make_pod
from tests.clusters import Cluster

ALL: dict[str, Any] = {"alwaysCheckAllPredicates": True}
TAINT = [{"key": "k", "effect": "NoSchedule"}]
NODES = [
    make_node("tainted", taints=TAINT),
    make_node("small", allocatable={"cpu": "1"}),
    make_node("both", taints=TAINT, allocatable={"cpu": "1"}),
    make_node("cordoned", taints=TAINT, unschedulable=True, allocatable={"cpu": "1", "memory": "1Gi"}),
    make_node("good"),
]


def big(**spec: Any) -> Pod:
    return make_pod(requests={"cpu": "2", "memory": "2Gi"}, **spec)


def test_a_node_is_refused_for_all_reasons_at_once() -> None:
    refusals = Cluster(NODES, profile=ALL).refusals(big())
    assert {name: status.reasons for name, status in refusals.items()} == {
        "tainted": ("node(s) had untolerated taint(s)",),
        "small": ("Insufficient cpu",),
        "both": ("node(s) had untolerated taint(s)", "Insufficient cpu"),
        "cordoned": (
            "node(s) were unschedulable",
            "node(s) had untolerated taint(s)",
            "Insufficient cpu",
            "Insufficient memory",
        ),
    }
    assert refusals["both"].plugin == "TaintToleration"


def test_the_message_counts_every_reason() -> None:
    for check_all in (False, True):
        cluster = Cluster(NODES[:3], profile={"alwaysCheckAllPredicates": check_all})
        text = cluster.schedule(big()).status.message
        assert text.startswith("0/3 nodes are available: ")
        counted = text.split(": ", 1)[1].split(". ", 1)[0]
        cpu = "2 Insufficient cpu" if check_all else "1 Insufficient cpu"
        assert counted == f"{cpu}, 2 node(s) had untolerated taint(s)"


def test_where_a_pod_fits_makes_no_difference() -> None:
    for profile in ({}, ALL):
        cluster = Cluster(NODES, profile=profile)
        assert cluster.fit(big()) == {"good"}
        assert cluster.schedule(big()).node == "good"


def test_pods_nominated_to_a_node_count() -> None:
    cluster = Cluster(NODES, profile=ALL)
    cluster.nominate(make_pod("first", requests={"cpu": "3"}, priority=9), "good")
    assert cluster.refusals(big())["good"].reasons == ("Insufficient cpu",)


@pytest.mark.parametrize(
    ("statuses", "code", "plugin"),
    [
        ([unschedulable("a").by("A"), unresolvable("b").by("B"), unresolvable("c").by("C")], 3, "B"),
        ([unresolvable("a").by("A"), error("b").by("B"), unschedulable("c").by("C")], 1, "B"),
        ([unschedulable("a").by("A"), unschedulable("b").by("B"), unschedulable("c").by("C")], 2, "A"),
    ],
)
def test_the_gravest_answer_gives_the_code(statuses: list[Status], code: int, plugin: str) -> None:
    assert combined(statuses) == Status(Code(code), ("a", "b", "c"), plugin)
