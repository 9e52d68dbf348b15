"""The columns agree with the plain twin, whatever happened to the cluster and whatever is assumed."""

from __future__ import annotations

import random

import numpy as np
import pytest

from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.config.args import UtilizationShapePoint, VolumeBindingArgs
from kube_pyscheduler.framework.cycle_state import CycleState
from kube_pyscheduler.framework.interfaces import CycleContext, ScoreKernel
from kube_pyscheduler.framework.status import Code, Status, error
from kube_pyscheduler.plugins.volume_binding.plugin import STATE, VolumeBinding
from tests.plugins.volume_binding import reference
from tests.plugins.volume_world import VolumeWorld, judge

STEPS = 1600
ASK_EVERY = 4


def compare(world: VolumeWorld, plugin: VolumeBinding, ctx: CycleContext, info: PodInfo) -> set[str]:
    """What was found on the way, for the test to see that it tests something."""
    found = judge(plugin, ctx, info)
    if isinstance(found, Status):
        return {found.code.label}
    state = ctx.state.read(STATE)
    assert state is not None
    assert state.kernel is not None
    seen = set()
    for name, node in world.nodes.items():
        wanted = reference.find(state.claims.bound, state.claims.delayed, node, ctx.listers)
        if wanted.failure:
            assert found[name] == error(wanted.failure)
            seen.add("failed")
            continue
        if wanted.reasons:
            assert found[name] == Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, tuple(wanted.reasons))
            seen |= set(wanted.reasons)
            continue
        assert found[name] is None
        row = ctx.table.row_of[name]
        volumes = state.kernel.decide(row)
        bindings = [(binding.volume, binding.claim) for binding in volumes.bindings]
        kernel = plugin.score_kernel(ctx, info)
        assert isinstance(kernel, ScoreKernel)
        score = reference.score(bindings, volumes.provisions, node, ctx.listers)
        assert kernel.scores(ctx.table, ctx.table.all_rows)[row] == score
        assert kernel.scores(ctx.table, np.array([row], dtype=np.int64)).tolist() == [score]
        seen |= {"scored"} if 0 < score < 100 else set()
        assert {binding.claim.name: binding.volume.name for binding in volumes.bindings} == wanted.static
        assert [claim.name for claim in volumes.provisions] == wanted.dynamic
        seen |= {"static"} if wanted.static else set()
        seen |= {"dynamic"} if wanted.dynamic else set()
        if len(wanted.static) > 1:
            seen.add("several")
    return seen


@pytest.mark.parametrize("seed", range(6))
def test_agreement(seed: int) -> None:
    rng = random.Random(seed)
    world = VolumeWorld(rng)
    plugin = VolumeBinding(VolumeBindingArgs(shape=(UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))))
    reserved: list[tuple[CycleContext, PodInfo, str]] = []
    seen: set[str] = set()
    for number in range(STEPS):
        world.step()
        if number % ASK_EVERY:
            continue
        ctx, info = world.context(world.new_claimant() if rng.random() < 0.8 else world.new_pod())
        seen |= compare(world, plugin, ctx, info)
        if rng.random() < 0.3:
            # Without anything assumed, another cluster that was told of the same must come to the same.
            while reserved:
                plugin.unreserve(*reserved.pop())
            again, _info = world.context(info.pod, world.rebuilt())
            ctx.state = CycleState()
            assert judge(plugin, again, info) == judge(plugin, ctx, info)
            continue
        state = ctx.state.read(STATE)
        if state is None or state.kernel is None:
            continue
        rows = ctx.table.live_rows()
        fitting = rows[state.kernel.codes(ctx.table, rows) == 0].tolist()
        if fitting:
            node = ctx.table.names[rng.choice(fitting)]
            assert plugin.reserve(ctx, info, node) is None
            reserved.append((ctx, info, node))
        if len(reserved) > 3:
            plugin.unreserve(*reserved.pop(rng.randrange(4)))
    assert seen >= {reference.NODE, reference.BIND, reference.SPACE, reference.GONE, "static", "dynamic", "scored"}
