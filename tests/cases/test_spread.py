"""Public cases of topology spread."""

from __future__ import annotations

from typing import Any

import pytest

from kube_pyscheduler.framework.status import Code
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod
from tests.builders import make_node, make_pod
from tests.clusters import Cluster

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REFUSED = "node(s) didn't match pod topology spread constraints"
CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
TERMINATING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def spread(key: str, **more: Any) -> dict[str, Any]:
    constraint = {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        **more,
    }
    return {"topologySpreadConstraints": [constraint]}


def web(name: str, node: str = "", **more: Any) -> Pod:
    return make_pod(name, node=node, labels={"app": "web", **more.pop("labels", {})}, **more)


def zoned(name: str, zone: str, **more: Any) -> Node:
    return make_node(name, labels={ZONE: zone}, **more)


def test_bc_28_without_the_topology_key_no_node_fits_and_none_can_be_made_to() -> None:
    cluster = Cluster([make_node("n1"), make_node("n2")])
    refusals = cluster.refusals(web("p", **spread("rack")))
    expected = Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (f"{REFUSED} (missing required label)",)
    assert [(refusals[name].code, refusals[name].reasons) for name in ("n1", "n2")] == [expected, expected]


def test_bc_28_soft_constraints_leave_nodes_without_the_key_feasible_and_without_score() -> None:
    cluster = Cluster([make_node("n1"), make_node("n2", labels={"rack": "r1"})])
    pod = web("p", **spread("rack", whenUnsatisfiable="ScheduleAnyway"))
    totals = cluster.totals(pod)
    assert totals["n2"] - totals["n1"] == 2 * 100


@pytest.mark.parametrize(("policy", "fits"), [({}, set()), ({"nodeTaintsPolicy": "Honor"}, {"n1", "n2"})])
def test_bc_29_a_cordoned_node_holds_the_minimum_unless_taints_are_honored(
    policy: dict[str, str], fits: set[str]
) -> None:
    nodes = [make_node("n1"), make_node("n2"), make_node("n3", unschedulable=True, taints=[CORDON])]
    cluster = Cluster(nodes, [web("a", "n1"), web("b", "n2")])
    assert cluster.fit(web("p", **spread(HOSTNAME, **policy))) == fits


@pytest.mark.parametrize(("domains", "fits"), [({"minDomains": 3}, set()), ({}, {"n-a", "n-b"})])
def test_bc_31_a_zone_of_tainted_nodes_is_no_domain(domains: dict[str, int], fits: set[str]) -> None:
    nodes = [zoned("n-a", "a"), zoned("n-b", "b"), zoned("n-c", "c", taints=[{"key": "k", "effect": "NoExecute"}])]
    pods = [web(f"{node}-{number}", node) for node in ("n-a", "n-b") for number in range(2)]
    pod = web("p", **spread(ZONE, nodeTaintsPolicy="Honor", **domains))
    assert Cluster(nodes, pods).fit(pod) == fits


def test_bc_32_terminating_pods_are_not_counted() -> None:
    nodes = [zoned("n-a", "a"), zoned("n-b", "b")]
    pods = [web("a1", "n-a", metadata=TERMINATING), web("a2", "n-a", metadata=TERMINATING), web("b1", "n-b")]
    assert Cluster(nodes, pods).fit(web("p", **spread(ZONE))) == {"n-a"}


def test_bc_32_match_label_keys_leave_out_pods_of_the_old_revision() -> None:
    nodes = [zoned("n-a", "a"), zoned("n-b", "b")]
    old = {"pod-template-hash": "old"}
    cluster = Cluster(nodes, [web("a1", "n-a", labels=old), web("a2", "n-a", labels=old)])
    new = {"pod-template-hash": "new"}
    assert cluster.fit(web("p", labels=new, **spread(ZONE))) == {"n-b"}
    assert cluster.fit(web("p", labels=new, **spread(ZONE, matchLabelKeys=["pod-template-hash"]))) == {"n-a", "n-b"}


def test_bc_34_a_node_that_moves_to_another_zone_takes_its_pods_along() -> None:
    cluster = Cluster([zoned("n1", "az1"), zoned("n2", "az1", unschedulable=True)], [web("a", "n1"), web("b", "n1")])
    assert cluster.fit(web("p1", **spread(ZONE))) == {"n1"}
    cluster.cache.set_node(zoned("n2", "az2"))
    for name in ("p1", "p2"):
        pod = web(name, **spread(ZONE))
        assert cluster.fit(pod) == {"n2"}
        cluster.cache.set_pod(web(name, "n2"))
    assert cluster.fit(web("p3", **spread(ZONE))) == {"n1", "n2"}
