"""The classic policies agree with their plain twins, whatever happens to the cluster."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.framework.interfaces import NodeFilter
from kube_pyscheduler.framework.row_changes import NO_CHANGES, StatedChanges
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod
from tests.clusters import Cluster
from tests.plugins.classic import reference
from tests.plugins.classic.world import ClassicWorld, profile_of

STEPS = 4000
ASK_EVERY = 6

NODE_POLICIES = profile_of(
    "CheckNodeCondition",
    "CheckNodeMemoryPressure",
    "CheckNodeDiskPressure",
    "CheckNodePIDPressure",
    "NodeLabel",
    "NodePreferAvoidPods",
    "EqualPriority",
    "BalancedResourceAllocation",
    "NodeResourceLimits",
    args={
        "NodeLabel": {
            "presentLabels": ["kubernetes.io/hostname"],
            "absentLabels": ["retiring"],
            "presentLabelsPreference": ["rack", "room", "rack"],
            "absentLabelsPreference": ["topology.kubernetes.io/zone"],
        }
    },
)
GROUP_POLICIES = profile_of(
    "SelectorSpread",
    "ServiceSpreading",
    "ServiceAffinity",
    args={"ServiceAffinity": {"affinityLabels": ["rack", "room"], "antiAffinityLabelsPreference": ["room", "rack"]}},
)


def scores_of(cluster: Cluster, pod: Pod, feasible: list[Node]) -> dict[str, dict[str, int]]:
    """By plugin: score of each feasible node."""
    cycle, _judged = cluster.engine.cycle(cluster.profile, PodInfo(pod))
    cycle.pre_filter()
    cycle.filter()
    cycle.score()
    row_of = cluster.cache.table.row_of
    return {
        plugin: {node.name: int(scores[row_of[node.name]]) for node in feasible} for plugin, scores in cycle.scores()
    }


def expected_refusal(pod: Pod, node: Node) -> tuple[str, ...]:
    """The reasons of the first of NODE_POLICIES that refuses."""
    missing = ["node(s) didn't have the requested labels"] if "retiring" in node.metadata.labels else []
    if "kubernetes.io/hostname" not in node.metadata.labels:
        missing = ["node(s) didn't have the requested labels"]
    in_order = [reference.condition_reasons(node), *reference.pressure_reasons(pod, node), missing]
    return tuple(next((reasons for reasons in in_order if reasons), []))


@pytest.mark.parametrize("seed", range(3))
def test_policies_that_look_at_one_node(seed: int) -> None:
    world = ClassicWorld(random.Random(seed), NODE_POLICIES)
    refused = scored = 0
    for step in range(STEPS):
        world.step()
        if step % ASK_EVERY:
            continue
        pod = world.new_pod()
        expected = {name: expected_refusal(pod, node) for name, node in world.nodes.items()}
        refusals = world.cluster.refusals(pod)
        assert {name: status.reasons for name, status in refusals.items()} == {
            name: reasons for name, reasons in expected.items() if reasons
        }
        refused += len(refusals)
        feasible = [node for node in world.nodes.values() if not expected[node.name]]
        if len(feasible) < 2:
            continue
        scored += 1
        assert scores_of(world.cluster, pod, feasible) == {
            "NodeLabel": {
                n.name: reference.label_score(n, ["rack", "room", "rack"], ["topology.kubernetes.io/zone"])
                for n in feasible
            },
            "NodePreferAvoidPods": {n.name: reference.avoid_score(pod, n) for n in feasible},
            "EqualPriority": {n.name: 1 for n in feasible},
            "BalancedResourceAllocation": {n.name: reference.balanced(pod, n, world.pods_on(n.name)) for n in feasible},
            "NodeResourceLimits": {n.name: reference.limits_score(pod, n) for n in feasible},
        }
    assert refused > 300
    assert scored > 50


def services_of(world: ClassicWorld, pod: Pod) -> list[dict[str, str]]:
    """Selectors of the services that select the pod, by name."""
    selecting = [
        service
        for service in world.services.values()
        if service.namespace == pod.namespace
        and service.spec.selector
        and reference.has_all(pod.metadata.labels, service.spec.selector)
    ]
    return [service.spec.selector for service in sorted(selecting, key=lambda service: service.name)]


def merged(selectors: list[dict[str, str]]) -> dict[str, str]:
    together: dict[str, str] = {}
    for selector in selectors:
        together.update(selector)
    return together


def with_controller(world: ClassicWorld, pod: Pod, labels: dict[str, str]) -> dict[str, str]:
    owner = pod.metadata.controller()
    if owner is None or owner.kind != "ReplicationController":
        return labels
    controller = world.controllers.get(f"{pod.namespace}/{owner.name}")
    return labels if controller is None else {**labels, **controller.spec.selector}


def check_affinity(world: ClassicWorld, pod: Pod) -> tuple[list[Node], int]:
    """Compares the answers for all nodes, and for all nodes with other pods on them; gives the feasible ones, and how
    many answers the other pods changed."""
    ctx, info = world.context(pod)
    plugin = world.cluster.profile.filter[0]
    assert isinstance(plugin, NodeFilter)
    kernel = plugin.filter_kernel(ctx, info)
    assert kernel is not None
    nodes, keys, served = world.nodes_by_row(), ["rack", "room"], bool(services_of(world, pod))
    expected = [not reference.is_affine(pod, node, nodes, world.pods_on, keys, served) for node in nodes]
    rows = np.array([ctx.table.row_of[node.name] for node in nodes], dtype=np.int64)
    assert kernel.codes(ctx.table, ctx.table.all_rows)[rows].tolist() == expected
    assert kernel.codes(ctx.table, rows).tolist() == expected
    assert kernel.codes_if(ctx.table, rows, NO_CHANGES).tolist() == expected
    changes = {int(row): world.random_change(int(row)) for row in rows if world.rng.random() < 0.7}
    changed = []
    for node, row in zip(nodes, rows.tolist(), strict=True):

        def pods_on(name: str, judged: str = node.name, row: int = row) -> list[Pod]:
            there = list(world.pods_on(name))
            if name != judged or row not in changes:
                return there
            gone = {other.uid for other in changes[row].removed}
            return [other for other in there if other.uid not in gone] + [other.pod for other in changes[row].added]

        changed.append(not reference.is_affine(pod, node, nodes, pods_on, keys, served))
    assert kernel.codes_if(ctx.table, rows, StatedChanges(changes)).tolist() == changed
    feasible = [node for node, code in zip(nodes, expected, strict=True) if not code]
    return feasible, sum(before != after for before, after in zip(expected, changed, strict=True))


@pytest.mark.parametrize("seed", range(3))
def test_policies_that_look_at_the_pods_of_services(seed: int) -> None:
    world = ClassicWorld(random.Random(seed), GROUP_POLICIES)
    scored = spread = flipped = 0
    for step in range(STEPS):
        world.step()
        if step % ASK_EVERY:
            continue
        pod = world.new_pod()
        feasible, flips = check_affinity(world, pod)
        flipped += flips
        if len(feasible) < 2:
            continue
        scored += 1
        services = services_of(world, pod)
        first = services[0] if services else {}
        expected: dict[str, Any] = {
            "ServiceAffinity": reference.anti_affinity_scores(pod, feasible, world.pods_on, ["room", "rack"], first)
        }
        if not pod.spec.topology_spread_constraints:
            for plugin, selector in (
                ("ServiceSpreading", merged(services)),
                ("SelectorSpread", with_controller(world, pod, merged(services))),
            ):
                expected[plugin] = reference.spread_scores(pod, feasible, world.pods_on, selector)
            spread += len(set(expected["SelectorSpread"].values())) > 1
        assert scores_of(world.cluster, pod, feasible) == expected
    assert scored > 50
    assert spread > 20
    assert flipped > 10


def test_kept_answers_equal_fresh_ones_after_thousands_of_events() -> None:
    for profile in (NODE_POLICIES, GROUP_POLICIES):
        world = ClassicWorld(random.Random(77), profile)
        pods = [world.new_pod() for _ in range(5)]
        for _ in range(12):
            for _ in range(300):
                world.step()
            fresh = world.rebuilt(profile)
            for pod in pods:
                assert world.cluster.refusals(pod) == fresh.refusals(pod)
                if len(fresh.fit(pod)) > 1:
                    assert world.cluster.totals(pod) == fresh.totals(pod)
