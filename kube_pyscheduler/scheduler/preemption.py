"""Carries out preemptions in the background: victims are cancelled where that is enough, deleted otherwise.

Source: pkg/scheduler/framework/preemption/executor.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from kube_pyscheduler.cache.cache import Cache
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.kit.clock import Clock
from kube_pyscheduler.kit.tasks import Tasks
from kube_pyscheduler.kit.verbosity import Log
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.scheduler.binding_cycle import BindingCycles
from kube_pyscheduler.scheduler.ports import EventSink, Evictor, Observer, PodLister, StatusWriter
from kube_pyscheduler.scheduling_queue.priority_queue import PriorityQueue

log = Log(__name__)

PARALLEL_EVICTIONS = 16
"""Deletions of victims on their way at the same time. Source: DefaultParallelism."""


class Preemption:
    """Each victim is deleted once, however often and for whomever it is chosen.

    While its victims are being deleted a preemptor is not to be tried: a PreEnqueue plugin asks ``is_running``.
    """

    def __init__(
        self,
        *,
        queue: PriorityQueue,
        cache: Cache,
        pods: PodLister,
        evictor: Evictor,
        bindings: BindingCycles,
        status: StatusWriter,
        events: EventSink,
        observer: Observer,
        tasks: Tasks,
        clock: Clock,
    ) -> None:
        self._queue = queue
        self._cache = cache
        self._pods = pods
        self._evictor = evictor
        self._bindings = bindings
        self._status = status
        self._events = events
        self._observer = observer
        self._tasks = tasks
        self._clock = clock
        self._slots = asyncio.Semaphore(PARALLEL_EVICTIONS)
        self._last_victim: dict[str, Pod | None] = {}
        """By uid of the preemptor: its only victim not deleted yet, None while there are more."""
        self._evicted: set[str] = set()
        """Victims whose deletion was sent, until they are gone."""
        self._hoping: dict[str, list[Pod]] = {}
        """By uid of such a victim: other preemptors that chose it, too, and will not be told of it otherwise."""

    def attempted(self) -> None:
        """A pod looked for victims."""
        self._observer.preemption_attempted()

    def is_running(self, uid: str) -> bool:
        """Whether victims of this pod are still being deleted. Once the last one is seen to go, they are not."""
        if uid not in self._last_victim:
            return False
        victim = self._last_victim[uid]
        if victim is None:
            return True
        latest = self._pods.get(victim.key)
        return latest is not None and latest.uid == victim.uid and not latest.is_terminating

    def is_evicting(self, uid: str) -> bool:
        """Whether this pod is being deleted for another one, or was, and is not yet gone."""
        return uid in self._evicted

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        self._evicted.discard(uid)
        self._hoping.pop(uid, None)

    def node_gone(self, node: str) -> None:
        """The node does not exist any more: who was promised it must look elsewhere."""
        now = self._clock.monotonic()
        for info in self._queue.nominator.nominated_on(node):
            self._withdraw(info, now)
            self._queue.activate([info.pod], now)

    def start(self, preemptor: Pod, node: str, victims: Sequence[Pod]) -> None:
        """Make room for ``preemptor`` on ``node``. The preemptor's own place in the queue is not touched."""
        staying = [victim for victim in victims if not victim.is_terminating]
        if not staying:
            return
        self._withdraw_lesser_promises(preemptor, node)
        self._observer.preemption(len(victims))
        wanted = [victim for victim in staying if victim.uid not in self._evicted]
        for victim in staying:
            if victim.uid in self._evicted:
                self._hoping.setdefault(victim.uid, []).append(preemptor)
        if not wanted:
            return
        log.info(2, "Start the preemption asynchronously", preemptor=preemptor.key, node=node, victims=len(wanted))
        self._evicted.update(victim.uid for victim in wanted)
        self._last_victim[preemptor.uid] = wanted[0] if len(wanted) == 1 else None
        self._tasks.start(self._run(preemptor, node, wanted), name="preemption")

    def _withdraw_lesser_promises(self, preemptor: Pod, node: str) -> None:
        """Pods of lower priority that were promised the node may not fit any more: let them look elsewhere."""
        now = self._clock.monotonic()
        for info in self._queue.nominator.nominated_on(node):
            if info.pod.priority < preemptor.priority:
                self._withdraw(info, now)

    def _withdraw(self, info: PodInfo, now: float) -> None:
        self._queue.withdraw_nomination(info, now)
        self._status.patch_status(info.pod, nominated_node="")

    async def _run(self, preemptor: Pod, node: str, victims: list[Pod]) -> None:
        """All victims but one at once, the last one after them."""
        *first, last = victims
        worked = all(await asyncio.gather(*(self._remove(preemptor, node, victim) for victim in first)))
        self._last_victim[preemptor.uid] = last
        if worked:
            worked = await self._remove(preemptor, node, last)
        else:
            self._spare(last)
        self._last_victim.pop(preemptor.uid, None)
        now = self._clock.monotonic()
        if not worked:
            self._queue.retry_later(preemptor, now)
        elif any(self._is_gone(victim) for victim in victims):
            # Their end may have been told while the preemptor was gated, so that it heard nothing of it.
            self._queue.activate([preemptor], now)

    async def _remove(self, preemptor: Pod, node: str, victim: Pod) -> bool:
        """Whether the victim goes, or will."""
        note = f"Preempted by pod {preemptor.uid} on node {node}"
        if self._bindings.cancel(victim.uid, "preempted"):
            self.forget(victim.uid)
            note += " (in kube-scheduler memory)."
        else:
            message = f"{preemptor.spec.scheduler_name}: preempting to accommodate a higher priority pod"
            try:
                async with self._slots:
                    if not self._needs_room(preemptor):
                        self._spare(victim)
                        return False
                    await self._evictor.evict(victim, message)
            except Exception as error:
                self._spare(victim)
                log.error("Tried to preempt pod", error, pod=victim.key, preemptor=preemptor.key)
                return False
        log.info(2, "Preemptor Pod preempted victim Pod", preemptor=preemptor.key, victim=victim.key, node=node)
        self._events.event(victim, "Normal", "Preempted", "Preempting", note)
        if self._is_gone(victim):
            self.forget(victim.uid)
        return True

    def _spare(self, victim: Pod) -> None:
        """The victim stays for now: who else counted on its end must try again."""
        self._evicted.discard(victim.uid)
        for preemptor in self._hoping.pop(victim.uid, ()):
            self._queue.retry_later(preemptor, self._clock.monotonic())

    def _needs_room(self, preemptor: Pod) -> bool:
        latest = self._pods.get(preemptor.key)
        if latest is None or latest.uid != preemptor.uid:
            return False
        return not latest.is_terminating and not latest.spec.node_name

    def _is_gone(self, victim: Pod) -> bool:
        """Whether decisions are made without the victim. What is merely known to be deleted may be chosen again: who
        waits for its end is told of it in time."""
        return self._cache.pod(victim.uid) is None
