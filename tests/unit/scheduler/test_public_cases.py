"""Public reports about schedulers, over ports in memory."""

from __future__ import annotations

from typing import Any

import pytest

from kube_pyscheduler.framework.cluster_event import Action, ClusterEvent, EventRegistration, QueueingHint, Resource
from kube_pyscheduler.framework.interfaces import CycleContext, PreFilter, PreFilterResult
from kube_pyscheduler.framework.status import Status, unresolvable
from kube_pyscheduler.objects.meta import ObjectMeta
from kube_pyscheduler.objects.pod import PodCondition
from kube_pyscheduler.objects.storage import PersistentVolumeClaim, PersistentVolumeClaimStatus
from kube_pyscheduler.scheduler.ports import BindOutcome, BindResult
from kube_pyscheduler.scheduling_queue.queued_pod import Place
from tests.unit.scheduler.conftest import MakeWorld
from tests.unit.scheduler.test_preemption import EvictEverybody, preempting
from tests.unit.scheduler.world import HoldingPermit, World, fitting_profile
from tests.unit.scheduling_queue.builders import (
    SCHEDULER,
    changed,
    make_pod,
    relabelled,
    tolerating,
    with_status,
)


async def test_bc_13_recreated_while_in_flight(make_world: MakeWorld) -> None:
    def decide(profile: Any, info: Any) -> Any:
        if info.uid == "A":
            world.delete(info.pod)
            world.apply(make_pod("x", uid="B", version="9"))
        return world.scheduler._decide(profile, info)

    world = make_world(decide=decide)
    world.node()
    world.apply(make_pod("x", uid="A", cpu="9"))
    await world.settle()
    assert world.bound == {"x": "n1"}
    assert world.events.of("FailedScheduling") == []
    assert world.patches == []
    world.confirm("x")
    assert world.is_idle()


async def test_bc_13_a_binding_for_the_predecessor_does_not_touch_its_successor(world: World) -> None:
    world.binder.hold()
    world.binder.answers["x"] = BindResult(BindOutcome.GONE)
    world.node()
    first = world.apply(make_pod("x", uid="A"))
    await world.settle()
    world.delete(first)
    world.apply(make_pod("x", uid="B", version="9"))
    await world.settle()
    world.binder.answers.clear()
    world.binder.release()
    await world.settle()
    assert [node for _name, node in world.binder.sent] == ["n1", "n1"]
    world.confirm("x")
    assert world.used() == 100
    assert world.is_idle()


async def test_bc_14_a_skipped_pod_leaves_nothing_behind(world: World) -> None:
    world.apply(make_pod(deletion="2026-01-01T00:00:00Z"))
    await world.settle()
    for number in range(200):
        world.node(labels={"number": str(number)})
    assert world.is_idle()


async def test_bc_16_a_second_preemption_of_a_deleted_victim_does_not_park_the_preemptor(
    make_world: MakeWorld,
) -> None:
    """The victim's end is told while the preemptor is gated by evictions that still run."""
    world = preempting(make_world)
    world.evictions.released.clear()
    first = world.apply(make_pod("v", node="n1", cpu="2"))
    second = world.apply(make_pod("w", node="n1", cpu="2"))
    high = world.apply(make_pod("high", cpu="3", priority=100))
    await world.settle()
    world.delete(first)
    world.delete(second)
    await world.settle()
    assert world.queued(high).gated
    world.evictions.released.set()
    await world.after(10.0)
    assert world.bound == {"high": "n1"}
    assert sorted(world.evictions.names) == ["v", "w"]


async def test_bc_17_one_delete_per_victim_and_no_tight_loop(make_world: MakeWorld) -> None:
    world = preempting(make_world)
    world.evictions.released.clear()
    for name in ("v1", "v2"):
        world.apply(make_pod(name, node="n1", cpu="2"))
    others = [world.apply(make_pod(f"u{number}", node="n1", cpu="0")) for number in range(50)]
    high = world.apply(make_pod("high", cpu="3", priority=100))
    await world.settle()
    for other in others:
        world.delete(other)
        await world.settle()
    assert world.queued(high).attempts == 1
    world.evictions.released.set()
    await world.settle()
    chosen = [name for name in world.evictions.names if name.startswith("v")]
    assert sorted(chosen) == ["v1", "v2"]


