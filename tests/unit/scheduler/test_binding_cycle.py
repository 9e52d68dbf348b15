"""Binding cycles: every answer on its own, Permit, PreBind, cancellation, the end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kube_pyscheduler.framework.interfaces import Bind, PostBind
from kube_pyscheduler.framework.status import Code, Status, error, unschedulable
from kube_pyscheduler.scheduler.ports import BindOutcome, BindResult
from kube_pyscheduler.scheduling_queue.queued_pod import Place
from tests.unit.scheduler.conftest import MakeWorld
from tests.unit.scheduler.world import HoldingPermit, NotingReserve, SlowPreBind, World, fitting_profile
from tests.unit.scheduling_queue.builders import changed, make_pod


async def with_waiter(world: World, outcome: BindOutcome, message: str = "") -> tuple[Any, Any]:
    """A pod whose Binding gets this answer, and one that waits for its space."""
    world.binder.answers["p"] = BindResult(outcome, message)
    world.binder.hold()
    world.node()
    pod = world.apply(make_pod("p", cpu="3"))
    await world.settle()
    waiter = world.apply(make_pod("waiter", cpu="2"))
    await world.settle()
    assert world.queued(waiter).place is Place.UNSCHEDULABLE
    return pod, waiter


# The answers


async def test_a_pod_bound_elsewhere_is_theirs(world: World) -> None:
    pod, _waiter = await with_waiter(world, BindOutcome.BOUND_ELSEWHERE)
    world.binder.release()
    await world.settle()
    assert world.events.of("FailedScheduling") == world.events.of("FailedScheduling")[:1]
    assert "p" not in dict(world.events.of("FailedScheduling"))
    assert world.bound["waiter"] == "n1"
    assert pod.uid not in world.scheduler.queue
    assert world.observer.of("conflict") == [("bound_elsewhere",)]
    assert world.used("n1") == 2000
    assert all(name != "p" for name, _status in world.patches)


@pytest.mark.parametrize("outcome", [BindOutcome.GONE, BindOutcome.NOT_OURS])
async def test_a_pod_that_is_gone_or_not_ours_frees_its_node_at_once(world: World, outcome: BindOutcome) -> None:
    pod, _waiter = await with_waiter(world, outcome)
    world.binder.release()
    await world.settle()
    assert world.bound["waiter"] == "n1"
    assert pod.uid not in world.scheduler.queue
    assert "p" not in dict(world.events.of("FailedScheduling"))


async def test_a_pod_that_has_gates_goes_back_through_pre_enqueue(world: World) -> None:
    pod, _waiter = await with_waiter(world, BindOutcome.GATED)
    world.pods.by_key[pod.key] = gated = changed(pod, scheduling_gates=make_pod(gates=["g"]).spec.scheduling_gates)
    world.binder.release()
    await world.settle()
    assert world.queued(gated).gating_plugin == "SchedulingGates"
    assert "p" not in dict(world.events.of("FailedScheduling"))
    assert world.bound["waiter"] == "n1"


async def test_gates_that_only_the_server_sees_are_looked_at_after_a_backoff(world: World) -> None:
    pod, _waiter = await with_waiter(world, BindOutcome.GATED)
    world.binder.release()
    await world.settle()
    assert world.queued(pod).place is Place.ERROR_BACKOFF


async def test_a_failed_binding_is_tried_again_after_a_backoff(world: World) -> None:
    pod, _waiter = await with_waiter(world, BindOutcome.FAILED, "no connection")
    world.binder.release()
    await world.settle()
    message = 'running Bind plugin "DefaultBinder": no connection'
    assert dict(world.events.of("FailedScheduling"))["p"] == message
    assert world.queued(pod).place is Place.ERROR_BACKOFF
    assert dict(world.patches)["p"]["conditions"][0]["reason"] == "SchedulerError"
    assert world.bound["waiter"] == "n1"


async def test_a_binding_is_tried_again_only_where_there_is_room(world: World) -> None:
    world.binder.hold()
    node = world.node()
    world.apply(make_pod("p", cpu="3"))
    await world.settle()
    assert world.binder.is_free()
    foreign = world.apply(make_pod("foreign", node="n1", scheduler="other", cpu="2"))
    assert not world.binder.is_free()
    world.delete(foreign)
    assert world.binder.is_free()
    world.scheduler.handle("Node", node, None)
    assert not world.binder.is_free()
    world.binder.release()


async def test_the_watch_may_be_faster_than_the_answer(world: World) -> None:
    world.binder.hold()
    world.node()
    world.apply(make_pod())
    await world.settle()
    world.confirm("p")
    world.binder.release()
    await world.settle()
    assert world.used() == 100
    assert world.is_idle()
    assert world.observer.attempts() == ["scheduled"]


# Bind plugins


class Declining(Bind):
    name = "Declining"

    def __init__(self, status: Status | None) -> None:
        self.status = status

    async def bind(self, handle: Any, state: Any, pod: Any, node: str) -> Status | None:
        if self.status is None:
            raise OSError("broken")
        return self.status


async def test_a_bind_plugin_may_leave_it_to_the_next(make_world: MakeWorld) -> None:
    bind = (Declining(Status(Code.SKIP)), *fitting_profile().bind)
    world = make_world(fitting_profile(bind=bind))
    world.node()
    world.apply(make_pod())
    await world.settle()
    assert world.bound == {"p": "n1"}
    answers = [args[:3] for args in world.observer.of("plugin")]
    assert answers == [("Declining", "Bind", "Skip"), ("DefaultBinder", "Bind", "Success")]


@pytest.mark.parametrize(
    ("status", "note"),
    [
        (Status(Code.SKIP), "no Bind plugin took the pod"),
        (error("boom"), 'running Bind plugin "Declining": boom'),
        (None, "broken"),
    ],
)
async def test_bind_plugins_that_do_not_bind(make_world: MakeWorld, status: Status | None, note: str) -> None:
    world = make_world(fitting_profile(bind=(Declining(status),)))
    world.node()
    pod = world.apply(make_pod())
    await world.settle()
    assert world.events.of("FailedScheduling") == [("p", note)]
    assert world.queued(pod).place is Place.ERROR_BACKOFF
    assert world.used() == 0


async def test_a_bind_plugin_of_its_own_is_believed(make_world: MakeWorld) -> None:
    world = make_world(fitting_profile(bind=(Declining(Status(Code.SUCCESS)),)))
    world.node()
    world.apply(make_pod())
    await world.settle()
    assert world.events.of("Scheduled") == [("p", "Successfully assigned default/p to n1")]
    assert world.binder.sent == []


async def test_post_bind_runs_after_success_and_may_break(
    make_world: MakeWorld, caplog: pytest.LogCaptureFixture
) -> None:
    class After(PostBind):
        name = "After"
        seen: list[str] = []  # noqa: RUF012

        def post_bind(self, state: Any, pod: Any, node: str) -> None:
            self.seen.append(f"{pod.pod.name} on {node}")
            raise OSError("boom")

    world = make_world(fitting_profile(post_bind=(After(),)))
    world.node()
    world.apply(make_pod())
    await world.settle()
    assert After.seen == ["p on n1"]
    assert world.observer.attempts() == ["scheduled"]
    assert any(record.message == "Plugin failed" for record in caplog.records)


# Permit


async def test_a_held_pod_keeps_its_node_and_says_where_it_goes(make_world: MakeWorld) -> None:
    world = make_world(fitting_profile(permit=[HoldingPermit()]))
    world.node()
    pod = world.apply(make_pod())
    await world.settle()
    assert (world.bound, world.used()) == ({}, 100)
    assert world.patches == [("p", {"nominatedNodeName": "n1"})]
    assert pod.uid in world.scheduler.queue.in_flight
    held = world.scheduler.waiting.get(pod.uid)
    assert held is not None
    held.allow("Hold")
    await world.settle()
    assert world.bound == {"p": "n1"}
    assert len(world.scheduler.waiting) == 0
    assert world.observer.of("permit_wait") == [("Success", 0.0)]


async def test_held_pods_do_not_keep_others_from_binding(make_world: MakeWorld) -> None:
    world = make_world(fitting_profile(permit=[HoldingPermit(free=["free"])]), parallel_bindings=1)
    world.node()
    for name in ("a", "b", "c", "free"):
        world.apply(make_pod(name))
    await world.settle()
    assert world.bound == {"free": "n1"}


async def test_nobody_is_bound_to_a_node_that_was_deleted_meanwhile(make_world: MakeWorld) -> None:
    world = make_world(fitting_profile(permit=[HoldingPermit()]))
    node = world.node("n1")
    pod = world.apply(make_pod())
    await world.settle()
    world.scheduler.handle("Node", node, None)
    world.node("n2")
    held = world.scheduler.waiting.get(pod.uid)
    assert held is not None
    held.allow("Hold")
    await world.settle()
    assert world.bound == {}
    ((_pod, note),) = world.events.of("FailedScheduling")
    assert note == "node n1 was deleted before the pod could be bound"
    await world.after(3.0)
    (held,) = world.scheduler.waiting.all()
    held.allow("Hold")
    await world.settle()
    assert world.bound == {"p": "n2"}


async def test_a_node_that_came_back_in_time_is_as_good_as_before(make_world: MakeWorld) -> None:
    world = make_world(fitting_profile(permit=[HoldingPermit()]))
    node = world.node("n1")
    world.apply(make_pod())
    await world.settle()
    world.scheduler.handle("Node", node, None)
    world.scheduler.handle("Node", None, node)
    (held,) = world.scheduler.waiting.all()
    held.allow("Hold")
    await world.settle()
    assert world.bound == {"p": "n1"}


async def test_a_held_pod_times_out_and_does_not_wake_itself(make_world: MakeWorld) -> None:
    log: list[str] = []
    world = make_world(fitting_profile(permit=[HoldingPermit(10.0, free=["w"])], reserve=[NotingReserve("R", log)]))
    world.node()
    pod = world.apply(make_pod("p", cpu="3"))
    waiter = world.apply(make_pod("w", cpu="2"))
    await world.settle()
    assert world.queued(waiter).attempts == 1
    await world.after(10.0)
    assert log == ["R reserve p on n1", "R unreserve p", "R reserve w on n1"]
    note = "0/1 nodes are available: 1 rejected due to timeout after waiting 10s at plugin Hold."
    assert dict(world.events.of("FailedScheduling"))["p"] == note
    queued = world.queued(pod)
    assert (queued.place, queued.unschedulable_plugins, queued.attempts) == (Place.UNSCHEDULABLE, {"Hold"}, 1)
    assert world.bound == {"w": "n1"}
    assert ("p", {"nominatedNodeName": None}) not in world.patches
    assert world.patches[-1][0] == "p"
    assert world.patches[-1][1]["nominatedNodeName"] is None


async def test_events_during_the_wait_are_not_lost(make_world: MakeWorld) -> None:
    world = make_world(fitting_profile(permit=[HoldingPermit(10.0)]))
    world.node()
    pod = world.apply(make_pod())
    await world.settle()
    world.node("n2")
    assert world.scheduler.queue.in_flight.event_count == 1
    held = world.scheduler.waiting.get(pod.uid)
    assert held is not None
    held.reject("NodeResourcesFit", "try another")
    await world.settle()
    assert world.scheduler.waiting.get(pod.uid) is not None
    assert world.scheduler.queue.in_flight.event_count == 0


async def test_a_preempted_held_pod_is_no_refusal(make_world: MakeWorld) -> None:
    world = make_world(fitting_profile(permit=[HoldingPermit()]))
    world.node()
    pod = world.apply(make_pod())
    await world.settle()
    assert world.scheduler.bindings.cancel(pod.uid, "preempted")
    await world.settle()
    assert world.events.of("FailedScheduling") == [("p", "waiting on permit for pod: preempted")]
    assert world.queued(pod).place is Place.ERROR_BACKOFF
    assert world.used() == 0


# PreBind


async def test_pre_bind_comes_before_bind_and_after_the_word_where_it_goes(make_world: MakeWorld) -> None:
    async def work(handle: Any) -> Status | None:
        assert world.bound == {}
        assert await handle.until("PersistentVolumeClaim", "default/c", lambda claim: True, 600.0)
        await handle.patch("PersistentVolumeClaim", "default", "c", {"a": 1})
        return None

    world = make_world(fitting_profile(pre_bind=(SlowPreBind(work, skip=["quick"]),)))
    world.node()
    pod = world.apply(make_pod("p"))
    world.apply(make_pod("quick"))
    await world.settle()
    assert world.bound == {"quick": "n1"}
    assert world.patches == [("p", {"nominatedNodeName": "n1"})]
    assert pod.uid not in world.scheduler.queue.in_flight
    world.clock.advance(7.0)
    world.objects.holds.set()
    await world.settle()
    assert ("Slow", "PreBind", "Success", 7.0) in world.observer.of("plugin")
    assert world.bound == {"quick": "n1", "p": "n1"}
    assert world.objects.patches == [("PersistentVolumeClaim", "default/c", {"a": 1})]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(error("boom"), "SchedulerError"), (unschedulable("no volume"), "Unschedulable"), (None, "SchedulerError")],
)
async def test_a_pre_bind_that_fails_is_tried_again(make_world: MakeWorld, answer: Status | None, reason: str) -> None:
    async def work(handle: Any) -> Status | None:
        if answer is None:
            raise OSError("broken")
        return answer

    log: list[str] = []
    world = make_world(
        fitting_profile(pre_bind=(SlowPreBind(work),), reserve=[NotingReserve("A", log), NotingReserve("B", log)])
    )
    world.node()
    pod = world.apply(make_pod())
    await world.settle()
    assert world.bound == {}
    assert world.used() == 0
    assert log[2:] == ["B unreserve p", "A unreserve p"]
    assert world.queued(pod).place is Place.ERROR_BACKOFF
    assert world.patches[-1][1]["conditions"][0]["reason"] == reason


async def test_a_pod_in_pre_bind_can_be_cancelled(make_world: MakeWorld) -> None:
    cancelled = []

    async def work(handle: Any) -> Status | None:
        try:
            await handle.until("PersistentVolumeClaim", "default/c", lambda claim: True, 600.0)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise
        return None

    world = make_world(fitting_profile(pre_bind=(SlowPreBind(work),)))
    world.node()
    pod = world.apply(make_pod())
    await world.settle()
    assert world.scheduler.bindings.cancel(pod.uid, "preempted by Preemption")
    assert world.scheduler.bindings.cancel(pod.uid, "again")
    await world.settle()
    assert cancelled == [True]
    assert world.bound == {}
    assert world.used() == 0
    assert world.events.of("FailedScheduling") == [("p", "preempted by Preemption")]
    assert not world.scheduler.bindings.cancel(pod.uid, "too late")


async def test_a_pre_bind_that_swallows_its_cancellation_does_not_bind(make_world: MakeWorld) -> None:
    async def work(handle: Any) -> Status | None:
        try:
            await handle.until("PersistentVolumeClaim", "default/c", lambda claim: True, 600.0)
        except asyncio.CancelledError:
            return None
        return None

    world = make_world(fitting_profile(pre_bind=(SlowPreBind(work),)))
    world.node()
    pod = world.apply(make_pod())
    await world.settle()
    world.scheduler.bindings.cancel(pod.uid, "preempted")
    await world.settle()
    assert world.bound == {}
    assert world.queued(pod).place is Place.ERROR_BACKOFF


async def test_a_binding_that_has_not_begun_can_be_cancelled(make_world: MakeWorld) -> None:
    async def work(handle: Any) -> Status | None:
        raise AssertionError("must not run")

    world = make_world(fitting_profile(pre_bind=(SlowPreBind(work),)))
    world.node()
    pod = world.apply(make_pod())
    world.scheduler.loop.run_slice()
    assert world.scheduler.bindings.cancel(pod.uid, "preempted")
    await world.settle()
    assert world.queued(pod).place is Place.ERROR_BACKOFF


async def test_a_pod_in_bind_cannot_be_cancelled(world: World) -> None:
    world.binder.hold()
    world.node()
    pod = world.apply(make_pod())
    await world.settle()
    assert not world.scheduler.bindings.cancel(pod.uid, "preempted")
    world.binder.release()
    await world.settle()
    assert world.bound == {"p": "n1"}


async def test_a_broken_pre_flight_is_an_error(make_world: MakeWorld) -> None:
    class Broken(SlowPreBind):
        def pre_bind_pre_flight(self, state: Any, pod: Any, node: str) -> Status | None:
            raise OSError("boom")

    async def work(handle: Any) -> Status | None:
        raise AssertionError("must not run")

    world = make_world(fitting_profile(pre_bind=(Broken(work),)))
    world.node()
    pod = world.apply(make_pod())
    await world.settle()
    assert world.events.of("FailedScheduling") == [("p", 'running PreBindPreFlight "Slow": boom')]
    assert world.queued(pod).place is Place.ERROR_BACKOFF


# The end


async def test_draining_waits_for_bindings_that_were_sent(make_world: MakeWorld) -> None:
    world = make_world(fitting_profile(permit=[HoldingPermit(free=["sent"])]))
    world.binder.hold()
    world.node()
    world.apply(make_pod("sent"))
    held = world.apply(make_pod("held"))
    await world.settle()
    draining = asyncio.create_task(world.scheduler.bindings.drain(60.0))
    await world.settle()
    assert not draining.done()
    world.binder.release()
    await draining
    assert world.observer.attempts() == ["scheduled"]
    assert world.events.of("FailedScheduling") == []
    assert (len(world.scheduler.bindings), world.used()) == (0, 100)
    assert world.scheduler.cache.pod(held.uid) is None


async def test_bindings_that_do_not_finish_in_time_are_given_up(world: World) -> None:
    world.binder.hold()
    world.node()
    world.apply(make_pod())
    await world.settle()
    await world.scheduler.bindings.drain(0.0)
    assert (len(world.scheduler.bindings), world.used()) == (0, 0)
    assert world.events.told == []
    assert world.patches == []


async def test_bindings_that_have_not_begun_are_taken_back(make_world: MakeWorld) -> None:
    world = make_world(fitting_profile(permit=[HoldingPermit()]))
    world.node()
    world.apply(make_pod())
    world.scheduler.loop.run_slice()
    await world.scheduler.bindings.drain(60.0)
    assert (len(world.scheduler.bindings), world.used()) == (0, 0)
