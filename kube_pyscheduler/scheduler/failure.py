"""What becomes of a pod whose attempt failed: back into the queue, a condition, an Event.

Source: handleSchedulingFailure in pkg/scheduler/schedule_one.go.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.framework.diagnosis import NO_NODES, Diagnosis
from kube_pyscheduler.framework.status import Status
from kube_pyscheduler.kit.clock import Clock
from kube_pyscheduler.kit.verbosity import Log
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.scheduler.ports import EventSink, Observer, PodLister, StatusWriter
from kube_pyscheduler.scheduling_queue.priority_queue import PriorityQueue
from kube_pyscheduler.scheduling_queue.queued_pod import NOBODY, QueuedPod

log = Log(__name__)

NOTE_LIMIT = 1024
"""Bytes of an Event's note. Source: NoteLengthLimit in pkg/apis/core/validation/events.go."""

UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt failed.

    ``status``: a refusal or an error; its message goes into the condition. ``diagnosis``: who refused, None for
    errors. ``nominated``: the node promised to the pod from now on, "" to take a promise back, None to leave it.
    ``started``: when the attempt began, in monotonic seconds.
    """

    status: Status
    started: float
    diagnosis: Diagnosis | None = None
    nominated: str | None = ""


class FailureHandler:
    """Puts pods back and says why."""

    def __init__(
        self,
        queue: PriorityQueue,
        pods: PodLister,
        status: StatusWriter,
        events: EventSink,
        observer: Observer,
        clock: Clock,
        profiles: Container[str],
    ) -> None:
        """``profiles``: names of those that there are; may change."""
        self._queue = queue
        self._pods = pods
        self._status = status
        self._events = events
        self._observer = observer
        self._clock = clock
        self._profiles = profiles

    def handle(self, queued: QueuedPod, failure: Failure) -> None:
        """The pod goes back to the queue, if it still exists and waits for a node; else nothing is said of it."""
        is_refused = failure.status.is_rejected
        now = self._clock.monotonic()
        self._observer.attempt(queued.profile, "unschedulable" if is_refused else "error", now - failure.started)
        message = failure.status.message
        if not is_refused:
            log.error("Error scheduling pod; retrying", pod=queued.pod_info.key, err=message)
        elif log.v(2):
            what = "no nodes are registered to the cluster" if message == NO_NODES else "no fit"
            log.info(2, f"Unable to schedule pod; {what}; waiting", pod=queued.pod_info.key, err=message)
        if not self.requeue(queued, failure.nominated, failure.diagnosis):
            return
        reason = UNSCHEDULABLE if is_refused else SCHEDULER_ERROR
        pod = queued.pod
        self._events.event(pod, "Warning", "FailedScheduling", "Scheduling", cut_note(message))
        self._status.patch_status(
            pod,
            reason=reason,
            message=message,
            nominated_node=failure.nominated,
            observed_generation=pod.metadata.generation,
        )

    def requeue(self, queued: QueuedPod, nominated: str | None = "", diagnosis: Diagnosis | None = None) -> bool:
        """Back into the queue in its latest version, or, if it needs no node any more, or none of us is to find it one
        any more, out of flight: then False."""
        uid = queued.uid
        queued.unschedulable_plugins = frozenset(diagnosis.unschedulable_plugins) if diagnosis else NOBODY
        queued.pending_plugins = frozenset(diagnosis.pending_plugins) if diagnosis else NOBODY
        latest = self._pods.get(queued.pod_info.key)
        if (
            latest is None
            or latest.metadata.uid != uid
            or latest.spec.node_name
            or _is_ending(latest)
            or queued.profile not in self._profiles
        ):
            self._queue.done(uid)
            self._status.forget(uid)
            log.info(2, "Pod needs no node any more; not queued again", pod=queued.pod_info.key, uid=uid)
            return False
        now = self._clock.monotonic()
        if latest is not queued.pod:
            queued.pod_info = PodInfo(latest)
        self._queue.add_unschedulable(queued, now)
        self._queue.nominate(queued.pod_info, nominated, now)
        return True


def _is_ending(pod: Pod) -> bool:
    return pod.is_terminal or pod.is_terminating


def cut_note(message: str) -> str:
    """The message as an Event may carry it: at most 1024 bytes, with an ellipsis where it was cut."""
    encoded = message.encode()
    if len(encoded) <= NOTE_LIMIT:
        return message
    ellipsis = " ..."
    return encoded[: NOTE_LIMIT - len(ellipsis)].decode(errors="ignore") + ellipsis
