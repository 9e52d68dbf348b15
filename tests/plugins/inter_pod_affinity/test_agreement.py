"""The columns agree with the plain twins, whatever happens to the cluster."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from kube_pyscheduler.framework.interfaces import FilterKernel, NodeFilter
from kube_pyscheduler.framework.row_changes import NO_CHANGES, StatedChanges
from kube_pyscheduler.framework.status import SKIP
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod
from tests.plugins.inter_pod_affinity import reference
from tests.plugins.pod_world import KEYS, NAMESPACES, PodWorld, only, random_selector

STEPS = 1200
ASK_EVERY = 6
CODES = {
    "": 0,
    reference.NOT_WANTED: 1,
    reference.TOO_NEAR: 2,
    reference.NOT_NEAR: 3,
}


def random_term(rng: random.Random) -> dict[str, Any]:
    term: dict[str, Any] = {"topologyKey": rng.choice(KEYS), "labelSelector": random_selector(rng)}
    if rng.random() < 0.3:
        term["namespaces"] = rng.sample(NAMESPACES, rng.choice([1, 2]))
    if rng.random() < 0.4:
        term["namespaceSelector"] = rng.choice(
            [
                {},
                {"matchLabels": {"team": "red"}},
                {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["red"]}]},
                {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
            ]
        )
    return term


def random_spec(rng: random.Random) -> dict[str, Any]:
    if rng.random() < 0.3:
        return {}
    affinity: dict[str, Any] = {}
    for kind in ("podAffinity", "podAntiAffinity"):
        terms: dict[str, Any] = {}
        if rng.random() < 0.35:
            terms["requiredDuringSchedulingIgnoredDuringExecution"] = [
                random_term(rng) for _ in range(rng.choice([1, 1, 2]))
            ]
        if rng.random() < 0.5:
            terms["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": rng.choice([1, 10, 100]), "podAffinityTerm": random_term(rng)}
                for _ in range(rng.choice([1, 2]))
            ]
        if terms:
            affinity[kind] = terms
    return {"affinity": affinity}


def placed(world: PodWorld) -> list[tuple[Node, Pod]]:
    """The pods on nodes that exist."""
    return [(world.nodes[name], pod) for pod in world.pods.values() if (name := pod.spec.node_name) in world.nodes]


def kernel_of(world: PodWorld, pod: Pod) -> FilterKernel | None:
    """None where PreFilter says that there is nothing to filter."""
    ctx, info = world.context(pod)
    plugin = world.cluster.profile.filter[0]
    assert isinstance(plugin, NodeFilter)
    answer = world.cluster.profile.pre_filter[0].pre_filter(ctx, info)
    kernel = plugin.filter_kernel(ctx, info)
    assert (answer == SKIP) == (kernel is None)
    return kernel


def check_filter(world: PodWorld, pod: Pod) -> list[str]:
    """Compares the answers for all nodes, and for all nodes with other pods on them; gives the feasible ones."""
    kernel = kernel_of(world, pod)
    twin = reference.Filter(pod, placed(world), world.namespaces)
    assert (kernel is None) == twin.is_skipped
    names = sorted(world.nodes)
    if kernel is None or not names:
        return names
    table = world.cluster.cache.table
    expected = [CODES[twin.code(world.nodes[name])] for name in names]
    rows = np.array([table.row_of[name] for name in names], dtype=np.int64)
    assert kernel.codes(table, table.all_rows)[rows].tolist() == expected
    assert kernel.codes(table, rows).tolist() == expected
    assert kernel.codes_if(table, rows, NO_CHANGES).tolist() == expected
    changes = {int(row): world.random_change(int(row)) for row in rows if world.rng.random() < 0.7}
    changed = []
    for name, row in zip(names, rows.tolist(), strict=True):
        twin = reference.Filter(pod, placed(world), world.namespaces)
        if row in changes:
            for other in changes[row].added:
                twin.change(world.nodes[name], other.pod, 1)
            for other in changes[row].removed:
                twin.change(world.nodes[name], other.pod, -1)
        changed.append(CODES[twin.code(world.nodes[name])])
    assert kernel.codes_if(table, rows, StatedChanges(changes)).tolist() == changed
    return [name for name, code in zip(names, expected, strict=True) if not code]


def check_scores(world: PodWorld, pod: Pod, feasible: list[str], hard_weight: int, ignore_existing: bool) -> None:
    cycle, _judged = world.cluster.engine.cycle(world.cluster.profile, world.context(pod)[1])
    cycle.pre_filter()
    cycle.filter()
    cycle.score()
    got = dict(cycle.scores()).get("InterPodAffinity")
    expected = reference.scores(
        pod,
        placed(world),
        [world.nodes[name] for name in feasible],
        world.namespaces,
        hard_weight=hard_weight,
        ignore_existing=ignore_existing,
    )
    row_of = world.cluster.cache.table.row_of
    ours = None if got is None else {name: int(got[row_of[name]]) for name in feasible}
    assert ours == expected


@pytest.mark.parametrize(
    ("seed", "hard_weight", "ignore_existing"), [(0, 1, False), (1, 0, False), (2, 50, False), (3, 1, True)]
)
def test_filter_and_score_agree_with_the_plain_twin_after_any_events(
    seed: int, hard_weight: int, ignore_existing: bool
) -> None:
    args = {"hardPodAffinityWeight": hard_weight, "ignorePreferredTermsOfExistingPods": ignore_existing}
    world = PodWorld(random.Random(seed), only("InterPodAffinity", args=args), random_spec)
    for step in range(STEPS):
        world.step()
        if step % ASK_EVERY:
            continue
        pod = world.new_pod()
        feasible = check_filter(world, pod)
        if len(feasible) > 1:
            check_scores(world, pod, feasible, hard_weight, ignore_existing)
