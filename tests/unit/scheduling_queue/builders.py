"""Pods, profiles and hints for tests of the queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from kube_pyscheduler.framework.cluster_event import Action, ClusterEvent, EventRegistration, QueueingHint, Resource
from kube_pyscheduler.framework.interfaces import PreEnqueue
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.framework.profile import Profile
from kube_pyscheduler.framework.status import Status, unresolvable
from kube_pyscheduler.objects.pod import Pod, Toleration
from kube_pyscheduler.plugins.default_binder import DefaultBinder
from kube_pyscheduler.plugins.priority_sort import PrioritySort
from kube_pyscheduler.plugins.scheduling_gates import SchedulingGates
from kube_pyscheduler.scheduling_queue.priority_queue import PriorityQueue
from kube_pyscheduler.scheduling_queue.queued_pod import QueuedPod
from tests.builders import make_pod as build_pod

SCHEDULER = "pysched"
START = 1000.0
"""Where time begins in tests of the queue, at the beginning of a window."""

POD_DELETE = ClusterEvent(Resource.POD, Action.DELETE)
NODE_ADD = ClusterEvent(Resource.NODE, Action.ADD)
NODE_TAINT = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT)


def make_pod(
    name: str = "p",
    *,
    version: str = "1",
    cpu: str = "100m",
    gates: Sequence[str] = (),
    nominated: str = "",
    deletion: str = "",
    **more: Any,
) -> Pod:
    """A pod that asks for ``cpu``; ``more`` as in ``tests.builders``."""
    metadata = {"resourceVersion": version, **({"deletionTimestamp": deletion} if deletion else {})}
    if gates:
        more["schedulingGates"] = [{"name": gate} for gate in gates]
    if nominated:
        more["status"] = {"nominatedNodeName": nominated, **more.get("status", {})}
    return build_pod(name, requests={"cpu": cpu}, metadata=metadata, **more)


def changed(pod: Pod, **spec: Any) -> Pod:
    """The next version of the pod, with other fields in its spec."""
    return _next(msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, **spec)))


def relabelled(pod: Pod, **labels: str) -> Pod:
    return _next(msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, labels=labels)))


def with_status(pod: Pod, **status: Any) -> Pod:
    return _next(msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, **status)))


def tolerating(pod: Pod) -> Pod:
    return changed(pod, tolerations=(*pod.spec.tolerations, Toleration(operator="Exists")))


def _next(pod: Pod) -> Pod:
    version = str(int(pod.metadata.resource_version) + 1)
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, resource_version=version))


def make_profile(
    events: Mapping[str, Sequence[EventRegistration]] | None = None,
    pre_enqueue: Sequence[PreEnqueue] = (),
    name: str = SCHEDULER,
    **points: Any,
) -> Profile:
    """A profile with SchedulingGates, the given gates, and refusing plugins that are nothing but their events."""
    gates = (SchedulingGates(), *pre_enqueue)
    given: dict[str, Any] = {
        "pre_filter": (),
        "filter": (),
        "post_filter": (),
        "pre_score": (),
        "score": (),
        "reserve": (),
        "permit": (),
        "pre_bind": (),
        "bind": (DefaultBinder(),),
        "post_bind": (),
        "refreshing": (),
        **points,
    }
    return Profile(
        name=name,
        pre_enqueue=gates,
        queue_sort=PrioritySort(),
        events={
            **{gate.name: tuple(gate.events()) for gate in gates},
            **{plugin: tuple(registrations) for plugin, registrations in (events or {}).items()},
        },
        **given,
    )


class Gate(PreEnqueue):
    """Closed until it is opened; wants deletions of pods."""

    name = "Gate"

    def __init__(self, is_open: Callable[[Pod], bool] = lambda _pod: False) -> None:
        self.is_open = is_open
        self.asked = 0

    def pre_enqueue(self, pod: Pod, view: Listers) -> Status | None:
        self.asked += 1
        return None if self.is_open(pod) else unresolvable("closed")

    def events(self) -> Sequence[EventRegistration]:
        return (EventRegistration(POD_DELETE),)


class Asked:
    """A hint that notes for which pods it was asked, and says what it was told to say."""

    def __init__(self, answer: QueueingHint | Callable[[Pod, Any, Any], QueueingHint] = QueueingHint.QUEUE) -> None:
        self.answer = answer
        self.pods: list[str] = []

    def __call__(self, pod: Pod, old: Any, new: Any, view: Listers) -> QueueingHint:
        self.pods.append(pod.name)
        return self.answer if isinstance(self.answer, QueueingHint) else self.answer(pod, old, new)


def make_queue(
    events: Mapping[str, Sequence[EventRegistration]] | None = None, pre_enqueue: Sequence[PreEnqueue] = (), **more: Any
) -> PriorityQueue:
    return PriorityQueue({SCHEDULER: make_profile(events, pre_enqueue)}, Listers(), **more)


def popped(queue: PriorityQueue, now: float = START) -> QueuedPod:
    queued = queue.pop(now)
    assert queued is not None
    return queued


def refuse(
    queue: PriorityQueue, queued: QueuedPod, *plugins: str, pending: Sequence[str] = (), now: float = START
) -> None:
    """The attempt ended: these plugins refused the pod; without any it failed."""
    queued.unschedulable_plugins = frozenset({*plugins, *pending})
    queued.pending_plugins = frozenset(pending)
    queue.add_unschedulable(queued, now)


def park(queue: PriorityQueue, pod: Pod, *plugins: str, pending: Sequence[str] = (), now: float = START) -> QueuedPod:
    """The pod was tried and refused by these plugins."""
    queue.add(pod, now)
    queued = popped(queue, now)
    assert queued.uid == pod.uid
    refuse(queue, queued, *plugins, pending=pending, now=now)
    return queued


class Incoming:
    """Observer that counts what enters the queues, by (queue, event)."""

    def __init__(self) -> None:
        self.entered: dict[tuple[str, str], int] = {}
        self.hints: list[tuple[str, str, str]] = []
        self.points: list[tuple[str, str, str]] = []

    def queue_incoming(self, queue: str, event: str, count: int = 1) -> None:
        self.entered[queue, event] = self.entered.get((queue, event), 0) + count

    def hint(self, plugin: str, event: str, hint: str, seconds: float) -> None:
        self.hints.append((plugin, event, hint))

    def extension_point(self, profile: str, point: str, status: str, seconds: float) -> None:
        self.points.append((profile, point, status))
