"""Policy files at work: whole profiles, from the file to the node."""

from __future__ import annotations

import json
import random
from typing import Any

from kube_pyscheduler.config.load import load_config
from kube_pyscheduler.config.policy_names import PREDICATES, PRIORITIES
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.framework.profile import Profile, build_profile
from kube_pyscheduler.framework.status import Code
from kube_pyscheduler.plugins import IN_TREE
from tests.builders import make_node, make_pod
from tests.clusters import Cluster
from tests.plugins.classic.reference import AVOID
from tests.plugins.classic.world import ClassicWorld


def profile(**policy: Any) -> Profile:
    text = json.dumps({"kind": "Policy", "apiVersion": "v1", **policy})
    return build_profile(load_config(text).profiles[0], IN_TREE)


def everything() -> dict[str, Any]:
    """A Policy with every name there is."""
    predicates: list[dict[str, Any]] = [
        {"name": "Absent", "argument": {"labelsPresence": {"labels": ["retiring"], "presence": False}}},
        {"name": "Affine", "argument": {"serviceAffinity": {"labels": ["rack"]}}},
    ]
    priorities: list[dict[str, Any]] = [
        {"name": "Preferred", "weight": 3, "argument": {"labelPreference": {"label": "room", "presence": True}}},
        {"name": "Spread", "weight": 3, "argument": {"serviceAntiAffinity": {"label": "rack"}}},
    ]
    predicates += [{"name": name} for name in PREDICATES if not name.startswith(("CheckNodeLabel", "CheckService"))]
    priorities += [{"name": name, "weight": 2} for name in PRIORITIES]
    return {"predicates": predicates, "priorities": priorities, "alwaysCheckAllPredicates": True}


def test_all_policies_together_decide_as_in_a_cluster_that_was_built_anew() -> None:
    world = ClassicWorld(random.Random(5), {})
    world.cluster.profile = profile(**everything())
    placed = refused = 0
    for step in range(900):
        world.step()
        if step % 9:
            continue
        pod = world.new_pod()
        fresh = world.rebuilt({})
        fresh.profile = profile(**everything())
        mine, theirs = world.cluster.schedule(pod), fresh.schedule(pod)
        assert (mine.node, mine.status.message) == (theirs.node, theirs.status.message)
        assert mine.status.code in (Code.SUCCESS, Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
        if mine.node is None:
            refused += 1
        else:
            placed += 1
            assert world.cluster.totals(pod) == fresh.totals(pod)
    assert placed > 10
    assert refused > 10


def test_what_a_node_would_rather_not_have_outweighs_everything_by_default() -> None:
    entry = {"podSignature": {"podController": {"kind": "ReplicaSet", "uid": "u"}}}
    annotations = {AVOID: json.dumps({"preferAvoidPods": [entry]})}
    nodes = [
        make_node("small", allocatable={"cpu": "1", "memory": "1Gi"}),
        make_node("avoiding", allocatable={"cpu": "64", "memory": "256Gi"}, metadata={"annotations": annotations}),
    ]
    cluster = Cluster(nodes)
    cluster.profile = profile()
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}
    assert cluster.schedule(make_pod("p", metadata={"ownerReferences": [owner]})).node == "small"
    assert cluster.schedule(make_pod("p")).node == "avoiding"


def test_predicates_that_are_not_named_are_not_asked() -> None:
    nodes = [make_node("full", allocatable={"cpu": "0"}), make_node("other", labels={"disk": "ssd"})]
    pod = make_pod(requests={"cpu": "2"}, nodeSelector={"disk": "ssd"})
    for names, fits in (
        ((), {"full", "other"}),
        (("MatchNodeSelector",), {"other"}),
        (("HostName",), {"full", "other"}),
    ):
        cluster = Cluster(nodes)
        cluster.profile = profile(predicates=[{"name": name} for name in names], priorities=[])
        assert cluster.fit(pod) == fits


def test_cordoned_and_tainted_nodes_are_out_in_any_case() -> None:
    taints = [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
    cluster = Cluster(
        [make_node("cordoned", unschedulable=True), make_node("unready", taints=taints), make_node("good")]
    )
    cluster.profile = profile(predicates=[], priorities=[])
    assert cluster.fit(make_pod()) == {"good"}


def test_gated_pods_wait_whatever_the_policy_says() -> None:
    made = profile(predicates=[], priorities=[])
    gated = make_pod("p", schedulingGates=[{"name": "example.com/hold"}])
    answers = [plugin.pre_enqueue(gated, Listers()) for plugin in made.pre_enqueue]
    assert [answer.code for answer in answers if answer is not None] == [Code.UNSCHEDULABLE_AND_UNRESOLVABLE]
