"""The three places where pods wait, and how a pod gets from one to another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.framework.cluster_event import ClusterEvent
from kube_pyscheduler.kit.heap import KeyedHeap
from kube_pyscheduler.kit.verbosity import Log
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.scheduling_queue.backoff import BackoffQueue
from kube_pyscheduler.scheduling_queue.gates import Gates
from kube_pyscheduler.scheduling_queue.hints import Hints, Strategy
from kube_pyscheduler.scheduling_queue.observer import QueueObserver
from kube_pyscheduler.scheduling_queue.queued_pod import NOBODY, Place, QueuedPod
from kube_pyscheduler.scheduling_queue.unschedulable import UnschedulablePods

log = Log(__name__)

SortKey = Callable[[Pod, float], Any]


class Places:
    """activeQ, backoffQ and unschedulable pods. Each pod in ``pods`` is in the one that its ``place`` names.

    Nobody gets into activeQ or backoffQ without passing PreEnqueue. ``event`` says why a pod moves, for metrics and
    logs; ``now`` is monotonic seconds. ``on_ready`` is called when a pod may have become ready.
    """

    def __init__(
        self, initial_backoff: float, max_backoff: float, observer: QueueObserver, on_ready: Callable[[], None]
    ) -> None:
        self._observer = observer
        self._on_ready = on_ready
        self._gates: Gates
        self._sort_key: SortKey
        self.pods: dict[str, QueuedPod] = {}
        self.active: KeyedHeap[str, QueuedPod] = KeyedHeap()
        self.backoff = BackoffQueue(initial_backoff, max_backoff, self._rank)
        self.unschedulable: UnschedulablePods
        self.rejections: Counter[tuple[str, str]] = Counter()
        """Waiting pods by (profile, plugin that refused or gates them)."""

    def configure(
        self, sort_key: SortKey, gates: Gates, hints: Hints, changed: Collection[str] = ()
    ) -> list[QueuedPod]:
        """Work by these plugins from now on. Returns the unschedulable pods of the profiles that have ``changed``; they
        are nowhere until they are moved."""
        parked = list(self.unschedulable) if self.pods else []
        self._sort_key = sort_key
        self._gates = gates
        self.unschedulable = UnschedulablePods(hints)
        freed = []
        for queued in parked:
            if queued.profile in changed:
                queued.place = Place.NOWHERE
                freed.append(queued)
            else:
                self.unschedulable.add(queued)
        for queued in list(self.active):
            self.active.push(queued.uid, self._rank(queued), queued)
        for queued in list(self.backoff):
            self.backoff.add(queued)
        return freed

    # In and out

    def enter(self, queued: QueuedPod) -> None:
        """The pod waits from now on; the caller moves it to a place."""
        self.pods[queued.uid] = queued
        queued.place = Place.NOWHERE
        self._count_rejectors(queued, 1)

    def leave(self, queued: QueuedPod) -> None:
        """The pod waits no more."""
        del self.pods[queued.uid]
        if queued.unschedulable_plugins or queued.pending_plugins:
            self._count_rejectors(queued, -1)
        self._take_out(queued)
        queued.place = Place.NOWHERE

    def pop(self, now: float) -> QueuedPod | None:
        """Take out the next pod to try. While activeQ is empty also refused pods come that are still backing off."""
        queued = self.active.pop()
        if queued is None:
            queued = self.backoff.pop_early()
            if queued is None:
                return None
            self._observer.queue_incoming("active", "PopFromBackoffQ")
            if queued.initial_attempt_timestamp is None:
                queued.initial_attempt_timestamp = now
        self.leave(queued)
        return queued

    # From place to place

    def requeue(self, queued: QueuedPod, strategy: Strategy, event: ClusterEvent, now: float) -> Place:
        """Move the pod where the strategy wants it, or where its gates keep it. Returns the place."""
        if strategy is Strategy.SKIP:
            self._park(queued, event)
        elif strategy is Strategy.AFTER_BACKOFF and self.backoff.is_backing_off(queued, now):
            self.to_backoff(queued, event)
        else:
            self.to_active(queued, event, now)
        return queued.place

    def to_active(self, queued: QueuedPod, event: ClusterEvent, now: float) -> None:
        """To activeQ, backing off or not."""
        if queued.place not in (Place.BACKOFF, Place.ERROR_BACKOFF) and not self._passes_gates(queued, event):
            return
        self._take_out(queued)
        if queued.initial_attempt_timestamp is None:
            queued.initial_attempt_timestamp = now
        queued.place = Place.ACTIVE
        self.active.push(queued.pod_info.pod.metadata.uid, self._rank(queued), queued)
        self._entered("active", queued, event)
        self._on_ready()

    def to_backoff(self, queued: QueuedPod, event: ClusterEvent) -> None:
        if not self._passes_gates(queued, event):
            return
        self._take_out(queued)
        self.backoff.add(queued)
        self._entered("backoff", queued, event)
        self._on_ready()

    def replace(self, queued: QueuedPod, info: PodInfo) -> None:
        """The pod has a new version, with another rank or other groups perhaps."""
        self._take_out(queued)
        queued.pod_info = info
        if queued.place is Place.UNSCHEDULABLE:
            self.unschedulable.add(queued)
        elif queued.place is Place.ACTIVE:
            self.active.push(info.uid, self._rank(queued), queued)
        else:
            self.backoff.add(queued)

    def forget_refusals(self, queued: QueuedPod) -> None:
        """Nobody refuses or gates the waiting pod any more; the caller moves it to a place."""
        self._count_rejectors(queued, -1)
        self._take_out(queued)
        queued.place = Place.NOWHERE
        queued.unschedulable_plugins = queued.pending_plugins = NOBODY
        queued.gating_plugin = ""

    # Inside

    def _rank(self, queued: QueuedPod) -> Any:
        return self._sort_key(queued.pod_info.pod, queued.timestamp)

    def _passes_gates(self, queued: QueuedPod, event: ClusterEvent) -> bool:
        """Ask PreEnqueue; a pod that does not pass is parked."""
        before = queued.unschedulable_plugins
        self._gates.judge(queued)
        for plugin in queued.unschedulable_plugins - before - queued.pending_plugins:
            self.rejections[queued.profile, plugin] += 1
        if queued.gating_plugin:
            self._park(queued, event)
            return False
        return True

    def _park(self, queued: QueuedPod, event: ClusterEvent) -> None:
        is_new = queued.place is not Place.UNSCHEDULABLE
        self._take_out(queued)
        self.unschedulable.add(queued)
        if is_new:
            self._entered("unschedulable", queued, event)

    def _take_out(self, queued: QueuedPod) -> None:
        """Out of the place where it is, if it is in one."""
        place = queued.place
        if place is Place.ACTIVE:
            self.active.remove(queued.uid)
        elif place is Place.UNSCHEDULABLE:
            self.unschedulable.remove(queued)
        elif place is Place.BACKOFF or place is Place.ERROR_BACKOFF:
            self.backoff.remove(queued)

    def _count_rejectors(self, queued: QueuedPod, by: int) -> None:
        for plugin in queued.rejectors:
            key = (queued.profile, plugin)
            self.rejections[key] += by
            if not self.rejections[key]:
                del self.rejections[key]

    def _entered(self, place: str, queued: QueuedPod, event: ClusterEvent) -> None:
        self._observer.queue_incoming(place, event.label)
        if log.v(5):
            log.info(
                5,
                "Pod moved to an internal scheduling queue",
                pod=queued.pod_info.key,
                event=event.label,
                queue=place.capitalize(),
            )
