"""The scheduling cycles: pop, decide, assume, reserve, permit, hand over to the binding cycle; one pod after another.

Nothing is awaited between the first look at the cluster and ``assume``, so nothing can change in between. Pods are
decided in slices of a few milliseconds; in between the event loop does its I/O.

A plugin that raises costs its pod one attempt. An error of the loop itself ends it: whoever runs it must stop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from kube_pyscheduler.cache.cache import Cache
from kube_pyscheduler.cache.errors import CacheInvariantError
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.engine.decision import Decision
from kube_pyscheduler.framework.profile import Profile
from kube_pyscheduler.framework.status import Code, Status, error
from kube_pyscheduler.kit.clock import Clock
from kube_pyscheduler.kit.verbosity import Log
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.scheduler.binding_cycle import BindingCycles
from kube_pyscheduler.scheduler.cycle_observer import CycleObserver
from kube_pyscheduler.scheduler.failure import Failure, FailureHandler
from kube_pyscheduler.scheduler.handles import CycleHandle
from kube_pyscheduler.scheduler.placement import Placement
from kube_pyscheduler.scheduler.ports import EventSink, Observer
from kube_pyscheduler.scheduler.preemption import Preemption
from kube_pyscheduler.scheduler.reservation import permit, refusal, reserve, take_back
from kube_pyscheduler.scheduler.waiting_pods import WaitingPods
from kube_pyscheduler.scheduling_queue.priority_queue import PriorityQueue
from kube_pyscheduler.scheduling_queue.queued_pod import QueuedPod

log = Log(__name__)

SLICE = 0.005
"""Seconds of decisions before the event loop gets its turn."""

Decide = Callable[[Profile, PodInfo], Decision]
"""One attempt for one pod; what it raises fails the attempt."""


class SchedulingLoop:
    """``profiles`` by scheduler name; the mapping may be changed between cycles."""

    def __init__(
        self,
        *,
        profiles: Mapping[str, Profile],
        queue: PriorityQueue,
        cache: Cache,
        decide: Decide,
        handle: CycleHandle,
        waiting: WaitingPods,
        bindings: BindingCycles,
        failures: FailureHandler,
        preemption: Preemption,
        events: EventSink,
        observer: Observer,
        cycle_observer: CycleObserver,
        clock: Clock,
        slice_seconds: float = SLICE,
    ) -> None:
        self._profiles = profiles
        self._queue = queue
        self._cache = cache
        self._decide = decide
        self._handle = handle
        self._waiting = waiting
        self._bindings = bindings
        self._failures = failures
        self._preemption = preemption
        self._events = events
        self._observer = observer
        self._cycle_observer = cycle_observer
        self._clock = clock
        self._slice = slice_seconds
        self._stopped = False
        self._sleeper: asyncio.Future[None] | None = None

    # Running

    async def run(self) -> None:
        """Schedule until ``stop``. Raises what is wrong with the scheduler itself."""
        while not self._stopped:
            pause = self.run_slice()
            if pause == 0.0:
                await asyncio.sleep(0)
            elif not self._stopped:
                await self._sleep(pause)

    def stop(self) -> None:
        """Pop no more pods."""
        self._stopped = True
        self.wake()

    def wake(self) -> None:
        """There may be something to do. Cheap while the loop is busy."""
        if self._sleeper is not None and not self._sleeper.done():
            self._sleeper.set_result(None)

    def run_slice(self) -> float | None:
        """Decide pods for one time slice. Returns for how many seconds there is nothing to do; None: until woken."""
        now = self._clock.monotonic()
        end = now + self._slice
        self._waiting.expire(now)
        while not self._stopped and not self._bindings.is_full:
            queued = self._queue.pop(now)
            if queued is None:
                return self._pause(now, self._queue.next_wakeup(now))
            self._attempt(queued, now)
            now = self._clock.monotonic()
            if now >= end:
                return 0.0
        return self._pause(now, None)

    def _pause(self, now: float, queue_pause: float | None) -> float | None:
        deadline = self._waiting.next_deadline()
        if deadline is None:
            return queue_pause
        wait = max(deadline - now, 0.0)
        return wait if queue_pause is None else min(wait, queue_pause)

    async def _sleep(self, seconds: float | None) -> None:
        loop = asyncio.get_running_loop()
        self._sleeper = loop.create_future()
        timer = None if seconds is None else loop.call_later(seconds, self.wake)
        try:
            await self._sleeper
        finally:
            self._sleeper = None
            if timer is not None:
                timer.cancel()

    # One pod

    def _attempt(self, queued: QueuedPod, now: float) -> None:
        info = queued.pod_info
        pod = info.pod
        profile = self._profiles.get(pod.spec.scheduler_name)
        if profile is None or self._is_skipped(pod):
            self._queue.done(pod.metadata.uid)
            return
        if log.v(3):
            log.info(3, "Attempting to schedule pod", pod=pod.key)
        self._handle.begin_cycle()
        self._cycle_observer.begin(profile.name, now)
        try:
            decision = self._decide(profile, info)
        except Exception as raised:
            self._handle.end_cycle()
            log.error("Deciding failed", raised, pod=pod.key)
            self._failures.handle(queued, Failure(error(str(raised) or repr(raised)), now))
            return
        self._cycle_observer.end(pod)
        self._observer.decided(decision.rows_judged, decision.evaluated)
        if decision.node is None:
            self._handle.end_cycle()
            self._refused(queued, decision, now)
            return
        status = self._place(profile, queued, decision.node, decision, now)
        wanted = self._handle.end_cycle()
        if status is not None:
            reading, diagnosis = refusal(status)
            self._failures.handle(queued, Failure(reading, now, diagnosis))
        elif wanted:
            self._queue.activate(wanted, now)

    def _is_skipped(self, pod: Pod) -> bool:
        """Source: skipPodSchedule in pkg/scheduler/schedule_one.go."""
        if pod.is_terminating:
            note = f"skip schedule deleting pod: {pod.namespace}/{pod.name}"
            self._events.event(pod, "Warning", "FailedScheduling", "Scheduling", note)
            log.info(3, "Skip schedule deleting pod", pod=pod.key)
            return True
        return self._cache.pod(pod.metadata.uid) is not None

    def _refused(self, queued: QueuedPod, decision: Decision, now: float) -> None:
        result = decision.post_filter
        nominated: str | None = None
        if result is not None:
            nominated = result.nominated
            if result.victims and nominated:
                self._preemption.start(queued.pod, nominated, result.victims)
        elif not decision.status.is_rejected:
            nominated = ""
        self._failures.handle(queued, Failure(decision.status, now, decision.diagnosis, nominated))

    def _place(
        self, profile: Profile, queued: QueuedPod, node: str, decision: Decision, started: float
    ) -> Status | None:
        """Take the node for the pod and start binding it; or say why not, with everything taken back."""
        try:
            assumed = self._cache.assume(queued.pod_info, node)
        except CacheInvariantError as wrong:
            log.error("Pod cannot be assumed", wrong, pod=queued.pod_info.key)
            return error(str(wrong))
        self._queue.nominator.drop(assumed.uid)
        placement = Placement(profile, queued, assumed, node, decision, started)
        if profile.reserve:
            start = self._clock.monotonic()
            status = reserve(placement)
            self._took(profile, "Reserve", status, start)
            if status is not None:
                take_back(placement, self._cache)
                return status
        if profile.permit:
            start = self._clock.monotonic()
            status, waits = permit(placement)
            self._took(profile, "Permit", Status(Code.WAIT) if waits else status, start)
            if status is not None:
                take_back(placement, self._cache)
                return status
            if waits:
                placement.held = self._waiting.hold(assumed.pod, waits, self._clock.monotonic())
        self._bindings.start(placement)
        return None

    def _took(self, profile: Profile, point: str, status: Status | None, start: float) -> None:
        code = Code.SUCCESS if status is None else status.code
        self._observer.extension_point(profile.name, point, code.label, self._clock.monotonic() - start)
