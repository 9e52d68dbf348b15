"""The columns agree with the plain twin, whatever happened to the cluster."""

from __future__ import annotations

import random

import pytest

from kube_pyscheduler.framework.interfaces import RowChange
from kube_pyscheduler.framework.status import SKIP, Status, unresolvable, unschedulable
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.plugins.volume_restrictions.plugin import VolumeRestrictions
from tests.clusters import Cluster
from tests.plugins.volume_restrictions import reference
from tests.plugins.volume_world import Judged, VolumeWorld, judge

STEPS = 1200
ASK_EVERY = 4


def expected(world: VolumeWorld, pod: Pod, changes: dict[str, RowChange]) -> Judged:
    listers = world.cluster.cache.listers
    missing = reference.missing_claim(pod, listers)
    if missing is not None:
        return unresolvable(f'persistentvolumeclaim "{missing}" not found')
    by_node = {node: world.pods_on(node) for node in world.nodes}
    exclusive = reference.exclusive_claims(pod, listers)
    conflicts = reference.in_use(pod, exclusive, by_node)
    if not reference.has_disks(pod) and not conflicts:
        return SKIP
    found: dict[str, Status | None] = {}
    for node, there in by_node.items():
        change = changes.get(node, RowChange())
        come, gone = [info.pod for info in change.added], [info.pod for info in change.removed]
        left = [other for other in there if other.uid not in {pod.uid for pod in gone}]
        reason = reference.refusal(pod, [*left, *come], conflicts, exclusive, come, gone)
        found[node] = None if reason is None else unschedulable(reason)
    return found


def judged(
    world: VolumeWorld, pod: Pod, changes: dict[str, RowChange] | None, cluster: Cluster | None = None
) -> Judged:
    ctx, info = world.context(pod, cluster)
    return judge(VolumeRestrictions(), ctx, info, changes)


@pytest.mark.parametrize("seed", range(4))
def test_agreement(seed: int) -> None:
    rng = random.Random(seed)
    world = VolumeWorld(rng)
    refused = 0
    for number in range(STEPS):
        world.step()
        if number % ASK_EVERY:
            continue
        pod = world.new_pod()
        found = judged(world, pod, None)
        assert found == expected(world, pod, {})
        changes = {node: world.random_change(node) for node in world.nodes if rng.random() < 0.7}
        changed = judged(world, pod, changes)
        assert changed == expected(world, pod, changes)
        refused += isinstance(changed, dict) and any(changed.values())
        if number % 60 == 0:
            assert judged(world, pod, None, world.rebuilt()) == found
    assert refused > STEPS // (20 * ASK_EVERY)
