"""Public cases about metrics and Events."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from kube_pyscheduler.daemon.metrics import Metrics
from kube_pyscheduler.framework.interfaces import PreEnqueue
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.objects.pod import Pod
from tests.cases.stage import Stage, counter, is_event, is_pod_deletion, play
from tests.faults.proxy import Fault
from tests.unit.scheduler.world import World, fitting_profile
from tests.unit.scheduling_queue.builders import make_pod

PENDING = "scheduler_pending_pods"


def test_bc_62_the_pending_gauge_says_the_truth() -> None:
    async def story(stage: Stage) -> None:
        stage.add_node(cpu="1")
        daemon = await stage.start()

        def pending() -> dict[str, float]:
            places = ("active", "backoff", "unschedulable", "gated")
            return {place: counter(daemon, PENDING, queue=place) for place in places}

        for number in range(4):
            stage.add_pod(f"p-{number}", cpu="2")
        await stage.until(lambda: pending() == {"active": 0, "backoff": 0, "unschedulable": 4, "gated": 0})
        stage.delete_pod("p-0")
        await stage.until(lambda: pending() == {"active": 0, "backoff": 0, "unschedulable": 3, "gated": 0})

    play(story)


def test_the_pending_gauge_says_the_truth_when_gates_open_and_gated_pods_go() -> None:
    async def story(stage: Stage) -> None:
        stage.add_node()
        daemon = await stage.start()

        def pending() -> tuple[float, float]:
            return counter(daemon, PENDING, queue="unschedulable"), counter(daemon, PENDING, queue="gated")

        for name, cpu in (("fits", "1"), ("huge", "1000"), ("goes", "1")):
            stage.add_pod(name, cpu=cpu, schedulingGates=[{"name": "example.com/hold"}])
        await stage.until(lambda: pending() == (0, 3))
        for name in ("fits", "huge"):
            stage.open_gates(name)
        stage.delete_pod("goes")
        await stage.until(lambda: stage.node_of("fits") and pending() == (1, 0))
        assert counter(daemon, "scheduler_unschedulable_pods", plugin="SchedulingGates") == 0
        assert counter(daemon, "scheduler_unschedulable_pods", plugin="NodeResourcesFit") == 1

    play(story)


def test_the_time_behind_gates_is_not_the_schedulers() -> None:
    async def story(stage: Stage) -> None:
        stage.add_node()
        daemon = await stage.start()
        stage.add_pod("p", schedulingGates=[{"name": "example.com/hold"}])
        await asyncio.sleep(100.0)
        stage.open_gates("p")
        await stage.until(lambda: counter(daemon, "scheduler_schedule_attempts_total", result="scheduled") == 1)
        assert counter(daemon, "scheduler_pod_scheduling_sli_duration_seconds_sum") < 1.0
        assert counter(daemon, "scheduler_pod_scheduling_sli_duration_seconds_count", attempts="1") == 1

    play(story)


def test_a_plugin_that_refuses_and_then_gates_a_pod_is_counted_once() -> None:
    """The preemptor is refused, then kept out while its victims are deleted, by the same plugin."""

    async def story(stage: Stage) -> None:
        node = stage.add_node()
        for name in ("v1", "v2"):
            stage.add_pod(name, cpu="2", node=node)
        daemon = await stage.start()
        stage.wire.suffer_always(is_pod_deletion, Fault(delay=3.0))
        stage.add_pod("high", cpu="4", priority=100)
        await stage.until(lambda: "v1" not in {pod["metadata"]["name"] for pod in stage.world.pods()})
        await asyncio.sleep(1.0)
        assert counter(daemon, "scheduler_unschedulable_pods", plugin="DefaultPreemption") == 1
        await stage.until(lambda: stage.node_of("high"))
        assert daemon.scheduler is not None
        assert not daemon.scheduler.queue.rejections
        assert counter(daemon, PENDING, queue="gated") == counter(daemon, PENDING, queue="unschedulable") == 0

    play(story)


class SlowGate(PreEnqueue):
    """Takes 50 ms to say yes."""

    name = "SlowGate"

    def __init__(self) -> None:
        self.world: World

    def pre_enqueue(self, pod: Pod, view: Listers) -> None:
        self.world.clock.advance(0.05)


async def test_bc_64_durations_are_measured_at_the_end() -> None:
    gate = SlowGate()
    gate.world = world = World(fitting_profile(pre_enqueue=(gate,)))
    world.apply(make_pod())
    metrics = Metrics()
    for name, args in world.observer.calls:
        if name in ("event_handled", "extension_point"):
            getattr(metrics, name)(*args)
    sums = {sample.name: sample.value for family in metrics.collect() for sample in family.samples}
    assert sums["scheduler_event_handling_duration_seconds_sum"] == pytest.approx(0.05)
    assert sums["scheduler_framework_extension_point_duration_seconds_sum"] == pytest.approx(0.05)
    await world.scheduler.abort()


HOPELESS = 100
TAINT = {"key": "example.com/reserved", "effect": "NoSchedule"}


def test_bc_65_a_slow_events_api_slows_nothing_else_down() -> None:
    async def story(stage: Stage) -> None:
        stage.add_node(cpu="16")
        daemon = await stage.start()
        assert daemon._daemon is not None
        recorder = daemon._daemon._recorder
        for number in range(HOPELESS):
            stage.add_pod(f"hopeless-{number}", cpu="20")
        stage.wire.suffer_always(is_event, Fault(late=10.0))
        for number in range(12):
            # All the hopeless ones try again, in vain.
            stage.add_node(number + 1, cpu="20", taints=[TAINT])
            stage.add_pod(f"p-{number}")
            assert await stage.until(partial(stage.node_of, f"p-{number}")) < 1.0
            await asyncio.sleep(10.0)
            assert len(recorder._queue) <= HOPELESS + number + 1
        tries = counter(daemon, "scheduler_schedule_attempts_total", result="unschedulable")
        assert tries > 10 * HOPELESS
        written = [heard.asked for heard in stage.wire.of(is_event) if b"FailedScheduling" in heard.asked.body]
        assert len(written) < tries / 2
        assert recorder.counts.dropped == recorder.counts.failed == 0

    play(story)
