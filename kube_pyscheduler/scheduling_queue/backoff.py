"""Pods that wait for their backoff to end.

Source: pkg/scheduler/backend/queue/backoff_queue.go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from kube_pyscheduler.kit.heap import KeyedHeap
from kube_pyscheduler.scheduling_queue.queued_pod import Place, QueuedPod

WINDOW = 1.0
"""Seconds. Expirations are rounded down to whole windows; within one, pods leave in activeQ's order."""


class BackoffQueue:
    """Two heaps by expiration: pods that plugins refused, and pods whose attempt went wrong.

    ``initial`` and ``maximum``: seconds; each further failure doubles the backoff. ``maximum`` 0 switches it off. Both
    may be set anew; a backoff that has begun ends as planned. ``rank``: activeQ's order.
    """

    def __init__(self, initial: float, maximum: float, rank: Callable[[QueuedPod], Any]) -> None:
        self.initial = initial
        self.maximum = maximum
        self._rank = rank
        self._refused: KeyedHeap[str, QueuedPod] = KeyedHeap()
        self._failed: KeyedHeap[str, QueuedPod] = KeyedHeap()

    def __len__(self) -> int:
        return len(self._refused) + len(self._failed)

    def __iter__(self) -> Iterator[QueuedPod]:
        yield from self._refused
        yield from self._failed

    @property
    def has_early(self) -> bool:
        """Whether ``pop_early`` would find a pod."""
        return len(self._refused) > 0

    def add(self, queued: QueuedPod) -> None:
        """Add the pod, or rank it anew: by whether plugins refused it, and by the end of its backoff."""
        if queued.rejectors:
            self._refused.push(queued.uid, (self._expiration(queued), self._rank(queued)), queued)
            queued.place = Place.BACKOFF
        else:
            self._failed.push(queued.uid, self._expiration(queued), queued)
            queued.place = Place.ERROR_BACKOFF

    def remove(self, queued: QueuedPod) -> None:
        if self._refused.remove(queued.uid) is None:
            self._failed.remove(queued.uid)

    def pop_early(self) -> QueuedPod | None:
        """The refused pod whose backoff ends first, over or not. Pods whose attempt went wrong have to wait."""
        return self._refused.pop()

    def pop_completed(self, now: float) -> list[QueuedPod]:
        """All pods whose backoff is over."""
        completed = []
        for heap in (self._refused, self._failed):
            while (first := heap.peek()) is not None and not self.is_backing_off(first, now):
                heap.pop()
                completed.append(first)
        return completed

    def next_completion(self) -> float | None:
        """When ``pop_completed`` will find the next pod, in monotonic seconds."""
        firsts = [first for heap in (self._refused, self._failed) if (first := heap.peek()) is not None]
        return min((self._expiration(first) + WINDOW for first in firsts), default=None)

    def is_backing_off(self, queued: QueuedPod, now: float) -> bool:
        """Whether the pod must not be tried yet. The window in which a backoff ends still belongs to it."""
        return self._expiration(queued) >= _window(now)

    def _expiration(self, queued: QueuedPod) -> float:
        failures = queued.consecutive_errors or queued.unschedulable_count
        if not failures or not self.maximum:
            return -math.inf
        if queued.backoff_expiration is None:
            duration = min(self.initial * 2.0 ** min(failures - 1, 60), self.maximum)
            queued.backoff_expiration = _window(queued.timestamp + duration)
        return queued.backoff_expiration


def _window(at: float) -> float:
    return math.floor(at / WINDOW) * WINDOW
