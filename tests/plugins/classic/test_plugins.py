"""What each classic policy does, in small clusters, and both answers of their hints."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from kube_pyscheduler.config.errors import ConfigError
from kube_pyscheduler.config.load import load_profile
from kube_pyscheduler.framework.cluster_event import Action, QueueingHint, Resource
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.framework.profile import build_profile
from kube_pyscheduler.framework.status import Code
from kube_pyscheduler.objects import kinds
from kube_pyscheduler.objects.node import Node, NodeCondition
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.plugins import IN_TREE
from tests.builders import make_node, make_pod
from tests.clusters import Cluster
from tests.plugins.classic.reference import AVOID
from tests.plugins.classic.world import decoded, profile_of

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
WEB = {"app": "web"}


def reporting(name: str, *, unschedulable: bool = False, **conditions: str) -> Node:
    node = make_node(name, unschedulable=unschedulable)
    reported = tuple(NodeCondition(kind, status) for kind, status in conditions.items())
    return msgspec.structs.replace(node, status=msgspec.structs.replace(node.status, conditions=reported))


def with_service(cluster: Cluster, selector: dict[str, str], name: str = "web") -> Cluster:
    metadata = {"name": name, "namespace": "default"}
    service = decoded(kinds.SERVICE, {"metadata": metadata, "spec": {"selector": selector}})
    cluster.cache.listers.services.put(service)
    return cluster


def web(name: str, node: str = "", **more: Any) -> Pod:
    return make_pod(name, node=node, labels=WEB, **more)


# Conditions


def test_every_condition_that_is_not_as_it_should_be_is_a_reason_of_its_own() -> None:
    nodes = [
        reporting("good", Ready="True", NetworkUnavailable="False", OutOfDisk="False"),
        reporting("silent"),
        reporting("unknown", Ready="Unknown"),
        reporting("bad", unschedulable=True, Ready="False", NetworkUnavailable="True", OutOfDisk="Unknown"),
    ]
    cluster = Cluster(nodes, profile=profile_of("CheckNodeCondition"))
    tolerant = make_pod("p", tolerations=[{"operator": "Exists"}])
    assert cluster.fit(tolerant) == {"good", "silent"}
    refusals = cluster.refusals(tolerant)
    assert refusals["unknown"].reasons == ("node(s) were not ready",)
    assert refusals["bad"].reasons == (
        "node(s) were not ready",
        "node(s) were out of disk space",
        "node(s) had unavailable network",
        "node(s) were unschedulable",
    )
    assert {status.code for status in refusals.values()} == {Code.UNSCHEDULABLE_AND_UNRESOLVABLE}


def test_memory_pressure_keeps_only_pods_away_that_ask_for_nothing() -> None:
    profile = profile_of("CheckNodeMemoryPressure", "CheckNodeDiskPressure", "CheckNodePIDPressure")
    nodes = [
        reporting("memory", MemoryPressure="True"),
        reporting("disk", DiskPressure="True"),
        reporting("pid", PIDPressure="True"),
        reporting("unknown", MemoryPressure="Unknown", DiskPressure="Unknown", PIDPressure="Unknown"),
    ]
    cluster = Cluster(nodes, profile=profile)
    assert cluster.fit(make_pod("p", requests={})) == {"unknown"}
    assert cluster.fit(make_pod("p", requests={"cpu": "0"})) == {"unknown"}
    assert cluster.fit(make_pod("p", requests={"cpu": "1m"})) == {"memory", "unknown"}
    limited = [{"name": "c", "resources": {"limits": {"memory": "1Mi"}}}]
    assert cluster.fit(make_pod("p", containers=limited)) == {"memory", "unknown"}
    assert {name: status.message for name, status in cluster.refusals(make_pod("p", requests={})).items()} == {
        "memory": "node(s) had memory pressure",
        "disk": "node(s) had disk pressure",
        "pid": "node(s) had pid pressure",
    }


# Labels


def test_labels_are_asked_for_by_key_alone() -> None:
    args = {"presentLabels": ["region"], "absentLabels": ["retiring"]}
    nodes = [
        make_node("good", labels={"region": ""}),
        make_node("bare"),
        make_node("leaving", labels={"region": "a", "retiring": "soon"}),
    ]
    cluster = Cluster(nodes, profile=profile_of("NodeLabel", args={"NodeLabel": args}))
    assert cluster.fit(make_pod()) == {"good"}
    status = cluster.refusals(make_pod())["bare"]
    assert (status.code, status.message) == (
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
        "node(s) didn't have the requested labels",
    )


def test_preferred_labels_score_their_share() -> None:
    args = {"presentLabelsPreference": ["a", "b"], "absentLabelsPreference": ["c"]}
    nodes = [make_node("all", labels={"a": "", "b": ""}), make_node("one"), make_node("none", labels={"c": ""})]
    cluster = Cluster(nodes, profile=profile_of("NodeLabel", args={"NodeLabel": args}))
    assert cluster.totals(make_pod()) == {"all": 100, "one": 33, "none": 0}


def test_a_label_cannot_be_wanted_and_unwanted() -> None:
    for present, absent in (("presentLabels", "absentLabels"), ("presentLabelsPreference", "absentLabelsPreference")):
        profile = profile_of("NodeLabel", args={"NodeLabel": {present: ["a", "b"], absent: ["b"]}})
        with pytest.raises(ConfigError, match="labels are wanted both present and absent: b"):
            build_profile(load_profile(profile), IN_TREE)


@pytest.mark.parametrize("plugin", ["NodeLabel", "ServiceAffinity", "RequestedToCapacityRatio"])
def test_arguments_that_are_not_known_are_refused(plugin: str) -> None:
    profile = profile_of(plugin, args={plugin: {"lables": ["a"]}})
    with pytest.raises(ConfigError, match=f'initializing plugin "{plugin}": args.lables: unknown field'):
        build_profile(load_profile(profile), IN_TREE)


# Scores of nodes


def test_nodes_name_controllers_whose_pods_they_would_rather_not_have() -> None:
    def avoiding(name: str, kind: str, uid: str) -> Node:
        entry = {"podSignature": {"podController": {"kind": kind, "uid": uid, "apiVersion": "v1", "controller": True}}}
        annotation = json.dumps({"preferAvoidPods": [{**entry, "reason": "some", "message": "some"}]})
        return make_node(name, metadata={"annotations": {AVOID: annotation}})

    def owned(kind: str) -> Pod:
        return make_pod("p", metadata={"ownerReferences": [{"kind": kind, "uid": "u", "controller": True}]})

    nodes = [avoiding("a", "ReplicaSet", "u"), avoiding("b", "ReplicaSet", "other"), avoiding("c", "Job", "u")]
    cluster = Cluster(nodes, profile=profile_of("NodePreferAvoidPods"))
    assert cluster.totals(owned("ReplicaSet")) == {"a": 0, "b": 100, "c": 100}
    assert cluster.totals(owned("Job")) == {"a": 100, "b": 100, "c": 100}
    assert cluster.totals(make_pod()) == {"a": 100, "b": 100, "c": 100}
    cluster.cache.set_node(avoiding("b", "ReplicaSet", "u"))
    assert cluster.totals(owned("ReplicaSet")) == {"a": 0, "b": 0, "c": 100}


def test_an_even_use_of_cpu_and_memory_scores_most() -> None:
    nodes = [
        make_node("even", allocatable={"cpu": "4", "memory": "8Gi"}),
        make_node("odd", allocatable={"cpu": "4", "memory": "64Gi"}),
        make_node("full", allocatable={"cpu": "2", "memory": "8Gi"}),
    ]
    pod = make_pod(requests={"cpu": "2", "memory": "4Gi"})
    cluster = Cluster(nodes, profile=profile_of("BalancedResourceAllocation"))
    assert cluster.totals(pod) == {"even": 100, "odd": 56, "full": 0}


def test_strategies_can_be_weighed_against_each_other() -> None:
    profile = profile_of("NodeResourcesMostAllocated", "RequestedToCapacityRatio")
    nodes = [make_node("free"), make_node("used")]
    pods = [make_pod("q", node="used", requests={"cpu": "1", "memory": "2Gi"})]
    pod = make_pod(requests={"cpu": "1", "memory": "2Gi"})
    assert Cluster(nodes, pods, profile).totals(pod) == {"free": 25 + 75, "used": 50 + 50}
    peak = {"shape": [{"utilization": 0, "score": 0}, {"utilization": 50, "score": 10}, {"utilization": 100}]}
    shaped = profile_of("RequestedToCapacityRatio", args={"RequestedToCapacityRatio": peak})
    assert Cluster(nodes, pods, shaped).totals(pod) == {"free": 50, "used": 100}
    one = {"resources": [{"name": "memory", "weight": 3}]}
    memory = profile_of("NodeResourcesMostAllocated", args={"NodeResourcesMostAllocated": one})
    assert Cluster(nodes, pods, memory).totals(make_pod(requests={"cpu": "4", "memory": "2Gi"})) == {
        "free": 25,
        "used": 50,
    }


def test_a_shape_must_make_sense() -> None:
    args = {"shape": [{"utilization": 50, "score": 11}, {"utilization": 50, "score": 0}]}
    profile = profile_of("RequestedToCapacityRatio", args={"RequestedToCapacityRatio": args})
    with pytest.raises(ConfigError, match="must be sorted in increasing order") as caught:
        build_profile(load_profile(profile), IN_TREE)
    assert "not in valid range [0, 10]" in str(caught.value)


def test_nodes_as_large_as_the_limits_score_one() -> None:
    nodes = [
        make_node("large", allocatable={"cpu": "8", "memory": "16Gi"}),
        make_node("fast", allocatable={"cpu": "8", "memory": "1Gi"}),
        make_node("small", allocatable={"cpu": "1", "memory": "1Gi"}),
    ]
    cluster = Cluster(nodes, profile=profile_of("NodeResourceLimits"))
    limits = [{"name": "c", "resources": {"limits": {"cpu": "2", "memory": "2Gi"}}}] * 2
    assert cluster.totals(make_pod(containers=limits)) == {"large": 1, "fast": 1, "small": 0}
    assert cluster.totals(make_pod()) == {"large": 0, "fast": 0, "small": 0}


# Spreading


def test_the_zone_counts_for_two_thirds() -> None:
    nodes = [
        make_node("a1", labels={ZONE: "a"}),
        make_node("a2", labels={ZONE: "a"}),
        make_node("b1", labels={ZONE: "b"}),
        make_node("nowhere"),
    ]
    pods = [web("1", "a1"), web("2", "a1"), web("3", "a2"), web("4", "b1"), web("5", "nowhere")]
    cluster = with_service(Cluster(nodes, pods, profile_of("SelectorSpread")), WEB)
    # Node: 0, 50, 50, 50. Zone: a has 3 of at most 3, b has 1.
    assert cluster.totals(web("p")) == {"a1": 0, "a2": 16, "b1": 61, "nowhere": 50}


def test_zones_of_one_name_in_two_regions_are_two_zones() -> None:
    nodes = [make_node("x", labels={REGION: "r1", ZONE: "a"}), make_node("y", labels={REGION: "r2", ZONE: "a"})]
    cluster = with_service(Cluster(nodes, [web("1", "x")], profile_of("SelectorSpread")), WEB)
    assert cluster.totals(web("p")) == {"x": 0, "y": 100}


def test_pods_that_go_and_pods_of_other_kinds_do_not_count() -> None:
    going = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    pods = [web("1", "n1", metadata=going), make_pod("2", node="n1"), web("3", "n1", namespace="other")]
    nodes = [make_node("n1"), make_node("n2")]
    cluster = with_service(Cluster(nodes, pods, profile_of("SelectorSpread")), WEB)
    assert cluster.totals(web("p")) == {"n1": 100, "n2": 100}
    cluster.cache.set_pod(web("4", "n1"))
    assert cluster.totals(web("p")) == {"n1": 0, "n2": 100}


def test_only_selector_spread_looks_at_controllers() -> None:
    nodes = [make_node("n1"), make_node("n2")]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "controller": True}
    metadata = {"name": "web-1", "namespace": "default"}
    document = {"metadata": metadata, "spec": {"selector": {"matchLabels": WEB}}}
    pod = web("p", metadata={"ownerReferences": [owner]})
    for plugin, expected in (("SelectorSpread", 0), ("ServiceSpreading", 100)):
        cluster = Cluster(nodes, [web("1", "n1")], profile_of(plugin))
        cluster.cache.listers.replica_sets.put(decoded(kinds.REPLICA_SET, document))
        assert cluster.totals(pod) == {"n1": expected, "n2": 100}


def test_pods_with_constraints_of_their_own_are_left_alone() -> None:
    constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}
    cluster = Cluster([make_node("n1"), make_node("n2")], [web("1", "n1")], profile_of("SelectorSpread"))
    with_service(cluster, WEB)
    assert cluster.totals(web("p", topologySpreadConstraints=[constraint])) == {"n1": 0, "n2": 0}


# Services


AFFINITY = profile_of("ServiceAffinity", args={"ServiceAffinity": {"affinityLabels": ["region"]}})
REGIONS = [make_node("a1", labels={"region": "a"}), make_node("a2", labels={"region": "a"}), make_node("b1")]


def test_the_pods_of_a_service_follow_the_first() -> None:
    nodes = [*REGIONS, make_node("c1", labels={"region": "c"})]
    cluster = with_service(Cluster(nodes, profile=AFFINITY), WEB)
    assert cluster.fit(web("p")) == {"a1", "a2", "b1", "c1"}
    cluster.cache.set_pod(web("first", "a1"))
    assert cluster.fit(web("p")) == {"a1", "a2"}
    status = cluster.refusals(web("p"))["b1"]
    assert (status.code, status.message) == (Code.UNSCHEDULABLE, "node(s) didn't match service affinity")
    assert cluster.fit(make_pod("other")) == {"a1", "a2", "b1", "c1"}
    assert cluster.fit(web("p", nodeSelector={"region": "c"})) == {"c1"}


def test_without_a_service_nobody_is_followed() -> None:
    cluster = Cluster(REGIONS, [web("first", "a1")], AFFINITY)
    assert cluster.fit(web("p")) == {"a1", "a2", "b1"}
    with_service(cluster, {})
    assert cluster.fit(web("p")) == {"a1", "a2", "b1"}, "a service without a selector selects nothing"


def test_labels_that_the_first_node_lacks_ask_for_nothing() -> None:
    cluster = with_service(Cluster(REGIONS, [web("first", "b1")], AFFINITY), WEB)
    assert cluster.fit(web("p")) == {"a1", "a2", "b1"}


def test_the_pods_of_a_service_are_spread_over_the_values_of_a_label() -> None:
    args = {"ServiceAffinity": {"antiAffinityLabelsPreference": ["rack"]}}
    nodes = [
        make_node("a1", labels={"rack": "a"}),
        make_node("a2", labels={"rack": "a"}),
        make_node("b1", labels={"rack": "b"}),
        make_node("bare"),
    ]
    pods = [web("1", "a1"), web("2", "a1"), web("3", "b1"), web("4", "bare")]
    cluster = with_service(Cluster(nodes, pods, profile_of("ServiceAffinity", args=args)), WEB)
    assert cluster.totals(web("p")) == {"a1": 50, "a2": 50, "b1": 75, "bare": 0}
    assert cluster.totals(make_pod("other")) == {"a1": 100, "a2": 100, "b1": 100, "bare": 0}


# Hints


HINTED = {"NodeLabel": {"presentLabels": ["rack"], "absentLabels": ["retiring"]}}


@pytest.mark.parametrize(
    ("plugin", "action", "old", "new", "queues"),
    [
        ("CheckNodeCondition", Action.ADD, None, reporting("n", Ready="True"), True),
        ("CheckNodeCondition", Action.ADD, None, reporting("n", Ready="False"), False),
        (
            "CheckNodeCondition",
            Action.UPDATE_NODE_CONDITION,
            reporting("n", Ready="Unknown"),
            reporting("n", Ready="True"),
            True,
        ),
        (
            "CheckNodeCondition",
            Action.UPDATE_NODE_CONDITION,
            reporting("n", DiskPressure="True"),
            reporting("n", DiskPressure="False"),
            False,
        ),
        ("CheckNodeCondition", Action.UPDATE_NODE_TAINT, reporting("n", unschedulable=True), reporting("n"), True),
        ("CheckNodeDiskPressure", Action.ADD, None, reporting("n"), True),
        ("CheckNodeDiskPressure", Action.ADD, None, reporting("n", DiskPressure="True"), False),
        (
            "CheckNodePIDPressure",
            Action.UPDATE_NODE_CONDITION,
            reporting("n", PIDPressure="True"),
            reporting("n", PIDPressure="False"),
            True,
        ),
        (
            "CheckNodeMemoryPressure",
            Action.UPDATE_NODE_CONDITION,
            reporting("n", PIDPressure="True"),
            reporting("n", PIDPressure="False"),
            False,
        ),
        ("NodeLabel", Action.ADD, None, make_node("n", labels={"rack": "a"}), True),
        ("NodeLabel", Action.ADD, None, make_node("n"), False),
        ("NodeLabel", Action.UPDATE_NODE_LABEL, make_node("n"), make_node("n", labels={"rack": "a"}), True),
        (
            "NodeLabel",
            Action.UPDATE_NODE_LABEL,
            make_node("n", labels={"rack": "a"}),
            make_node("n", labels={"rack": "b"}),
            False,
        ),
    ],
)
def test_hints(plugin: str, action: Action, old: Node | None, new: Node, queues: bool) -> None:
    made = IN_TREE[plugin](HINTED.get(plugin))
    (registration,) = [r for r in made.events() if r.event.resource == Resource.NODE and r.event.action & action]
    assert registration.hint is not None
    answer = registration.hint(make_pod("waiting"), old, new, Listers())
    assert answer is (QueueingHint.QUEUE if queues else QueueingHint.SKIP)
