"""What may help a pod that VolumeBinding refused."""

from __future__ import annotations

from collections.abc import Hashable

from kube_pyscheduler.framework.cluster_event import Action, ClusterEvent, EventRegistration, QueueingHint, Resource
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.objects.csi_translation import MIGRATED_PLUGINS_ANNOTATION
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.objects.quantity import parse_milli, to_units
from kube_pyscheduler.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolumeClaim,
    StorageClass,
    claim_uses,
)
from kube_pyscheduler.plugins.volume_binding.capacity import volume_limit


def _answer(helps: bool) -> QueueingHint:
    return QueueingHint.QUEUE if helps else QueueingHint.SKIP


def _class_changed(pod: Pod, old: StorageClass | None, new: StorageClass, view: Listers) -> QueueingHint:
    return _answer(old is None or old.allowed_topologies != new.allowed_topologies)


def _claim_changed(
    pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim, view: Listers
) -> QueueingHint:
    return _answer(new.namespace == pod.namespace and any(use.name == new.name for use in claim_uses(pod)))


def _csi_node_changed(pod: Pod, old: CSINode | None, new: CSINode, view: Listers) -> QueueingHint:
    if old is None:
        return QueueingHint.QUEUE
    before, after = (node.metadata.annotations.get(MIGRATED_PLUGINS_ANNOTATION, "") for node in (old, new))
    return _answer(before != after)


def _driver_changed(pod: Pod, old: CSIDriver, new: CSIDriver, view: Listers) -> QueueingHint:
    """Only volumes that name the driver themselves are looked at, as upstream does."""
    is_used = any(volume.csi is not None and volume.csi.driver == new.name for volume in pod.spec.volumes)
    return _answer(is_used and old.spec.storage_capacity and not new.spec.storage_capacity)


def _capacity_changed(pod: Pod, old: CSIStorageCapacity | None, new: CSIStorageCapacity, view: Listers) -> QueueingHint:
    if old is None:
        return QueueingHint.QUEUE
    before, after = volume_limit(old), volume_limit(new)
    if after is None:
        return QueueingHint.SKIP
    return _answer(before is None or to_units(parse_milli(after)) > to_units(parse_milli(before)))


def _waiting_for(pod: Pod) -> Hashable:
    """What the hints read of a waiting pod."""
    drivers = tuple([volume.csi.driver for volume in pod.spec.volumes if volume.csi is not None])
    return pod.namespace, claim_uses(pod), drivers


_CHANGE = Action.ADD | Action.UPDATE

EVENTS = (
    EventRegistration(ClusterEvent(Resource.STORAGE_CLASS, _CHANGE), _class_changed, _waiting_for),
    EventRegistration(ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, _CHANGE), _claim_changed, _waiting_for),
    EventRegistration(ClusterEvent(Resource.PERSISTENT_VOLUME, _CHANGE)),
    EventRegistration(ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)),
    EventRegistration(ClusterEvent(Resource.CSI_NODE, _CHANGE), _csi_node_changed, _waiting_for),
    EventRegistration(ClusterEvent(Resource.CSI_DRIVER, Action.UPDATE), _driver_changed, _waiting_for),
    EventRegistration(ClusterEvent(Resource.CSI_STORAGE_CAPACITY, _CHANGE), _capacity_changed, _waiting_for),
)
