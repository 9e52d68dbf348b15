"""Failures: who is put back, who is not, and what is said."""

from __future__ import annotations

import pytest

from kube_pyscheduler.framework.diagnosis import Diagnosis
from kube_pyscheduler.framework.status import Code, Status, error, unschedulable
from kube_pyscheduler.scheduler.failure import NOTE_LIMIT, Failure, FailureHandler, cut_note
from kube_pyscheduler.scheduling_queue.queued_pod import Place, QueuedPod
from tests.unit.scheduler.world import World
from tests.unit.scheduling_queue.builders import SCHEDULER, START, changed, make_pod, relabelled


@pytest.fixture
def handler(world: World) -> FailureHandler:
    scheduler = world.scheduler
    return FailureHandler(
        scheduler.queue, world.pods, scheduler.status, world.events, world.observer, world.clock, [SCHEDULER]
    )


def in_flight(world: World, **more: object) -> QueuedPod:
    world.apply(make_pod(**more))  # type: ignore[arg-type]
    queued = world.scheduler.queue.pop(START)
    assert queued is not None
    return queued


def refusal(nominated: str | None = None, message: str = "no") -> Failure:
    diagnosis = Diagnosis(1, absent=unschedulable("x").by("NodeResourcesFit"))
    diagnosis.blame(unschedulable("x").by("NodeResourcesFit"))
    return Failure(Status(Code.UNSCHEDULABLE, (message,)), START, diagnosis, nominated)


async def test_a_refused_pod_waits_in_its_latest_version(world: World, handler: FailureHandler) -> None:
    queued = in_flight(world)
    newer = world.apply(relabelled(queued.pod, a="b"))
    handler.handle(queued, refusal())
    assert (queued.place, queued.pod, queued.consecutive_errors) == (Place.UNSCHEDULABLE, newer, 0)
    assert world.events.told == [("Warning", "FailedScheduling", "p", "no")]
    await world.settle()
    assert world.patches[0][1]["conditions"][0]["reason"] == "Unschedulable"


async def test_an_error_backs_off(world: World, handler: FailureHandler) -> None:
    queued = in_flight(world)
    world.clock.advance(0.5)
    handler.handle(queued, Failure(error("boom"), START))
    assert (queued.place, queued.consecutive_errors) == (Place.ERROR_BACKOFF, 1)
    assert world.observer.of("attempt") == [("pysched", "error", 0.5)]
    await world.settle()
    assert world.patches[0][1]["conditions"][0]["reason"] == "SchedulerError"


async def test_of_pods_that_need_no_node_nothing_is_said(world: World, handler: FailureHandler) -> None:
    def gone(pod: object) -> None:
        world.pods.by_key.clear()

    endings = [
        gone,
        lambda pod: world.pods.by_key.update({pod.key: changed(pod, node_name="n9")}),
        lambda pod: world.pods.by_key.update({pod.key: make_pod(uid="another")}),
        lambda pod: world.pods.by_key.update({pod.key: make_pod(deletion="2026-01-01T00:00:00Z")}),
        lambda pod: world.pods.by_key.update({pod.key: make_pod(status={"phase": "Failed"})}),
    ]
    for number, end in enumerate(endings):
        queued = in_flight(world, version=str(number + 1))
        end(queued.pod)
        handler.handle(queued, refusal(nominated="n1"))
        assert world.is_idle()
        world.pods.by_key.clear()
    await world.settle()
    assert (world.events.told, world.patches) == ([], [])
    assert world.scheduler.queue.nominator.nodes() == []


async def test_a_promise_counts_before_anything_is_sent(world: World, handler: FailureHandler) -> None:
    queued = in_flight(world)
    handler.handle(queued, refusal(nominated="n1"))
    assert world.patches == []
    assert [info.pod for info in world.scheduler.queue.nominator.nominated_on("n1")] == [queued.pod]
    await world.settle()
    assert world.patches[0][1]["nominatedNodeName"] == "n1"


async def test_without_a_word_on_it_the_promise_stays(world: World, handler: FailureHandler) -> None:
    queued = in_flight(world, nominated="n1")
    handler.handle(queued, refusal(nominated=None))
    assert world.scheduler.queue.nominator.nodes() == ["n1"]
    await world.settle()
    assert "nominatedNodeName" not in world.patches[0][1]


async def test_the_note_is_cut_and_the_condition_is_not(world: World, handler: FailureHandler) -> None:
    message = "0/5 nodes are available: " + "é" * 2000
    handler.handle(in_flight(world), refusal(message=message))
    await world.settle()
    assert len(world.events.told[0][3].encode()) <= NOTE_LIMIT
    assert world.patches[0][1]["conditions"][0]["message"] == message


@pytest.mark.parametrize(
    ("message", "note"),
    [
        ("short", "short"),
        ("x" * 1024, "x" * 1024),
        ("x" * 1025, "x" * 1020 + " ..."),
        ("é" * 600, "é" * 510 + " ..."),
        ("x" + "é" * 600, "x" + "é" * 509 + " ..."),
    ],
)
def test_notes_fit_into_1024_bytes(message: str, note: str) -> None:
    assert cut_note(message) == note
