"""Scheduling cycles: what is popped, decided, assumed; slices, pauses, crashes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kube_pyscheduler.framework.diagnosis import Diagnosis
from kube_pyscheduler.framework.status import Code, Status, error, unresolvable, unschedulable
from kube_pyscheduler.scheduler.ports import BindOutcome, BindResult
from kube_pyscheduler.scheduling_queue.queued_pod import Place
from tests.unit.scheduler.conftest import MakeWorld
from tests.unit.scheduler.world import HoldingPermit, NotingReserve, World, fitting_profile
from tests.unit.scheduling_queue.builders import changed, make_pod


async def test_a_pod_travels_from_watch_to_binding(world: World) -> None:
    world.node()
    world.apply(make_pod("p", cpu="3"))
    await world.settle()
    assert world.bound == {"p": "n1"}
    assert world.used() == 3000
    assert world.events.of("Scheduled") == [("p", "Successfully assigned default/p to n1")]
    assert world.observer.of("attempt") == [("pysched", "scheduled", 0.0)]
    assert world.observer.of("scheduled") == [(1, 0.0, False)]
    world.confirm("p")
    assert world.is_idle()
    assert world.scheduler.cache.counts()["assumed_pods"] == 0


async def test_decisions_run_ahead_of_bindings(world: World) -> None:
    world.binder.hold()
    world.node("n1")
    world.node("n2")
    for name in ("a", "b", "c"):
        world.apply(make_pod(name, cpu="3"))
    await world.settle()
    assert sorted(world.bound.values()) == ["n1", "n2"]
    assert world.events.of("FailedScheduling")[0][0] == "c"
    world.binder.release()
    await world.settle()


async def test_a_pod_that_fits_nowhere_says_why_and_waits(world: World) -> None:
    world.node()
    pod = world.apply(make_pod("p", cpu="5"))
    await world.settle()
    note = "0/1 nodes are available: 1 Insufficient cpu."
    assert [told[:3] for told in world.events.told] == [("Warning", "FailedScheduling", "p")]
    assert world.events.told[0][3].startswith(note)
    ((name, status),) = world.patches
    assert name == "p"
    condition = status["conditions"][0]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "Unschedulable")
    assert condition["message"].startswith(note)
    queued = world.queued(pod)
    assert (queued.place, queued.unschedulable_plugins) == (Place.UNSCHEDULABLE, {"NodeResourcesFit"})
    assert world.observer.attempts() == ["unschedulable"]


async def test_without_nodes_pods_are_tried_again_after_a_backoff(world: World) -> None:
    pod = world.apply(make_pod())
    await world.settle()
    assert world.events.of("FailedScheduling") == [("p", "no nodes available to schedule pods")]
    assert world.queued(pod).place is Place.ERROR_BACKOFF
    world.node()
    await world.after(2.0)
    assert world.bound == {"p": "n1"}


async def test_deleting_and_placed_pods_are_skipped(world: World) -> None:
    world.node()
    world.apply(make_pod("p", deletion="2026-01-01T00:00:00Z"))
    placed = make_pod("q")
    world.apply(placed)
    world.scheduler.cache.set_pod(changed(placed, node_name="n1"))
    await world.settle()
    assert world.bound == {}
    assert world.events.of("FailedScheduling") == [("p", "skip schedule deleting pod: default/p")]
    assert world.is_idle()


async def test_a_decision_that_raises_costs_its_pod_one_attempt(
    make_world: MakeWorld, caplog: pytest.LogCaptureFixture
) -> None:
    def decide(profile: Any, info: Any) -> Any:
        if info.pod.name == "bad":
            raise RuntimeError("plugin broke")
        return world.scheduler._decide(profile, info)

    world = make_world(decide=decide)
    world.node()
    bad = world.apply(make_pod("bad"))
    world.apply(make_pod("good"))
    await world.settle()
    assert world.bound == {"good": "n1"}
    assert world.queued(bad).place is Place.ERROR_BACKOFF
    assert world.events.of("FailedScheduling") == [("bad", "plugin broke")]
    assert world.patches[0][1]["conditions"][0]["reason"] == "SchedulerError"
    assert world.observer.attempts()[0] == "error"
    assert any(record.exc_info for record in caplog.records)


async def test_reserve_is_rolled_back_in_reverse_order(make_world: MakeWorld) -> None:
    log: list[str] = []
    plugins = [
        NotingReserve("A", log),
        NotingReserve("B", log, unschedulable("taken")),
        NotingReserve("C", log),
    ]
    world = make_world(fitting_profile(reserve=plugins))
    world.node()
    pod = world.apply(make_pod())
    await world.settle()
    assert log == ["A reserve p on n1", "B reserve p on n1", "C unreserve p", "B unreserve p", "A unreserve p"]
    assert world.used() == 0
    assert world.bound == {}
    assert world.events.of("FailedScheduling") == [("p", "0/1 nodes are available: 1 taken.")]
    queued = world.queued(pod)
    assert (queued.unschedulable_plugins, queued.place) == ({"B"}, Place.UNSCHEDULABLE)


@pytest.mark.parametrize("how", ["error", "raise"])
async def test_a_reserve_that_fails_is_an_error(make_world: MakeWorld, how: str) -> None:
    class Broken(NotingReserve):
        def reserve(self, ctx: Any, pod: Any, node: str) -> Status | None:
            if how == "raise":
                raise OSError("boom")
            return error("boom")

    world = make_world(fitting_profile(reserve=[Broken("A", [])]))
    world.node()
    pod = world.apply(make_pod())
    await world.settle()
    assert world.events.of("FailedScheduling") == [("p", 'running Reserve plugin "A": boom')]
    assert world.queued(pod).place is Place.ERROR_BACKOFF
    assert world.used() == 0


async def test_a_permit_that_refuses_takes_everything_back(make_world: MakeWorld) -> None:
    class Refusing(HoldingPermit):
        def permit(self, ctx: Any, pod: Any, node: str) -> tuple[Status | None, float]:
            return unresolvable("not today"), 0.0

    log: list[str] = []
    world = make_world(fitting_profile(permit=[Refusing()], reserve=[NotingReserve("R", log)]))
    world.node()
    pod = world.apply(make_pod())
    await world.settle()
    assert log == ["R reserve p on n1", "R unreserve p"]
    assert world.used() == 0
    assert world.queued(pod).unschedulable_plugins == {"Hold"}
    assert world.events.of("FailedScheduling") == [("p", "0/1 nodes are available: 1 not today.")]


async def test_the_promise_of_an_assumed_pod_ends(world: World) -> None:
    world.node()
    world.apply(make_pod(nominated="n1"))
    assert world.scheduler.queue.nominator.nodes() == ["n1"]
    await world.settle()
    assert world.scheduler.queue.nominator.nodes() == []


async def test_what_a_plugin_wants_activated_is_activated_when_the_cycle_ends_well(make_world: MakeWorld) -> None:
    class Activating(HoldingPermit):
        def permit(self, ctx: Any, pod: Any, node: str) -> tuple[Status | None, float]:
            ctx.handle.activate([waiting])
            assert world.queued(waiting).place is Place.UNSCHEDULABLE
            return (None, 0.0) if pod.pod.name == "good" else (unschedulable("no"), 0.0)

    world = make_world(fitting_profile(permit=[Activating()]))
    world.node()
    waiting = world.apply(make_pod("waiting", cpu="9"))
    await world.settle()
    world.apply(make_pod("bad"))
    await world.settle()
    assert world.queued(waiting).attempts == 1
    world.apply(make_pod("good"))
    await world.settle()
    assert world.queued(waiting).attempts == 2


# Slices


async def test_a_slice_ends_when_its_time_is_up(make_world: MakeWorld) -> None:
    def decide(profile: Any, info: Any) -> Any:
        world.clock.advance(0.002)
        return world.scheduler._decide(profile, info)

    world = make_world(decide=decide)
    world.node()
    for number in range(7):
        world.apply(make_pod(f"p{number}"))
    assert world.scheduler.loop.run_slice() == 0.0
    assert world.scheduler.queue.pending().active == 4
    assert world.scheduler.loop.run_slice() == 0.0
    assert world.scheduler.loop.run_slice() is None
    await world.settle()
    assert len(world.bound) == 7


async def test_pauses_follow_the_queue_and_the_held_pods(make_world: MakeWorld) -> None:
    world = make_world(fitting_profile(permit=[HoldingPermit(20.0)]))
    loop = world.scheduler.loop
    assert loop.run_slice() is None
    world.node()
    world.apply(make_pod("held"))
    assert loop.run_slice() == 20.0
    world.apply(make_pod("big", cpu="9"))
    world.clock.advance(15.0)
    assert loop.run_slice() == 5.0
    await world.settle()


async def test_with_bindings_stuck_no_more_pods_are_popped(make_world: MakeWorld) -> None:
    world = make_world(parallel_bindings=2)
    world.binder.hold()
    world.node()
    for number in range(10):
        world.apply(make_pod(f"p{number}"))
    await world.settle()
    assert (len(world.binder.sent), world.binder.most) == (2, 2)
    assert len(world.scheduler.bindings) == 4
    assert world.scheduler.queue.pending().active == 6
    world.binder.release()
    await world.settle()
    assert len(world.bound) == 10
    assert world.binder.most == 2


async def test_the_loop_sleeps_until_there_is_something_to_do(world: World) -> None:
    running = asyncio.create_task(world.scheduler.loop.run())
    await asyncio.sleep(0)
    world.node()
    world.apply(make_pod())
    await world.binder.called.wait()
    world.scheduler.loop.stop()
    await running


async def test_a_broken_queue_ends_the_loop(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_now: float) -> None:
        raise AssertionError("corrupt")

    monkeypatch.setattr(world.scheduler.queue, "pop", broken)
    with pytest.raises(AssertionError, match="corrupt"):
        await world.scheduler.loop.run()


async def test_pods_of_a_profile_that_is_gone_are_dropped(world: World) -> None:
    world.apply(make_pod())
    world.scheduler._profiles.clear()
    await world.settle()
    assert world.is_idle()


async def test_diagnoses_without_blame_still_come_back(make_world: MakeWorld) -> None:
    """A refusal that names no plugin is retried after a backoff: no event could wake it."""

    def decide(profile: Any, info: Any) -> Any:
        decision = world.scheduler._decide(profile, info)
        return type(decision)(status=Status(Code.UNSCHEDULABLE, ("x",)), ctx=decision.ctx, diagnosis=Diagnosis(1))

    world = make_world(decide=decide)
    world.node()
    pod = world.apply(make_pod())
    await world.settle()
    assert world.queued(pod).place is Place.ERROR_BACKOFF


async def test_a_pod_already_assumed_elsewhere_is_an_error_of_that_pod(
    make_world: MakeWorld, caplog: pytest.LogCaptureFixture
) -> None:
    def decide(profile: Any, info: Any) -> Any:
        decision = world.scheduler._decide(profile, info)
        world.scheduler.cache.assume(info, "n1")
        return decision

    world = make_world(decide=decide)
    world.binder.answers["p"] = BindResult(BindOutcome.FAILED)
    world.node()
    pod = world.apply(make_pod())
    await world.settle()
    assert world.queued(pod).place is Place.ERROR_BACKOFF
    assert any(record.message == "Pod cannot be assumed" for record in caplog.records)
