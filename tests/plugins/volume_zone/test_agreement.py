"""The columns agree with the plain twin, whatever happened to the cluster."""

from __future__ import annotations

import random

import pytest

from kube_pyscheduler.framework.status import Status, unresolvable
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.plugins.volume_zone.plugin import VolumeZone
from tests.plugins.volume_world import Judged, VolumeWorld, judge
from tests.plugins.volume_zone import reference

STEPS = 1200
ASK_EVERY = 4


def expected(world: VolumeWorld, pod: Pod) -> Judged:
    wanted = reference.topologies(pod, world.cluster.cache.listers)
    if isinstance(wanted, Status):
        return wanted
    refusal = unresolvable("node(s) had no available volume zone")
    return {name: None if reference.fits(node, wanted) else refusal for name, node in world.nodes.items()}


@pytest.mark.parametrize("seed", range(4))
def test_agreement(seed: int) -> None:
    rng = random.Random(seed)
    world = VolumeWorld(rng)
    judged = 0
    for number in range(STEPS):
        world.step()
        if number % ASK_EVERY:
            continue
        pod = world.new_pod()
        found = judge(VolumeZone(), *world.context(pod))
        assert found == expected(world, pod)
        judged += isinstance(found, dict) and any(found.values())
        if number % 60 == 0:
            assert judge(VolumeZone(), *world.context(pod, world.rebuilt())) == found
    assert judged > STEPS // (30 * ASK_EVERY)
