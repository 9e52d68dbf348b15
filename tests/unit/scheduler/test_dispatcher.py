"""Status patches: merged, bounded, not sent where they change nothing, retried, forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kube_pyscheduler.kit.clock import FakeClock
from kube_pyscheduler.kit.tasks import Tasks
from kube_pyscheduler.objects.pod import Pod, PodCondition
from kube_pyscheduler.scheduler.dispatcher import ATTEMPTS, StatusDispatcher
from tests.unit.scheduling_queue.builders import make_pod, with_status


class Api:
    """Takes patches; holds them back or fails while told to."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self.failures = 0
        self.open = asyncio.Event()
        self.open.set()
        self.running = 0
        self.most = 0
        self.answered = asyncio.Event()
        self.slept: list[float] = []
        self.awake = asyncio.Event()
        self.awake.set()

    async def send(self, pod: Pod, body: dict[str, Any]) -> None:
        assert body["metadata"] == {"uid": pod.uid}
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await self.open.wait()
        finally:
            self.running -= 1
        if self.failures:
            self.failures -= 1
            raise OSError("no connection")
        self.sent.append((pod.name, body["status"]))
        self.answered.set()

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await self.awake.wait()


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
async def dispatcher(api: Api) -> AsyncIterator[StatusDispatcher]:
    async with Tasks() as tasks:
        yield StatusDispatcher(api.send, tasks, FakeClock(1_767_225_600.0), parallel=2, sleep=api.sleep)


def condition(**more: Any) -> dict[str, Any]:
    return {"type": "PodScheduled", "status": "False", **more}


def refused(pod: Pod, reason: str, message: str) -> Pod:
    """The pod as the watch shows it after our patch."""
    return with_status(
        pod, conditions=(PodCondition(type="PodScheduled", status="False", reason=reason, message=message),)
    )


async def test_condition_and_nomination_go_in_one_patch(api: Api, dispatcher: StatusDispatcher) -> None:
    pod = make_pod()
    dispatcher.patch_status(pod, reason="Unschedulable", message="no", nominated_node="n1", observed_generation=3)
    assert len(dispatcher) == 1
    await settle()
    stamp = "2026-01-01T00:00:00Z"
    expected = condition(reason="Unschedulable", message="no", observedGeneration=3, lastTransitionTime=stamp)
    assert api.sent == [("p", {"conditions": [expected], "nominatedNodeName": "n1"})]
    assert len(dispatcher) == 0


async def test_what_changes_nothing_is_not_sent(api: Api, dispatcher: StatusDispatcher) -> None:
    pod = with_status(refused(make_pod(), "Unschedulable", "no"), nominated_node_name="n1")
    dispatcher.patch_status(pod, reason="Unschedulable", message="no", nominated_node="n1")
    dispatcher.patch_status(make_pod("q"), nominated_node="")
    dispatcher.patch_status(make_pod("r"))
    assert len(dispatcher) == 0
    await settle()
    assert api.sent == []


async def test_a_repeated_refusal_is_sent_once_though_the_watch_is_late(api: Api, dispatcher: StatusDispatcher) -> None:
    pod = make_pod()
    for _ in range(3):
        dispatcher.patch_status(pod, reason="Unschedulable", message="no", nominated_node="")
        await settle()
    assert len(api.sent) == 1
    newer = refused(pod, "Unschedulable", "no")
    dispatcher.patch_status(newer, reason="Unschedulable", message="no")
    await settle()
    assert len(api.sent) == 1


async def test_the_transition_time_stays_while_the_condition_stays_false(
    api: Api, dispatcher: StatusDispatcher
) -> None:
    dispatcher.patch_status(refused(make_pod(), "Unschedulable", "no"), reason="Unschedulable", message="still no")
    await settle()
    assert api.sent == [("p", {"conditions": [condition(reason="Unschedulable", message="still no")]})]


async def test_a_promise_is_cleared_with_null(api: Api, dispatcher: StatusDispatcher) -> None:
    dispatcher.patch_status(make_pod(nominated="n1"), nominated_node="")
    await settle()
    assert api.sent == [("p", {"nominatedNodeName": None})]


