"""From watch events to cache, listers and queue. The stores change first; who may profit is woken after that.

Source: pkg/scheduler/eventhandlers.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kube_pyscheduler.cache.cache import Cache, PodEntry
from kube_pyscheduler.framework.cluster_event import (
    EVENT_ASSIGNED_POD_ADD,
    EVENT_ASSIGNED_POD_DELETE,
    EVENT_UNSCHEDULED_POD_ADD,
    Action,
    ClusterEvent,
    Resource,
)
from kube_pyscheduler.framework.profile import Profile
from kube_pyscheduler.kit.clock import Clock
from kube_pyscheduler.kit.verbosity import Log
from kube_pyscheduler.objects.meta import Object
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.scheduler.binding_cycle import BindingCycles
from kube_pyscheduler.scheduler.node_changes import NODE_ADD, NODE_DELETE, NODE_UPDATE, node_changes
from kube_pyscheduler.scheduler.ports import Observer, StatusWriter
from kube_pyscheduler.scheduler.preemption import Preemption
from kube_pyscheduler.scheduler.reservation import is_overfull
from kube_pyscheduler.scheduling_queue.pod_changes import ASSIGNED_POD_UPDATE, UNSCHEDULABLE_POD_UPDATE, pod_changes
from kube_pyscheduler.scheduling_queue.priority_queue import PriorityQueue

log = Log(__name__)

KINDS: Mapping[str, tuple[str, Resource | None]] = {
    "Namespace": ("namespaces", Resource.NAMESPACE),
    "PersistentVolume": ("persistent_volumes", Resource.PERSISTENT_VOLUME),
    "PersistentVolumeClaim": ("persistent_volume_claims", Resource.PERSISTENT_VOLUME_CLAIM),
    "StorageClass": ("storage_classes", Resource.STORAGE_CLASS),
    "CSINode": ("csi_nodes", Resource.CSI_NODE),
    "CSIDriver": ("csi_drivers", Resource.CSI_DRIVER),
    "CSIStorageCapacity": ("csi_storage_capacities", Resource.CSI_STORAGE_CAPACITY),
    "VolumeAttachment": ("volume_attachments", Resource.VOLUME_ATTACHMENT),
    "DeviceClass": ("device_classes", Resource.DEVICE_CLASS),
    "ResourceSlice": ("resource_slices", Resource.RESOURCE_SLICE),
    "ResourceClaim": ("resource_claims", Resource.RESOURCE_CLAIM),
    "Service": ("services", Resource.SERVICE),
    "ReplicationController": ("replication_controllers", None),
    "ReplicaSet": ("replica_sets", None),
    "StatefulSet": ("stateful_sets", None),
    "PodDisruptionBudget": ("pod_disruption_budgets", None),
}
"""Kind → name of its lister, and what its events are called; kinds without a name wake nobody."""

EVENT_UNSCHEDULED_POD_DELETE = ClusterEvent(Resource.POD, Action.DELETE, "UnschedulablePodDelete")

_EVENTS = {
    resource: (
        ClusterEvent(resource, Action.ADD),
        ClusterEvent(resource, Action.UPDATE),
        ClusterEvent(resource, Action.DELETE),
    )
    for _lister, resource in KINDS.values()
    if resource is not None
}


class EventHandlers:
    """Give each watch event to ``handle``, in order, with the store of its kind already changed."""

    def __init__(
        self,
        *,
        profiles: Mapping[str, Profile],
        cache: Cache,
        queue: PriorityQueue,
        bindings: BindingCycles,
        preemption: Preemption,
        status: StatusWriter,
        observer: Observer,
        clock: Clock,
    ) -> None:
        self._profiles = profiles
        self._cache = cache
        self._queue = queue
        self._bindings = bindings
        self._preemption = preemption
        self._status = status
        self._observer = observer
        self._clock = clock

    @staticmethod
    def kinds() -> list[str]:
        """The kinds that are listened to, as in ``kind:``."""
        return ["Pod", "Node", *KINDS]

    def handle(self, kind: str, old: Any, new: Any) -> None:
        """``kind`` as in ``kind:``. ``old`` is None for an added object, ``new`` is None for a deleted one."""
        if kind == "Pod":
            self.pod(old, new)
        elif kind == "Node":
            self.node(old, new)
        else:
            self.other(kind, old, new)

    # Pods

    def pod(self, old: Pod | None, new: Pod | None) -> None:
        """A pod came, changed, or went. One that is finished has gone."""
        if new is None or new.is_terminal:
            if old is not None and not old.is_terminal:
                self._gone(old)
        elif old is None or old.is_terminal:
            self._came(new)
        elif old.metadata.uid != new.metadata.uid:
            self._gone(old)
            self._came(new)
        elif old.spec.node_name:
            self._assigned_changed(old, new)
        elif new.spec.node_name:
            self._assigned(new)
        elif new.spec.scheduler_name in self._profiles:
            self._waiting_changed(old, new)

    def _came(self, pod: Pod) -> None:
        if pod.spec.node_name:
            self._assigned(pod)
        elif pod.spec.scheduler_name in self._profiles and self._cache.pod(pod.metadata.uid) is None:
            start = self._clock.monotonic()
            if log.v(3):
                log.info(3, "Add event for unscheduled pod", pod=pod.key)
            self._queue.add(pod, start)
            self._handled(EVENT_UNSCHEDULED_POD_ADD, start)

    def _assigned(self, pod: Pod) -> None:
        """A pod has a node: one we assumed, one that another scheduler bound, or one that came with it."""
        start = self._clock.monotonic()
        uid = pod.metadata.uid
        if log.v(3):
            log.info(3, "Add event for scheduled pod", pod=pod.key, node=pod.spec.node_name)
        known = self._cache.pod(uid)
        assumed = known.info.pod if known is not None else None
        self._cache.set_pod(pod)
        if assumed is None or assumed.spec.node_name != pod.spec.node_name:
            self._foreign_decision(pod, assumed, start)
        if pod.spec.scheduler_name in self._profiles:
            self._queue.delete(pod, start)
            self._status.forget(uid)
        self._queue.move_all(EVENT_ASSIGNED_POD_ADD, None, pod, start)
        self._handled(EVENT_ASSIGNED_POD_ADD, start)

    def _foreign_decision(self, pod: Pod, assumed: Pod | None, now: float) -> None:
        """Somebody else put the pod on its node. ``assumed``: the pod as we had placed it."""
        if assumed is not None:
            if self._bindings.cancel(pod.uid, "bound to another node by somebody else"):
                self._observer.conflict("bound_elsewhere")
            self._queue.move_all(EVENT_ASSIGNED_POD_DELETE, assumed, None, now)
        node = pod.spec.node_name
        if self._bindings.is_target(node) and is_overfull(self._cache, node):
            self._observer.conflict("over_allocatable")
            log.info(1, "A foreign pod overfills a node we are binding to", pod=pod.key, node=node)
            self._bindings.contest(node)

    def _assigned_changed(self, old: Pod, new: Pod) -> None:
        start = self._clock.monotonic()
        if log.v(4):
            log.info(4, "Update event for scheduled pod", pod=new.key)
        self._cache.set_pod(new)
        for action in pod_changes(old, new) or (Action.UPDATE_POD_OTHER,):
            event = ASSIGNED_POD_UPDATE[action]
            self._queue.move_all(event, old, new, start)
            self._handled(event, start)

    def _waiting_changed(self, old: Pod, new: Pod) -> None:
        if old.metadata.resource_version == new.metadata.resource_version:
            return
        start = self._clock.monotonic()
        known = self._cache.pod(new.metadata.uid)
        if known is not None:
            if known.assumed and new.is_terminating and not old.is_terminating:
                self._assumed_gone(known, start)
            return
        if log.v(4):
            log.info(4, "Update event for unscheduled pod", pod=new.key)
        self._queue.update(old, new, start)
        self._handled(UNSCHEDULABLE_POD_UPDATE[Action.UPDATE_POD_OTHER], start)

    def _gone(self, pod: Pod) -> None:
        """The pod does not exist any more, or is finished; ``pod`` is its last version that was neither."""
        start = self._clock.monotonic()
        uid = pod.metadata.uid
        self._preemption.forget(uid)
        self._status.forget(uid)
        known = self._cache.pod(uid)
        is_scheduled = known is not None and not known.assumed
        if log.v(3):
            log.info(3, f"Delete event for {'' if is_scheduled else 'un'}scheduled pod", pod=pod.key)
        if known is not None and known.assumed:
            self._assumed_gone(known, start)
        elif known is not None:
            self._cache.remove_pod(uid)
            self._queue.move_all(EVENT_ASSIGNED_POD_DELETE, known.info.pod, None, start)
        self._queue.delete(pod, start)
        self._handled(EVENT_ASSIGNED_POD_DELETE if is_scheduled else EVENT_UNSCHEDULED_POD_DELETE, start)

    def _assumed_gone(self, known: PodEntry, now: float) -> None:
        """A pod vanishes while it is being bound: its node is free at once. A binding that cannot be stopped any more
        will find out by itself.

        Source: handleAssumedPodDeletion.
        """
        uid = known.info.uid
        self._bindings.cancel(uid, "pod is deleted")
        self._cache.forget(uid)
        self._queue.move_all(EVENT_ASSIGNED_POD_DELETE, known.info.pod, None, now)

    # Nodes and the rest

    def node(self, old: Node | None, new: Node | None) -> None:
        """A node came, changed, or went."""
        start = self._clock.monotonic()
        if new is None:
            assert old is not None
            log.info(3, "Delete event for node", node=old.name)
            self._cache.remove_node(old)
            self._preemption.node_gone(old.name)
            self._queue.move_all(NODE_DELETE, old, None, start)
            self._handled(NODE_DELETE, start)
        elif old is None:
            log.info(3, "Add event for node", node=new.name)
            self._cache.set_node(new)
            self._queue.move_all(NODE_ADD, None, new, start)
            self._handled(NODE_ADD, start)
        else:
            self._cache.set_node(new)
            for action in node_changes(old, new):
                self._queue.move_all(NODE_UPDATE[action], old, new, start)
                self._handled(NODE_UPDATE[action], start)

    def other(self, kind: str, old: Object | None, new: Object | None) -> None:
        """An object of another kind came, changed, or went. One that only has a new version wakes nobody."""
        start = self._clock.monotonic()
        attribute, resource = KINDS[kind]
        lister = getattr(self._cache.listers, attribute)
        if new is not None:
            lister.put(new)
        elif old is not None:
            lister.remove(old)
        if resource is None or (old is not None and new is not None and _is_same(old, new)):
            return
        event = _EVENTS[resource][0 if old is None else 2 if new is None else 1]
        self._queue.move_all(event, old, new, start)
        self._handled(event, start)

    def _handled(self, event: ClusterEvent, start: float) -> None:
        self._observer.event_handled(event.label, self._clock.monotonic() - start)


def _is_same(old: Object, new: Object) -> bool:
    """Whether nothing but bookkeeping changed."""
    meta = msgspec.structs.replace(
        old.metadata, resource_version=new.metadata.resource_version, generation=new.metadata.generation
    )
    return msgspec.structs.replace(old, metadata=meta) == new
