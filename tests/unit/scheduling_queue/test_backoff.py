"""BackoffQueue: how long, in what order, and who may leave early."""

from __future__ import annotations

import pytest

from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.scheduling_queue.backoff import BackoffQueue
from kube_pyscheduler.scheduling_queue.queued_pod import Place, QueuedPod
from tests.unit.scheduling_queue.builders import START, make_pod


def rank(queued: QueuedPod) -> tuple[int, float]:
    return -queued.pod.priority, queued.timestamp


def refused(name: str, at: float = START, times: int = 1, priority: int = 0) -> QueuedPod:
    return QueuedPod(
        PodInfo(make_pod(name, priority=priority)),
        at,
        unschedulable_count=times,
        unschedulable_plugins=frozenset({"Fit"}),
    )


def failed(name: str, at: float = START, times: int = 1) -> QueuedPod:
    return QueuedPod(PodInfo(make_pod(name)), at, consecutive_errors=times)


@pytest.fixture
def queue() -> BackoffQueue:
    return BackoffQueue(1.0, 10.0, rank)


@pytest.mark.parametrize(("times", "seconds"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10), (5000, 10)])
def test_backoff_doubles_up_to_the_maximum(queue: BackoffQueue, times: int, seconds: int) -> None:
    pod = refused("p", times=times)
    assert queue.is_backing_off(pod, START + seconds)
    # The window in which a backoff ends belongs to it.
    assert queue.is_backing_off(pod, START + seconds + 0.999)
    assert not queue.is_backing_off(pod, START + seconds + 1)


def test_errors_count_by_themselves(queue: BackoffQueue) -> None:
    pod = refused("p", times=4)
    pod.consecutive_errors = 1
    assert queue.is_backing_off(pod, START + 1)
    assert not queue.is_backing_off(pod, START + 2)


def test_a_pod_that_never_failed_does_not_back_off(queue: BackoffQueue) -> None:
    assert not queue.is_backing_off(refused("p", times=0), START)


def test_maximum_zero_switches_backoff_off() -> None:
    assert not BackoffQueue(1.0, 0.0, rank).is_backing_off(refused("p", times=3), START)


def test_within_one_window_priority_decides(queue: BackoffQueue) -> None:
    for pod in (refused("low", START + 0.1), refused("high", START + 0.9, priority=5), refused("later", START + 1.0)):
        queue.add(pod)
    assert [pod.pod.name for pod in queue.pop_completed(START + 3)] == ["high", "low", "later"]


def test_only_refused_pods_leave_early(queue: BackoffQueue) -> None:
    error, pod = failed("error"), refused("refused")
    queue.add(error)
    queue.add(pod)
    assert (error.place, pod.place) == (Place.ERROR_BACKOFF, Place.BACKOFF)
    assert queue.has_early
    assert queue.pop_early() is pod
    assert not queue.has_early
    assert queue.pop_early() is None
    assert len(queue) == 1


def test_completed_pods_leave_and_the_next_moment_is_known(queue: BackoffQueue) -> None:
    assert queue.next_completion() is None
    queue.add(failed("a", times=1))
    queue.add(refused("b", times=2))
    assert queue.next_completion() == START + 2
    assert queue.pop_completed(START + 1.5) == []
    assert [pod.pod.name for pod in queue.pop_completed(START + 2)] == ["a"]
    assert queue.next_completion() == START + 3


def test_removed_pods_are_gone(queue: BackoffQueue) -> None:
    pods = [refused("a"), failed("b")]
    for pod in pods:
        queue.add(pod)
    assert set(queue) == set(pods)
    for pod in pods:
        queue.remove(pod)
    assert len(queue) == 0
