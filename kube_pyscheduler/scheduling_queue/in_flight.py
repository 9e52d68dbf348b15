"""Popped pods and the events that happened since, in one order."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from kube_pyscheduler.framework.cluster_event import ClusterEvent


class InFlightEvent(NamedTuple):
    """Something that happened while a pod was being tried."""

    event: ClusterEvent
    old: Any
    new: Any


class InFlightLog:
    """Each pod in flight remembers the number of the first event after its pop. Events that no pod can see any more
    are dropped; without pods in flight there are none.

    Source: inFlightPods and inFlightEvents in pkg/scheduler/backend/queue/active_queue.go.
    """

    def __init__(self) -> None:
        self._pods: OrderedDict[str, int] = OrderedDict()
        self._events: deque[InFlightEvent] = deque()
        self._first = 0

    def __len__(self) -> int:
        """Pods in flight."""
        return len(self._pods)

    def __contains__(self, uid: object) -> bool:
        return uid in self._pods

    @property
    def event_count(self) -> int:
        """Events that are kept."""
        return len(self._events)

    def uids(self) -> Iterator[str]:
        """The pods in flight, longest first."""
        return iter(self._pods)

    def counts(self) -> Counter[str]:
        """For ``scheduler_inflight_events``: what is kept, by label of the event; the pods count as ``PodPopped``."""
        counts = Counter(happened.event.label for happened in self._events)
        if self._pods:
            counts["PodPopped"] = len(self._pods)
        return counts

    def enter(self, uid: str) -> None:
        """The pod was popped."""
        self._pods[uid] = self._first + len(self._events)

    def record(self, event: ClusterEvent, old: Any, new: Any) -> None:
        """Keep the event for the pods in flight, if there are any."""
        if self._pods:
            self._events.append(InFlightEvent(event, old, new))

    def since(self, uid: str) -> Iterator[InFlightEvent]:
        """What happened since the pod was popped, oldest first; nothing if it is not in flight."""
        first = self._pods.get(uid)
        return iter(()) if first is None else islice(self._events, first - self._first, None)

    def done(self, uid: str) -> None:
        """The pod needs no events any more. Does nothing for pods that are not in flight."""
        if self._pods.pop(uid, None) is None:
            return
        events = self._events
        if not events:
            return
        needed = next(iter(self._pods.values()), self._first + len(events))
        for _ in range(needed - self._first):
            events.popleft()
        self._first = needed
