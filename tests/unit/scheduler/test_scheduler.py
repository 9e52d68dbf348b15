"""The scheduler as one thing: start, stop, reload, refresh, dump."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.framework.diagnosis import Diagnosis
from kube_pyscheduler.framework.handle import BindingHandle
from kube_pyscheduler.framework.interfaces import CycleContext, PostFilter, PostFilterResult, Refreshing
from kube_pyscheduler.framework.status import Status, unschedulable
from kube_pyscheduler.kit.clock import FakeClock
from kube_pyscheduler.kit.tasks import TaskCrashed
from kube_pyscheduler.plugins.node_resources.fit import NodeResourcesFit
from kube_pyscheduler.scheduler.audit import PAUSE
from kube_pyscheduler.scheduler.handles import CycleHandle
from kube_pyscheduler.scheduler.waiting_pods import WaitingPods
from kube_pyscheduler.scheduling_queue.nominator import Nominator
from tests.unit.scheduler.conftest import MakeWorld
from tests.unit.scheduler.world import HoldingPermit, World, fitting_profile
from tests.unit.scheduling_queue.builders import SCHEDULER, make_pod


class Looking(Refreshing):
    """Notes each refresh, and fails at the first."""

    name = "Looking"

    def __init__(self) -> None:
        self.looks = 0

    async def refresh(self, handle: BindingHandle) -> None:
        self.looks += 1
        assert handle.now() > 0
        if self.looks == 1:
            raise OSError("not there yet")


async def test_events_before_the_start_are_decided_after_it(world: World) -> None:
    world.node()
    world.apply(make_pod())
    await asyncio.sleep(0)
    assert world.binder.sent == []
    world.scheduler.start()
    await world.binder.called.wait()
    await world.scheduler.stop()
    assert world.bound == {"p": "n1"}
    assert world.observer.attempts() == ["scheduled"]


async def test_after_the_stop_nothing_is_popped(world: World) -> None:
    world.node()
    world.scheduler.start()
    await asyncio.sleep(0)
    await world.scheduler.stop()
    world.apply(make_pod())
    await world.settle()
    assert world.binder.sent == []


async def test_stopping_lets_sent_bindings_finish(world: World) -> None:
    world.binder.hold()
    world.node()
    world.scheduler.start()
    world.apply(make_pod("sent"))
    await world.binder.called.wait()
    stopping = asyncio.create_task(world.scheduler.stop(60.0))
    await asyncio.sleep(0)
    world.apply(make_pod("late"))
    world.binder.release()
    await stopping
    assert world.bound == {"sent": "n1"}
    assert world.events.of("Scheduled")[0][0] == "sent"


async def test_stopping_lets_status_patches_out(world: World) -> None:
    world.node()
    world.scheduler.start()
    world.apply(make_pod(cpu="9"))
    world.scheduler.loop.run_slice()
    await world.scheduler.stop()
    assert [name for name, _status in world.patches] == ["p"]


async def test_aborting_ends_everything_at_once(world: World) -> None:
    world.binder.hold()
    world.node()
    world.scheduler.start()
    world.apply(make_pod())
    await world.binder.called.wait()
    await world.scheduler.abort()
    assert (len(world.scheduler.bindings), world.used()) == (0, 0)
    assert (world.events.told, world.patches) == ([], [])


async def test_a_broken_loop_reaches_the_owner(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_now: float) -> None:
        raise AssertionError("corrupt")

    monkeypatch.setattr(world.scheduler.queue, "pop", broken)
    world.scheduler.start()
    with pytest.raises(TaskCrashed, match="scheduling loop"):
        await world.scheduler.crashed()


async def test_audits_run_now_and_then(world: World) -> None:
    world.scheduler.start()
    await world.settle()
    assert world.sleeps == [PAUSE]


async def test_plugins_that_look_outside_do_so_off_cycle(
    make_world: MakeWorld, caplog: pytest.LogCaptureFixture
) -> None:
    plugin = Looking()
    world = make_world(fitting_profile(refreshing=(plugin,)))
    pauses: list[float] = []
    looked = asyncio.Event()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if plugin.looks == 2:
            looked.set()
        if plugin.looks == 2:
            await asyncio.Event().wait()

    world.scheduler._sleep = sleep
    world.scheduler.start()
    await looked.wait()
    assert pauses.count(plugin.refresh_seconds) == 2
    assert [record.message for record in caplog.records] == ["Refreshing failed"]


async def test_a_reload_swaps_the_plugins_and_their_refreshes(make_world: MakeWorld) -> None:
    first, second = Looking(), Looking()
    world = make_world(fitting_profile(refreshing=(first,), permit=[HoldingPermit()]))
    world.scheduler.start()
    world.node()
    world.apply(make_pod("old"))
    await world.settle()
    assert len(world.scheduler.waiting) == 1
    world.scheduler.reload({SCHEDULER: fitting_profile(refreshing=(second,))})
    world.apply(make_pod("new"))
    await world.settle()
    assert world.bound == {"new": "n1"}
    assert (first.looks, second.looks) == (1, 1)
    # What was in flight finishes with the plugins it started with.
    (held,) = world.scheduler.waiting.all()
    held.allow("Hold")
    await world.settle()
    assert world.bound == {"new": "n1", "old": "n1"}


async def test_a_reload_leaves_nothing_of_the_old_plugins(make_world: MakeWorld) -> None:
    plugin = NodeResourcesFit()
    gone = weakref.ref(plugin)
    world = make_world(fitting_profile(filter=(plugin,)))
    world.scheduler.start()
    world.node()
    world.apply(make_pod("placed"))
    world.apply(make_pod("refused", cpu="9"))
    await world.settle()
    assert world.bound == {"placed": "n1"}
    world.scheduler.reload({SCHEDULER: fitting_profile()})
    await world.settle()
    world.binder.is_free = lambda: True
    del plugin
    gc.collect()
    assert gone() is None


async def test_a_reload_lets_the_refreshes_of_plugins_that_stay_go_on(make_world: MakeWorld) -> None:
    plugin = Looking()
    world = make_world(fitting_profile(refreshing=(plugin,)))
    world.scheduler.start()
    await world.settle()
    for _ in range(2):
        world.scheduler.reload({SCHEDULER: fitting_profile(refreshing=(plugin,))})
        await world.settle()
    assert plugin.looks == 1


async def test_pods_are_taken_up_and_let_go_with_their_profile(make_world: MakeWorld) -> None:
    world = make_world(max_unschedulable=1e9)
    world.node()
    ours = world.apply(make_pod("ours", cpu="9"))
    theirs = world.apply(make_pod("theirs", scheduler="other"))
    world.apply(make_pod("placed", scheduler="other", node="n1", cpu="100m"))
    await world.settle()
    world.apply(make_pod("promised", cpu="9", nominated="n1"))
    queue = world.scheduler.queue
    assert (len(list(queue)), len(queue.nominator)) == (2, 1)
    world.scheduler.reload({"other": fitting_profile(name="other")})
    assert [queued.pod.name for queued in queue] == ["theirs"]
    assert len(queue.nominator) == 0
    assert not queue.rejections
    await world.settle()
    assert world.bound == {"theirs": "n1"}
    # What is on its way is not taken up a second time.
    world.scheduler.reload({SCHEDULER: fitting_profile(), "other": fitting_profile(name="other")})
    assert sorted(queued.pod.name for queued in queue) == ["ours", "promised"]
    assert len(queue.nominator) == 1
    assert world.scheduler.cache.is_assumed(theirs.uid)
    world.delete(ours)
    assert ours.uid not in queue


async def test_a_refusal_after_the_profile_has_gone_is_the_end_of_it(make_world: MakeWorld) -> None:
    world = make_world(fitting_profile(permit=[HoldingPermit()]))
    world.node()
    pod = world.apply(make_pod())
    await world.settle()
    world.scheduler.reload({"other": fitting_profile(name="other")})
    (held,) = world.scheduler.waiting.all()
    held.reject("Hold", "no")
    await world.settle()
    assert pod.uid not in world.scheduler.queue
    assert world.used() == 0
    assert world.events.of("FailedScheduling") == []


async def test_a_reload_after_the_end_starts_nothing(world: World) -> None:
    world.scheduler.start()
    await world.scheduler.stop()
    plugin = Looking()
    world.scheduler.reload({SCHEDULER: fitting_profile(refreshing=(plugin,))})
    await world.settle()
    assert plugin.looks == 0


async def test_the_dump_tells_where_pods_are(make_world: MakeWorld) -> None:
    world = make_world(fitting_profile(permit=[HoldingPermit()]))
    world.node()
    world.apply(make_pod("held"))
    world.apply(make_pod("big", cpu="9"))
    await world.settle()
    text = "\n".join(world.scheduler.dump())
    assert "Cache: 1 nodes, 1 pods, 1 of them assumed" in text
    assert "  Node n1 pods=1/110 cpu=100/4000" in text
    assert "    default/held (assumed) uid=uid-default-held cpu=100" in text
    assert "Unschedulable default/big" in text
    assert "Binding: 1 pods, 1 of them held by Permit" in text
    assert "Status patches to send: 0" in text


async def test_activation_outside_a_cycle_is_immediate() -> None:
    activated: list[str] = []
    handle = CycleHandle(
        Nominator(),
        WaitingPods(),
        lambda pods: activated.extend(pod.name for pod in pods),
        lambda _what, _pod, _work: None,
        FakeClock(),
    )
    handle.activate([make_pod("a")])
    assert activated == ["a"]
    handle.begin_cycle()
    handle.activate([make_pod("b")])
    assert activated == ["a"]
    assert [pod.name for pod in handle.end_cycle()] == ["b"]


async def test_the_handle_shows_held_pods(make_world: MakeWorld) -> None:
    waiting = WaitingPods()
    handle = CycleHandle(Nominator(), waiting, lambda _pods: None, lambda _what, _pod, _work: None, FakeClock())
    held = waiting.hold(make_pod(), {"a": 1.0}, 0.0)
    assert handle.waiting_pod(make_pod().uid) is held
    assert handle.waiting_pods() == [held]
    assert handle.waiting_pod("unknown") is None


class Helping(PostFilter):
    """Has something done for each pod that fits nowhere; that fails at the first time."""

    name = "Helping"

    def __init__(self) -> None:
        self.done: list[float] = []

    def post_filter(
        self, ctx: CycleContext, pod: PodInfo, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult | None, Status]:
        ctx.handle.later("help", pod.pod, self._help)
        return None, unschedulable("help is on its way")

    async def _help(self, handle: BindingHandle) -> None:
        self.done.append(handle.wall_time())
        if len(self.done) == 1:
            raise OSError("no connection")


async def test_work_is_done_in_the_background_and_a_pod_whose_work_fails_is_tried_again(make_world: MakeWorld) -> None:
    plugin = Helping()
    world = make_world(fitting_profile(post_filter=(plugin,)))
    world.node()
    world.apply(make_pod("big", cpu="9"))
    await world.settle()
    # Nothing happened in the cluster since: only the failure brings the pod back.
    assert plugin.done == [world.clock.now()]
    await world.after(30.0)
    assert len(plugin.done) == 2
    await world.after(30.0)
    assert len(plugin.done) == 2
