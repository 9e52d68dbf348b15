"""Takes the time of scheduling cycles: metrics of extension points, and one line for each cycle that took long.

Source of the line: k8s.io/utils/trace and schedulePod in pkg/scheduler/schedule_one.go.
"""

from __future__ import annotations

from kube_pyscheduler.framework.status import Code
from kube_pyscheduler.kit.clock import Clock
from kube_pyscheduler.kit.verbosity import Log
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.scheduler.ports import Observer

log = Log(__name__)

LONG_CYCLE = 0.1
"""Seconds after which a cycle is worth a line. Source: schedulePod."""

_STEPS = {
    "PreFilter": "Computing pre-filters done",
    "Filter": "Computing predicates done",
    "PostFilter": "Looking for pods to preempt done",
    "Score": "Prioritizing done",
}


class CycleObserver:
    """The engine's observer. Call ``begin`` before and ``end`` after each cycle."""

    def __init__(self, observer: Observer, clock: Clock) -> None:
        self._observer = observer
        self._clock = clock
        self._profile = ""
        self._started = 0.0
        self._entered = 0.0
        self._steps: list[tuple[str, float]] = []

    def begin(self, profile: str, started: float) -> None:
        """A cycle begins. ``started``: monotonic seconds."""
        self._profile = profile
        self._started = started
        self._steps.clear()

    def enter(self, point: str) -> None:
        """See EngineObserver."""
        self._entered = self._clock.monotonic()

    def leave(self, point: str, code: Code) -> None:
        """See EngineObserver."""
        now = self._clock.monotonic()
        self._steps.append((point, now - self._started))
        self._observer.extension_point(self._profile, point, code.label, now - self._entered)

    def end(self, pod: Pod) -> float:
        """The cycle is over; returns the moment, in monotonic seconds."""
        now = self._clock.monotonic()
        self._observer.algorithm(now - self._started)
        if now - self._started >= LONG_CYCLE:
            self._say(pod, now)
        return now

    def _say(self, pod: Pod, now: float) -> None:
        before = 0.0
        steps = []
        for point, after in self._steps:
            steps.append(f'---"{_STEPS.get(point, point)}" {(after - before) * 1000:.0f}ms')
            before = after
        total = f"total time: {(now - self._started) * 1000:.0f}ms"
        log.info(0, f'Trace: "Scheduling" namespace:{pod.namespace},name:{pod.name} ({total}): {" ".join(steps)}')
