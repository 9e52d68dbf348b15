"""The counters agree with the plain twin, whatever happened to the cluster."""

from __future__ import annotations

import random

import pytest

from kube_pyscheduler.framework.interfaces import RowChange
from kube_pyscheduler.framework.status import SKIP, Code, Status
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.plugins.node_volume_limits.plugin import NodeVolumeLimits
from tests.clusters import Cluster
from tests.plugins.node_volume_limits import reference
from tests.plugins.volume_world import Judged, VolumeWorld, judge

STEPS = 1200
ASK_EVERY = 4


def expected(world: VolumeWorld, pod: Pod, changes: dict[str, RowChange]) -> Judged:
    if reference.is_skipped(pod):
        return SKIP
    listers = world.cluster.cache.listers
    found: dict[str, Status | None] = {}
    for node in world.nodes:
        change = changes.get(node, RowChange())
        gone = {info.uid for info in change.removed}
        there = [other for other in world.pods_on(node) if other.uid not in gone]
        there += [info.pod for info in change.added]
        found[node] = reference.refusal(pod, node, there, world.attachments(), listers)
    return found


def judged(
    world: VolumeWorld, pod: Pod, changes: dict[str, RowChange] | None, cluster: Cluster | None = None
) -> Judged:
    ctx, info = world.context(pod, cluster)
    return judge(NodeVolumeLimits(), ctx, info, changes)


def codes(found: Judged) -> set[Code]:
    statuses = [found] if isinstance(found, Status) else found.values()
    return {status.code for status in statuses if status is not None}


@pytest.mark.parametrize("seed", range(4))
def test_agreement(seed: int) -> None:
    rng = random.Random(seed)
    world = VolumeWorld(rng)
    seen: list[Code] = []
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
        seen += codes(changed)
        if number % 60 == 0:
            assert judged(world, pod, None, world.rebuilt()) == found
    assert seen.count(Code.UNSCHEDULABLE) > STEPS // (20 * ASK_EVERY)
