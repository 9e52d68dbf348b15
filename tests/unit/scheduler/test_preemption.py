"""Evictions: each victim once, in the background, and the preemptor hears of it."""

from __future__ import annotations

from typing import Any

from kube_pyscheduler.framework.cluster_event import EventRegistration, QueueingHint
from kube_pyscheduler.framework.diagnosis import Diagnosis
from kube_pyscheduler.framework.interfaces import PostFilter, PostFilterResult, PreEnqueue
from kube_pyscheduler.framework.status import SUCCESS, Status, unresolvable
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.scheduling_queue.queued_pod import Place
from tests.unit.scheduler.conftest import MakeWorld
from tests.unit.scheduler.world import HoldingPermit, World, fitting_profile
from tests.unit.scheduling_queue.builders import POD_DELETE, make_pod


class EvictEverybody(PostFilter, PreEnqueue):
    """Wants the pods of lower priority on n1 gone, and keeps the preemptor out while they are being deleted."""

    name = "EvictEverybody"

    def __init__(self) -> None:
        self.world: World | None = None
        self.eligible: set[str] | None = None

    def post_filter(self, ctx: Any, pod: Any, diagnosis: Diagnosis) -> tuple[PostFilterResult | None, Status]:
        on_node = ctx.table.pods[ctx.table.row_of["n1"]].values()
        victims = tuple(info.pod for info in on_node if info.pod.priority < pod.pod.priority)
        if not victims or (self.eligible is not None and pod.pod.name not in self.eligible):
            return PostFilterResult(""), unresolvable("no victims")
        return PostFilterResult("n1", victims), SUCCESS

    def pre_enqueue(self, pod: Pod, view: Any) -> Status | None:
        assert self.world is not None
        return unresolvable("preempting") if self.world.scheduler.preemption.is_running(pod.uid) else None

    def events(self) -> Any:
        return (EventRegistration(POD_DELETE, lambda pod, old, new, view: QueueingHint.SKIP),)


def preempting(make_world: MakeWorld, plugin: EvictEverybody | None = None, **points: Any) -> World:
    plugin = plugin or EvictEverybody()
    world = make_world(fitting_profile(post_filter=(plugin,), pre_enqueue=[plugin], **points))
    plugin.world = world
    world.node()
    return world


async def test_victims_are_deleted_once_and_the_preemptor_gets_their_place(make_world: MakeWorld) -> None:
    world = preempting(make_world)
    victims = [world.apply(make_pod(f"v{number}", node="n1", cpu="2")) for number in range(2)]
    high = world.apply(make_pod("high", cpu="3", priority=100))
    await world.settle()
    assert sorted(world.evictions.names) == ["v0", "v1"]
    assert world.evictions.messages[0] == "pysched: preempting to accommodate a higher priority pod"
    assert sorted(world.events.of("Preempted")) == [
        (f"v{number}", f"Preempted by pod {high.uid} on node n1") for number in range(2)
    ]
    assert world.scheduler.queue.nominator.node_of(high.uid) == "n1"
    assert world.observer.of("preemption") == [(2,)]
    assert world.queued(high).place is Place.UNSCHEDULABLE
    for victim in victims:
        world.delete(victim)
    await world.settle()
    assert world.bound == {"high": "n1"}
    assert len(world.evictions.names) == 2


async def test_victims_on_their_way_out_are_left_alone(make_world: MakeWorld) -> None:
    world = preempting(make_world)
    world.apply(make_pod("v", node="n1", cpu="4", deletion="2026-01-01T00:00:00Z"))
    high = world.apply(make_pod("high", cpu="3", priority=100))
    await world.settle()
    assert world.evictions.names == []
    assert not world.scheduler.preemption.is_running(high.uid)


async def test_the_preemptor_is_not_tried_while_evictions_run(make_world: MakeWorld) -> None:
    world = preempting(make_world)
    world.evictions.released.clear()
    world.apply(make_pod("a", node="n1", cpu="2"))
    world.apply(make_pod("b", node="n1", cpu="2"))
    other = world.apply(make_pod("unrelated", node="n1", cpu="0"))
    high = world.apply(make_pod("high", cpu="3", priority=100))
    await world.settle()
    assert world.scheduler.preemption.is_running(high.uid)
    world.delete(other)
    await world.after(20.0)
    assert world.queued(high).gating_plugin == "EvictEverybody"
    assert world.queued(high).attempts == 1
    world.evictions.released.set()
    await world.settle()
    assert not world.scheduler.preemption.is_running(high.uid)


async def test_nobody_else_is_evicted_for_a_preemptor_that_somebody_bound_meanwhile(make_world: MakeWorld) -> None:
    world = preempting(make_world)
    world.evictions.released.clear()
    for name in ("a", "b"):
        world.apply(make_pod(name, node="n1", cpu="2"))
    world.apply(make_pod("high", cpu="3", priority=100))
    await world.settle()
    assert len(world.evictions.names) == 1, "the last one follows the others"
    world.apply(make_pod("high", cpu="3", priority=100, node="n2", version="2"))
    world.evictions.released.set()
    await world.settle()
    assert len(world.evictions.names) == 1


async def test_the_last_victim_seen_to_go_ends_the_preemption(make_world: MakeWorld) -> None:
    world = preempting(make_world)
    world.evictions.released.clear()
    victim = world.apply(make_pod("v", node="n1", cpu="4"))
    high = world.apply(make_pod("high", cpu="3", priority=100))
    await world.settle()
    assert world.scheduler.preemption.is_running(high.uid)
    world.apply(make_pod("v", node="n1", cpu="4", version="2", deletion="2026-01-01T00:00:00Z"))
    assert not world.scheduler.preemption.is_running(high.uid)
    world.delete(victim)
    await world.settle()
    assert world.bound == {"high": "n1"}
    world.evictions.released.set()
    await world.settle()


