from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kube_pyscheduler.framework.listers import Lister
from kube_pyscheduler.objects import kinds
from kube_pyscheduler.objects.kinds import Kind
from tests.builders import make_node, make_pod
from tests.clusters import Cluster
from tests.plugins.pod_world import only

ZONE = "topology.kubernetes.io/zone"
PROFILE = only("PodTopologySpread")


def constraint(**more: Any) -> dict[str, Any]:
    return {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        **more,
    }


def test_a_taint_that_comes_or_goes_is_noticed_although_no_domain_changes() -> None:
    taint = [{"key": "k", "effect": "NoSchedule"}]
    nodes = [make_node("n1", labels={ZONE: "a"}), make_node("n2", labels={ZONE: "b"})]
    cluster = Cluster(nodes, [make_pod("a", node="n1", labels={"app": "web"})], PROFILE)
    pod = make_pod("p", labels={"app": "web"}, topologySpreadConstraints=[constraint(nodeTaintsPolicy="Honor")])
    assert cluster.fit(pod) == {"n2"}
    cluster.cache.set_node(make_node("n2", labels={ZONE: "b"}, taints=taint))
    assert cluster.fit(pod) == {"n1", "n2"}
    cluster.cache.set_node(make_node("n2", labels={ZONE: "b"}))
    assert cluster.fit(pod) == {"n2"}


@pytest.mark.parametrize(
    ("when", "text"),
    [
        (
            "DoNotSchedule",
            'running PreFilter plugin "PodTopologySpread": get constraints from pod: obtaining pod\'s hard topology '
            'spread constraints: "Near" is not a valid label selector operator',
        ),
        (
            "ScheduleAnyway",
            'running PreScore plugin "PodTopologySpread": calculating preScoreState: obtaining pod\'s soft topology '
            'spread constraints: "Near" is not a valid label selector operator',
        ),
    ],
)
def test_a_selector_that_makes_no_sense_fails_the_attempt(when: str, text: str) -> None:
    selector = {"matchExpressions": [{"key": "a", "operator": "Near", "values": ["x"]}]}
    broken = constraint(whenUnsatisfiable=when, labelSelector=selector)
    cluster = Cluster([make_node("n1"), make_node("n2")], profile=PROFILE)
    decision = cluster.schedule(make_pod("p", topologySpreadConstraints=[broken]))
    assert decision.node is None
    assert decision.status.message == text


def controller(kind: str) -> dict[str, Any]:
    return {
        "kind": kind,
        "name": "own",
        "uid": "u",
        "apiVersion": "v1" if kind == "ReplicationController" else "apps/v1",
        "controller": True,
    }


SELECTOR = {"matchLabels": {"app": "web"}}


@pytest.mark.parametrize(
    ("kind", "lister", "selector"),
    [
        (kinds.REPLICATION_CONTROLLER, "replication_controllers", SELECTOR["matchLabels"]),
        (kinds.REPLICA_SET, "replica_sets", SELECTOR),
        (kinds.STATEFUL_SET, "stateful_sets", SELECTOR),
    ],
)
def test_default_constraints_count_the_pods_of_the_controller(
    kind: Kind[Any], lister: str, selector: dict[str, Any]
) -> None:
    default = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    args = {"defaultingType": "List", "defaultConstraints": [default]}
    nodes = [make_node("n1", labels={ZONE: "a"}), make_node("n2", labels={ZONE: "b"})]
    cluster = Cluster(nodes, [make_pod("a", node="n1", labels={"app": "web"})], only("PodTopologySpread", args=args))
    owned = {"ownerReferences": [controller(kind.name)]}
    pod = make_pod("p", labels={"app": "web"}, metadata=owned)
    assert cluster.fit(pod) == {"n1", "n2"}
    document = {"metadata": {"name": "own", "namespace": "default"}, "spec": {"selector": selector}}
    listers: dict[str, Lister[Any]] = vars(cluster.cache.listers)
    listers[lister].put(kind.decoder.decode(msgspec.json.encode(document)))
    assert cluster.fit(pod) == {"n2"}


# The same as v1.36, though one might think otherwise.

ZONES = [make_node("n1", labels={ZONE: "a"}), make_node("n2", labels={ZONE: "b"})]


def test_an_empty_selector_counts_none_of_the_pods_that_are_there() -> None:
    pods = [make_pod(f"p{number}", node="n1", labels={"app": "web"}) for number in range(3)]
    pod = make_pod("p", labels={"app": "web"}, topologySpreadConstraints=[constraint(labelSelector={})])
    assert Cluster(ZONES, pods, PROFILE).fit(pod) == {"n1", "n2"}


def test_nodes_that_lack_the_key_of_one_constraint_count_for_none() -> None:
    pods = [make_pod("a", node="n1", labels={"app": "web"})]
    rack = constraint(topologyKey="rack")
    pod = make_pod("p", labels={"app": "web"}, topologySpreadConstraints=[constraint(), rack])
    racked = make_node("n3", labels={ZONE: "a", "rack": "r"})
    assert Cluster([*ZONES, racked], pods, PROFILE).fit(pod) == {"n3"}


def test_soft_constraints_on_hosts_count_pods_whatever_the_inclusion_policies_say() -> None:
    pods = [make_pod("a", node="n1", labels={"app": "web"})]
    tainted = make_node("n1", taints=[{"key": "k", "effect": "NoSchedule"}])
    soft = constraint(
        topologyKey="kubernetes.io/hostname", whenUnsatisfiable="ScheduleAnyway", nodeTaintsPolicy="Honor"
    )
    pod = make_pod("p", labels={"app": "web"}, topologySpreadConstraints=[soft])
    assert Cluster([tainted, make_node("n2")], pods, PROFILE).totals(pod) == {"n1": 0, "n2": 100}