async def test_bc_22_a_useless_promise_is_taken_back_and_starves_nobody(make_world: MakeWorld) -> None:
    plugin = EvictEverybody()
    world = preempting(make_world, plugin)
    p0 = world.apply(make_pod("p0", node="n1", cpu="2"))
    p1 = world.apply(make_pod("p1", cpu="3", priority=50))
    await world.settle()
    assert world.scheduler.queue.nominator.node_of(p1.uid) == "n1"
    plugin.eligible = set()
    world.apply(make_pod("p2", cpu="1500m", priority=100))
    await world.settle()
    assert world.bound == {"p2": "n1"}
    world.delete(p0)
    await world.settle()
    assert world.scheduler.queue.nominator.nodes() == []
    assert [status for name, status in world.patches if name == "p1"][-1]["nominatedNodeName"] is None
    world.apply(make_pod("p3", cpu="1", priority=10))
    await world.settle()
    assert world.bound["p3"] == "n1"
    assert world.queued(p1).place is Place.UNSCHEDULABLE


async def test_bc_25_a_promise_counts_before_its_watch_event(make_world: MakeWorld) -> None:
    world = preempting(make_world)
    victim = world.apply(make_pod("victim", node="n1", cpu="4"))
    first = world.apply(make_pod("first", cpu="2", priority=10))
    await world.settle()
    assert world.pods.by_key[first.key].status.nominated_node_name == ""
    assert [info.uid for info in world.scheduler.queue.nominator.nominated_on("n1")] == [first.uid]
    world.apply(relabelled(first, touched="yes"))
    assert world.scheduler.queue.nominator.nodes() == ["n1"]
    world.node("n1", allocatable={"cpu": "5"})
    world.apply(make_pod("second", cpu="1"))
    await world.settle()
    assert world.bound == {}
    world.node("n1")
    world.delete(victim)
    await world.settle()
    assert world.bound == {"first": "n1", "second": "n1"}
    assert world.scheduler.queue.nominator.nodes() == []


async def test_bc_26_replacements_do_not_take_the_promise_away(make_world: MakeWorld) -> None:
    plugin = EvictEverybody()
    world = preempting(make_world, plugin)
    replicas = [world.apply(make_pod(f"r{number}", node="n1", cpu="400m")) for number in range(10)]
    high = world.apply(make_pod("high", cpu="4", priority=100))
    await world.settle()
    plugin.eligible = {"high"}
    for number, replica in enumerate(replicas):
        world.delete(replica)
        world.apply(make_pod(f"s{number}", cpu="400m"))
        await world.settle()
    assert world.bound == {"high": "n1"}
    assert sorted(world.evictions.names) == sorted(f"r{number}" for number in range(10))
    assert high.uid not in world.scheduler.queue


class WantsClaim(PreFilter):
    """Refuses pods until the claim c is bound, as it reads from its lister."""

    name = "WantsClaim"

    def pre_filter(self, ctx: CycleContext, pod: Any) -> PreFilterResult | Status | None:
        claim = ctx.listers.persistent_volume_claims.get("default/c")
        return None if claim is not None and claim.status.phase == "Bound" else unresolvable("claim is not bound")

    def events(self) -> Any:
        event = ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD | Action.UPDATE)
        return (EventRegistration(event, self._sees_it),)

    @staticmethod
    def _sees_it(pod: Any, old: Any, new: Any, view: Any) -> QueueingHint:
        assert view.persistent_volume_claims.get("default/c") is new
        return QueueingHint.QUEUE if new.status.phase == "Bound" else QueueingHint.SKIP


async def test_bc_40_the_next_attempt_sees_what_woke_it(make_world: MakeWorld) -> None:
    plugin = WantsClaim()
    profile = fitting_profile(pre_filter=(plugin,), permit=[])
    profile.events[plugin.name] = tuple(plugin.events())  # type: ignore[index]
    world = make_world(profile)
    world.node()
    pod = world.apply(make_pod())
    await world.settle()
    meta = ObjectMeta(name="c", namespace="default")
    pending = PersistentVolumeClaim(metadata=meta, status=PersistentVolumeClaimStatus(phase="Pending"))
    bound = PersistentVolumeClaim(metadata=meta, status=PersistentVolumeClaimStatus(phase="Bound"))
    world.scheduler.handle("PersistentVolumeClaim", None, pending)
    await world.settle()
    assert world.queued(pod).attempts == 1
    world.scheduler.handle("PersistentVolumeClaim", pending, bound)
    await world.settle()
    assert world.bound == {"p": "n1"}


async def test_bc_43_a_bind_that_timed_out_but_happened(world: World) -> None:
    """The binder reads back before anything else, and the watch comes late."""
    world.binder.hold()
    world.node()
    world.apply(make_pod(cpu="3"))
    await world.settle()
    world.clock.advance(11.0)
    world.binder.release()
    await world.settle()
    assert world.binder.sent == [("p", "n1")]
    assert world.events.of("FailedScheduling") == []
    assert world.used() == 3000
    await world.after(5.0)
    world.confirm("p")
    assert world.used() == 3000
    assert world.observer.attempts() == ["scheduled"]
    assert world.is_idle()


