"""Public cases about leadership: two daemons, one lease."""

from __future__ import annotations

import asyncio

import pytest

from kube_pyscheduler.devserver.resources import LEASES
from tests.cases.stage import Stage, Wire, is_binding, is_pod_deletion, is_renewal, play
from tests.faults.proxy import Answer, Fault
from tests.faults.world import SCHEDULER, Daemon

HOST = "kubernetes.io/hostname"
REFUSED = Fault(passes=False, answer=Answer(500, "InternalError"))


async def two_daemons(stage: Stage) -> tuple[Daemon, Wire, Daemon, Wire]:
    """The leader and the one who waits, with their wires."""
    leader = await stage.start(name="leader")
    wire = stage.wire
    follower = stage.daemon("follower")
    await follower.start()
    await asyncio.sleep(5.0)
    return leader, wire, follower, stage.wire


def test_bc_58_a_jump_of_the_wall_clock_moves_nobody() -> None:
    async def story(stage: Stage) -> None:
        stage.add_node()
        leader, _wire, follower, others = await two_daemons(stage)
        for jump in (3600.0, -3600.0):
            stage.loop.wall_offset = jump
            await asyncio.sleep(60.0)
            assert stage.world.leader is leader
            assert not others.of(is_renewal)
        # A leader that has gone is followed when its lease was seen unchanged for as long as it lasts.
        await leader.crash()
        assert 12.0 <= await stage.until(lambda: stage.world.leader is follower) <= 19.0

    play(story)


def test_bc_59_who_cannot_renew_stops_acting_before_anybody_else_starts() -> None:
    async def story(stage: Stage) -> None:
        full, free = stage.add_node(0, cpu="20"), stage.add_node(1, cpu="20")
        for number in range(20):
            stage.add_pod(f"victim-{number}", cpu="1", node=full)
        leader, wire, follower, others = await two_daemons(stage)
        held_until = wire.of(is_renewal)[-1].at + 10.0
        for each in (wire, others):
            each.suffer_always(lambda asked: "/leases" in asked.path and asked.method != "GET", REFUSED)
        for number in range(100):
            stage.add_pod(f"p-{number}", nodeSelector={HOST: free})
            if number % 10 == 0:
                stage.add_pod(f"important-{number}", cpu="1", priority=1000, nodeSelector={HOST: full})
            await asyncio.sleep(0.2)
        for which in (is_binding, is_pod_deletion):
            last = max(heard.at for heard in wire.of(which))
            assert held_until - 3.0 < last < held_until
            assert not others.of(which)
        assert leader.outcome() == 1
        others.heal()
        await stage.until(lambda: stage.world.leader is follower)
        assert stage.loop.time() >= held_until + 5.0
        await stage.until(lambda: all(pod["spec"].get("nodeName") for pod in stage.world.pods()))

    play(story)


def test_bc_61_the_lease_is_given_back_after_the_last_binding() -> None:
    async def story(stage: Stage) -> None:
        stage.add_node()
        leader, wire, follower, _others = await two_daemons(stage)
        wire.suffer(is_binding, *[Fault(delay=3.0)] * 3)
        for name in ("a", "b", "c"):
            stage.add_pod(name)
        await stage.until(lambda: len(wire.of(is_binding)) == 3)
        left = asyncio.ensure_future(leader.leave())
        await asyncio.sleep(0.1)
        stage.add_pod("late")
        await stage.until(lambda: all(stage.node_of(name) for name in ("a", "b", "c")))
        assert not stage.node_of("late")
        await stage.until(lambda: not stage.world.lease_holder)
        lease = stage.world.server.store.get(LEASES, "kube-system", SCHEDULER)
        assert lease is not None
        assert lease["spec"]["leaseDurationSeconds"] == 1
        assert lease["spec"]["renewTime"]
        assert lease["spec"]["acquireTime"]
        assert await stage.until(lambda: stage.world.leader is follower) <= 2.0
        assert await left == 0
        await stage.until(lambda: stage.node_of("late"))

    play(story)


@pytest.mark.parametrize("late", [1.0, 2.5, 4.0])
def test_slow_answers_do_not_cost_the_lease(late: float) -> None:
    async def story(stage: Stage) -> None:
        stage.add_node()
        leader = await stage.start()
        stage.wire.suffer_always(lambda asked: "/leases" in asked.path, Fault(late=late))
        for number in range(20):
            stage.add_pod(f"p-{number}")
            await asyncio.sleep(3.0)
        assert stage.world.leader is leader
        assert all(pod["spec"].get("nodeName") for pod in stage.world.pods())

    play(story)


def test_whoever_touches_the_lease_without_taking_it_changes_nothing() -> None:
    async def story(stage: Stage) -> None:
        stage.add_node()
        leader = await stage.start()
        for number in range(60):
            lease = stage.world.server.store.get(LEASES, "kube-system", SCHEDULER)
            assert lease is not None
            annotated = {**lease["metadata"], "annotations": {"number": str(number)}}
            stage.registry.update(LEASES, {**lease, "metadata": annotated})
            await asyncio.sleep(0.5)
        assert stage.world.leader is leader

    play(story)


def test_a_lease_that_is_deleted_is_made_anew_and_one_that_is_stolen_is_lost() -> None:
    async def story(stage: Stage) -> None:
        stage.add_node()
        leader = await stage.start()
        stage.registry.delete(LEASES, "kube-system", SCHEDULER)
        await stage.until(lambda: stage.world.leader is leader, within=5.0)
        stage.registry.delete(LEASES, "kube-system", SCHEDULER)
        spec = {"holderIdentity": "thief", "leaseDurationSeconds": 15}
        stage.registry.create(LEASES, {"metadata": {"name": SCHEDULER, "namespace": "kube-system"}, "spec": spec})
        await stage.until(lambda: leader.has_ended, within=5.0)
        assert leader.outcome() == 1
        assert stage.world.lease_holder == "thief"

    play(story)