async def test_a_victim_of_whose_end_decisions_know_nothing_yet_is_waited_for(make_world: MakeWorld) -> None:
    world = preempting(make_world)
    world.evictions.released.clear()
    victim = world.apply(make_pod("v", node="n1", cpu="4"))
    high = world.apply(make_pod("high", cpu="3", priority=100))
    await world.settle()
    # A new list does not have it any more, and its end has not been handed out.
    del world.pods.by_key[victim.key]
    world.evictions.released.set()
    await world.settle()
    assert world.queued(high).attempts == 1
    world.pods.by_key[victim.key] = victim
    world.delete(victim)
    await world.settle()
    assert world.bound == {"high": "n1"}


async def test_a_failed_eviction_is_tried_again_after_a_backoff(make_world: MakeWorld) -> None:
    world = preempting(make_world)
    world.evictions.broken = {"a"}
    for name in ("a", "b"):
        world.apply(make_pod(name, node="n1", cpu="2"))
    high = world.apply(make_pod("high", cpu="3", priority=100))
    await world.settle()
    assert world.evictions.names == ["a"]
    assert world.queued(high).place is Place.ERROR_BACKOFF
    world.evictions.broken.clear()
    await world.after(2.0)
    assert world.evictions.names == ["a", "a", "b"]


async def test_held_victims_are_cancelled_not_deleted(make_world: MakeWorld) -> None:
    world = preempting(make_world, permit=[HoldingPermit(free=["high"])])
    low = world.apply(make_pod("low", cpu="3"))
    await world.settle()
    high = world.apply(make_pod("high", cpu="3", priority=100))
    await world.settle()
    assert world.evictions.names == []
    assert world.events.of("Preempted") == [
        ("low", f"Preempted by pod {high.uid} on node n1 (in kube-scheduler memory).")
    ]
    assert world.bound == {"high": "n1"}
    assert low.uid in world.scheduler.queue


async def test_lesser_promises_on_the_node_are_withdrawn(make_world: MakeWorld) -> None:
    plugin = EvictEverybody()
    world = preempting(make_world, plugin)
    world.apply(make_pod("v", node="n1", cpu="4"))
    mid = world.apply(make_pod("mid", cpu="3", priority=50))
    await world.settle()
    assert world.scheduler.queue.nominator.node_of(mid.uid) == "n1"
    plugin.eligible = {"high"}
    high = world.apply(make_pod("high", cpu="3", priority=100))
    await world.settle()
    promised = world.scheduler.queue.nominator
    assert [promised.node_of(pod.uid) for pod in (high, mid)] == ["n1", ""]
    assert world.evictions.names == ["v"]
    assert world.queued(mid).attempts == 2
    assert [status for name, status in world.patches if name == "mid"][-1]["nominatedNodeName"] is None


async def test_promises_stay_where_all_victims_are_leaving_already(make_world: MakeWorld) -> None:
    plugin = EvictEverybody()
    world = preempting(make_world, plugin)
    world.apply(make_pod("v", node="n1", cpu="4"))
    mid = world.apply(make_pod("mid", cpu="3", priority=50))
    await world.settle()
    world.apply(make_pod("v", node="n1", cpu="4", version="2", deletion="2026-01-01T00:00:00Z"))
    high = world.apply(make_pod("high", cpu="3", priority=100))
    await world.settle()
    promised = world.scheduler.queue.nominator
    assert [promised.node_of(pod.uid) for pod in (high, mid)] == ["n1", "n1"]
    assert world.queued(mid).attempts == 1


async def test_who_counted_on_the_eviction_of_another_hears_that_it_failed(make_world: MakeWorld) -> None:
    world = preempting(make_world)
    world.evictions.released.clear()
    world.evictions.broken = {"v"}
    world.apply(make_pod("v", node="n1", cpu="4"))
    preemptors = [world.apply(make_pod(name, cpu="2", priority=100)) for name in ("first", "second")]
    await world.settle()
    assert world.evictions.names == ["v"]
    assert [world.queued(pod).place for pod in preemptors] == [Place.UNSCHEDULABLE] * 2
    world.evictions.released.set()
    await world.settle()
    assert [world.queued(pod).place for pod in preemptors] == [Place.ERROR_BACKOFF] * 2


async def test_a_preemptor_that_is_tried_again_early_may_choose_others(make_world: MakeWorld) -> None:
    """Its last victim was seen to go, so it is not kept out; the answer to that deletion comes later."""
    world = preempting(make_world)
    world.evictions.released.clear()
    victim = world.apply(make_pod("v", node="n1", cpu="4"))
    high = world.apply(make_pod("high", cpu="3", priority=100))
    await world.settle()
    world.delete(victim)
    world.apply(make_pod("w", node="n1", cpu="4"))
    await world.after(10.0)
    assert world.evictions.names == ["v", "w"]
    world.evictions.released.set()
    await world.settle()
    assert not world.scheduler.preemption.is_running(high.uid)
    world.delete(next(pod for pod in world.pods if pod.name == "w"))
    await world.after(10.0)
    assert world.bound == {"high": "n1"}


async def test_a_preemption_without_anybody_to_remove_is_not_measured(make_world: MakeWorld) -> None:
    world = preempting(make_world)
    world.apply(make_pod("v", node="n1", cpu="4", deletion="2026-01-01T00:00:00Z"))
    world.apply(make_pod("high", cpu="3", priority=100))
    await world.settle()
    assert world.observer.of("preemption") == []
