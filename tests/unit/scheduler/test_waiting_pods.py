"""Pods that Permit holds."""

from __future__ import annotations

from kube_pyscheduler.framework.status import Code
from kube_pyscheduler.scheduler.waiting_pods import MAX_WAIT, HeldPod, WaitingPods
from tests.unit.scheduling_queue.builders import START, make_pod


async def test_all_plugins_must_allow() -> None:
    held = HeldPod(make_pod(), {"a": 10.0, "b": 20.0}, START)
    held.allow("a")
    held.allow("stranger")
    assert held.pending_plugins == ["b"]
    held.allow("b")
    assert (await held.verdict()).is_success
    assert held.deadline is None


async def test_one_rejection_is_enough_and_the_first_verdict_counts() -> None:
    held = HeldPod(make_pod(), {"a": 10.0, "b": 20.0}, START)
    assert held.reject("a", "no")
    assert not held.reject("b", "no, too")
    assert not held.preempt("c", "preempted")
    verdict = await held.verdict()
    assert (verdict.code, verdict.plugin, verdict.message) == (Code.UNSCHEDULABLE, "a", "no")


async def test_preemption_is_no_refusal() -> None:
    held = HeldPod(make_pod(), {"a": 10.0}, START)
    assert held.preempt("Preemption", "preempted")
    assert (await held.verdict()).code == Code.ERROR


async def test_the_first_deadline_ends_the_wait() -> None:
    waiting = WaitingPods()
    held = waiting.hold(make_pod(), {"slow": 90.0, "slower": 3600.0}, START)
    assert waiting.next_deadline() == START + 90
    waiting.expire(START + 89.9)
    assert held.deadline is not None
    waiting.expire(START + 90)
    verdict = await held.verdict()
    assert verdict.plugin == "slow"
    assert verdict.message == "rejected due to timeout after waiting 1m30s at plugin slow"
    assert waiting.next_deadline() is None


async def test_waits_are_cut_to_fifteen_minutes() -> None:
    held = HeldPod(make_pod(), {"a": 1e9}, START)
    assert held.deadline == START + MAX_WAIT
    held.expire(START + MAX_WAIT)
    assert "15m0s" in (await held.verdict()).message


async def test_pods_are_found_by_uid_until_they_are_released() -> None:
    waiting = WaitingPods()
    pod = make_pod()
    held = waiting.hold(pod, {"a": 1.0}, START)
    assert waiting.get(pod.uid) is held
    assert waiting.all() == [held]
    waiting.release(pod.uid)
    waiting.release(pod.uid)
    assert (len(waiting), waiting.get(pod.uid)) == (0, None)