async def test_wishes_merge_while_they_wait(api: Api, dispatcher: StatusDispatcher) -> None:
    api.open.clear()
    for name in ("a", "b"):
        dispatcher.patch_status(make_pod(name), nominated_node="n1")
    await settle()
    pod = make_pod()
    dispatcher.patch_status(pod, reason="Unschedulable", message="first", nominated_node="n1")
    dispatcher.patch_status(pod, reason="Unschedulable", message="second")
    dispatcher.patch_status(pod, nominated_node="n2")
    assert len(dispatcher) == 3
    api.open.set()
    await settle()
    (sent,) = [status for name, status in api.sent if name == "p"]
    assert (sent["conditions"][0]["message"], sent["nominatedNodeName"]) == ("second", "n2")


async def test_no_two_patches_of_one_pod_and_not_too_many_at_once(api: Api, dispatcher: StatusDispatcher) -> None:
    api.open.clear()
    pod = make_pod()
    dispatcher.patch_status(pod, nominated_node="n1")
    await settle()
    dispatcher.patch_status(pod, nominated_node="n2")
    await settle()
    assert api.running == 1
    for number in range(5):
        dispatcher.patch_status(make_pod(f"p{number}"), nominated_node="n1")
    await settle()
    assert api.running == 2
    api.open.set()
    await settle()
    assert [status["nominatedNodeName"] for name, status in api.sent if name == "p"] == ["n1", "n2"]
    assert (len(api.sent), api.most) == (7, 2)


async def test_a_wish_that_is_taken_back_is_not_sent(api: Api, dispatcher: StatusDispatcher) -> None:
    pod = make_pod()
    dispatcher.patch_status(pod, nominated_node="n1")
    dispatcher.patch_status(pod, nominated_node="")
    await settle()
    assert api.sent == []


async def test_a_failed_patch_is_sent_again_with_what_came_meanwhile(api: Api, dispatcher: StatusDispatcher) -> None:
    api.failures = 1
    api.awake.clear()
    pod = make_pod()
    dispatcher.patch_status(pod, reason="Unschedulable", message="no", nominated_node="n1")
    await settle()
    assert len(api.slept) == 1
    dispatcher.patch_status(pod, reason="Unschedulable", message="newer")
    api.awake.set()
    await settle()
    ((_name, status),) = api.sent
    assert (status["conditions"][0]["message"], status["nominatedNodeName"]) == ("newer", "n1")


async def test_patches_that_never_work_are_given_up(
    api: Api, dispatcher: StatusDispatcher, caplog: pytest.LogCaptureFixture
) -> None:
    api.failures = 99
    dispatcher.patch_status(make_pod(), nominated_node="n1")
    await settle()
    assert 99 - api.failures == ATTEMPTS
    assert [record.message for record in caplog.records] == ["Failed to patch pod status"]
    assert len(dispatcher) == 0


async def test_pods_that_are_bound_or_gone_are_forgotten(api: Api, dispatcher: StatusDispatcher) -> None:
    api.open.clear()
    for name in ("a", "b", "c"):
        dispatcher.patch_status(make_pod(name), nominated_node="n1")
    dispatcher.forget(make_pod("c").uid)
    await settle()
    dispatcher.forget(make_pod("a").uid)
    api.failures = 1
    api.open.set()
    await settle()
    assert [name for name, _status in api.sent] == ["b"]
    assert api.slept == []
    assert len(dispatcher) == 0
    dispatcher.forget(make_pod("b").uid)
    assert dispatcher._sent == {}


async def test_a_wish_at_the_very_end_of_the_last_patch_is_not_stuck(api: Api) -> None:
    async with Tasks() as tasks:
        dispatcher = StatusDispatcher(api.send, tasks, FakeClock(), parallel=1, sleep=api.sleep)
        dispatcher.patch_status(make_pod("a"), nominated_node="n1")
        await api.answered.wait()
        dispatcher.patch_status(make_pod("b"), nominated_node="n1")
        await settle()
        assert [name for name, _status in api.sent] == ["a", "b"]


async def test_draining_waits_for_what_is_to_be_sent(api: Api, dispatcher: StatusDispatcher) -> None:
    await dispatcher.drain(60.0)
    api.open.clear()
    dispatcher.patch_status(make_pod(), nominated_node="n1")
    draining = asyncio.create_task(dispatcher.drain(60.0))
    await settle()
    assert not draining.done()
    api.open.set()
    await draining
    assert len(api.sent) == 1