@pytest.mark.parametrize("watch_first", [False, True])
async def test_bc_44_already_assigned_by_somebody_else(world: World, watch_first: bool) -> None:
    world.binder.hold()
    world.binder.answers["p"] = BindResult(BindOutcome.BOUND_ELSEWHERE)
    world.node("n1")
    pod = world.apply(make_pod("p", cpu="3"))
    await world.settle()
    world.node("n2", unschedulable=True)
    waiter = world.apply(make_pod("w", cpu="2"))
    await world.settle()
    assert world.queued(waiter).place is Place.UNSCHEDULABLE
    if watch_first:
        world.confirm("p", "n2")
    world.binder.release()
    await world.settle()
    if not watch_first:
        world.confirm("p", "n2")
    await world.settle()
    assert (world.used("n1"), world.used("n2")) == (2000, 3000)
    assert pod.uid not in world.scheduler.queue
    assert "p" not in dict(world.events.of("FailedScheduling"))
    assert world.observer.of("conflict") == [("bound_elsewhere",)]
    assert dict(world.binder.sent)["w"] == "n1"


async def test_bc_47_gated_pods(world: World) -> None:
    world.node()
    pod = world.apply(make_pod(gates=["example.com/hold"]))
    await world.settle()
    assert (world.bound, world.events.told, world.patches) == ({}, [], [])
    world.apply(changed(pod, scheduling_gates=()))
    await world.settle()
    assert world.bound == {"p": "n1"}


async def test_bc_62_pending_counts(world: World) -> None:
    world.node()
    pods = [world.apply(make_pod(f"p{number}", cpu="9")) for number in range(4)]
    await world.settle()
    assert world.scheduler.queue.pending() == (0, 0, 4, 0)
    world.delete(pods[0])
    assert world.scheduler.queue.pending() == (0, 0, 3, 0)


async def test_bc_77_a_reload_changes_what_decides(make_world: MakeWorld) -> None:
    class Never(WantsClaim):
        name = "Never"

    plugin = Never()
    profile = fitting_profile(pre_filter=(plugin,))
    profile.events["Never"] = tuple(plugin.events())  # type: ignore[index]
    world = make_world(profile)
    world.node()
    pod = world.apply(make_pod())
    await world.settle()
    assert world.queued(pod).unschedulable_plugins == {"Never"}
    world.scheduler.reload({SCHEDULER: fitting_profile()})
    await world.settle()
    assert world.bound == {"p": "n1"}


async def test_bc_82_a_pod_the_queue_never_heard_of(world: World) -> None:
    world.node()
    pod = make_pod()
    world.pods.by_key[pod.key] = pod
    world.scheduler.audit.find_lost()
    world.scheduler.audit.find_lost()
    await world.settle()
    assert world.bound == {"p": "n1"}
    assert world.observer.of("lost_pod") == [()]


async def test_bc_83_our_own_status_patch_does_not_wake_the_pod(world: World) -> None:
    world.node()
    pod = world.apply(make_pod(cpu="9"))
    await world.settle()
    ((_name, status),) = world.patches
    condition = status["conditions"][0]
    patched = with_status(
        pod,
        conditions=(
            PodCondition(type="PodScheduled", status="False", reason=condition["reason"], message=condition["message"]),
        ),
    )
    world.apply(patched)
    await world.after(60.0)
    assert world.queued(pod).attempts == 1
    tolerant = world.apply(tolerating(patched))
    await world.settle()
    # The resources are what keeps it out, and tolerations do not help against that.
    assert world.queued(pod).attempts == 1
    world.apply(changed(tolerant, containers=make_pod(cpu="1").spec.containers))
    await world.settle()
    assert world.bound == {"p": "n1"}


async def test_a_gang_that_times_out_gives_everything_back_together(make_world: MakeWorld) -> None:
    """Case 73 from the side of Permit: nine of ten members are held, then all of them time out."""
    members = [f"m{number}" for number in range(9)]
    world = make_world(fitting_profile(permit=[HoldingPermit(30.0, free=["single"])]))
    world.node(allocatable={"cpu": "9"})
    for name in members:
        world.apply(make_pod(name, cpu="1"))
    single = world.apply(make_pod("single", cpu="1"))
    await world.settle()
    assert world.used() == 9000
    assert world.queued(single).place is Place.UNSCHEDULABLE
    await world.after(30.0)
    assert world.bound == {"single": "n1"}
    assert world.used() == 1000
    assert {queued.pod.name for queued in world.scheduler.queue} == set(members)
