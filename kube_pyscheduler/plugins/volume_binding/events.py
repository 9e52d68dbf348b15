"""What may help a pod that VolumeBinding refused.

Source: EventsToRegister and the hints in pkg/scheduler/framework/plugins/volumebinding/volume_binding.go. Upstream
looks less at what the pod's claims wait for, and for drivers at volumes that the pod names itself, which have no
capacity.
"""

from __future__ import annotations

from collections.abc import Hashable

from kube_pyscheduler.framework.cluster_event import (
    Action,
    ClusterEvent,
    EventRegistration,
    QueueingHint,
    Resource,
    queue_if,
)
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.framework.status import Status
from kube_pyscheduler.objects.csi_translation import migrated_plugins
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.objects.quantity import parse_milli, to_units
from kube_pyscheduler.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    claim_class,
    claim_uses,
    volume_class,
)
from kube_pyscheduler.plugins.volume_binding.capacity import NO_ROOM, volume_limit
from kube_pyscheduler.plugins.volume_binding.claims import (
    BIND_COMPLETED,
    SELECTED_NODE,
    PodClaims,
    claims_of,
    is_fully_bound,
)
from kube_pyscheduler.plugins.volume_binding.index import VolumeIndex, is_bound_to
from kube_pyscheduler.plugins.volume_binding.kernel import BoundVolume, bound_volume
from kube_pyscheduler.plugins.volume_binding.pool import is_candidate, size_of
from kube_pyscheduler.plugins.volume_binding.topology import affinity_of


def _waiting_for(pod: Pod) -> Hashable:
    """What the hints read of a waiting pod."""
    uses = claim_uses(pod)
    owner = (pod.name, pod.uid) if any(use.is_ephemeral for use in uses) else None
    return pod.namespace, uses, owner


def _claims(pod: Pod, view: Listers) -> PodClaims:
    """None of them where a claim is not ready: then only something about claims and classes helps."""
    claims = claims_of(view, pod, claim_uses(pod))
    return PodClaims() if isinstance(claims, Status) else claims


def _class_changed(pod: Pod, old: StorageClass | None, new: StorageClass, view: Listers) -> QueueingHint:
    if old is not None and old.allowed_topologies == new.allowed_topologies:
        return QueueingHint.SKIP
    found = [view.persistent_volume_claims.latest(f"{pod.namespace}/{use.name}") for use in claim_uses(pod)]
    return queue_if(any(c is not None and claim_class(c) == new.name and not is_fully_bound(c) for c in found))


def _claim_changed(
    pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim, view: Listers
) -> QueueingHint:
    if new.namespace != pod.namespace or all(use.name != new.name for use in claim_uses(pod)):
        return QueueingHint.SKIP
    return queue_if(old is None or _said_by(old) != _said_by(new))


def _said_by(claim: PersistentVolumeClaim) -> tuple[object, ...]:
    """What of a claim is looked at."""
    meta = claim.metadata
    return (
        claim.spec,
        claim_class(claim),
        claim.status.phase == "Lost",
        bool(meta.deletion_timestamp),
        meta.controller(),
        BIND_COMPLETED in meta.annotations,
        meta.annotations.get(SELECTED_NODE),
    )


def _volume_changed(pod: Pod, old: PersistentVolume | None, new: PersistentVolume, view: Listers) -> QueueingHint:
    if old is not None and _said_by_volume(old) == _said_by_volume(new):
        return QueueingHint.SKIP
    claims = _claims(pod, view)
    if any(claim.spec.volume_name == new.name for claim in claims.bound):
        return QueueingHint.QUEUE
    return queue_if(any(is_bound_to(new, claim) or is_candidate(new, claim) for claim in claims.delayed))


def _said_by_volume(volume: PersistentVolume) -> tuple[object, ...]:
    meta = volume.metadata
    return volume.spec, volume_class(volume), volume.status.phase, meta.labels, bool(meta.deletion_timestamp)


def _node_changed(pod: Pod, old: Node | None, new: Node, view: Listers) -> QueueingHint:
    claims = _claims(pod, view)
    volumes = [bound_volume(view, claim) for claim in claims.bound]
    if not all(volume is not None and any(_reaches(volume, new)) for volume in volumes):
        return QueueingHint.SKIP
    if old is None:
        return queue_if(bool(volumes or claims.delayed))
    if not all(volume is not None and all(_reaches(volume, old)) for volume in volumes):
        return QueueingHint.QUEUE
    index = view.nodes.attached(VolumeIndex)
    index.sync(view)
    before, after = old.metadata.labels, new.metadata.labels
    keys = [key for claim in claims.delayed for key in index.node_labels(view, claim)]
    return queue_if(any(before.get(key) != after.get(key) for key in keys))


def _reaches(bound: BoundVolume, node: Node) -> list[bool]:
    """Whether a volume can be reached from a node, as it is and as its driver has it, if there are these."""
    affinities = [affinity_of(volume) for volume in (bound.volume, bound.of_driver) if volume is not None]
    return [affinity is None or affinity.matches(node.metadata.labels, node.name) for affinity in affinities]


def _csi_node_changed(pod: Pod, old: CSINode | None, new: CSINode | None, view: Listers) -> QueueingHint:
    before, after = (migrated_plugins(each) if each is not None else frozenset() for each in (old, new))
    if before == after:
        return QueueingHint.SKIP
    volumes = [bound_volume(view, claim) for claim in _claims(pod, view).bound]
    return queue_if(any(volume is not None and volume.plugin in before ^ after for volume in volumes))


def _driver_changed(pod: Pod, old: CSIDriver, new: CSIDriver | None, view: Listers) -> QueueingHint:
    """A driver that tells of its capacity no more is believed to have enough."""
    if not old.spec.storage_capacity or (new is not None and new.spec.storage_capacity):
        return QueueingHint.SKIP
    classes = [view.storage_classes.get(claim_class(claim)) for claim in _claims(pod, view).delayed]
    return queue_if(any(each is not None and each.provisioner == old.name for each in classes))


def _capacity_changed(pod: Pod, old: CSIStorageCapacity | None, new: CSIStorageCapacity, view: Listers) -> QueueingHint:
    before = NO_ROOM if old is None or old.node_topology != new.node_topology else _room(old)
    after = _room(new)
    if after <= before:
        return QueueingHint.SKIP
    sizes = [
        to_units(size_of(claim)) for claim in _claims(pod, view).delayed if claim_class(claim) == new.storage_class_name
    ]
    return queue_if(any(before < size <= after for size in sizes))


def _room(capacity: CSIStorageCapacity) -> int:
    limit = volume_limit(capacity)
    return NO_ROOM if limit is None else to_units(parse_milli(limit))


def _pod_gone(pod: Pod, old: Pod, new: None, view: Listers) -> QueueingHint:
    """Upstream does not listen to that. Only a pod that did not get its node after all gives volumes back when it goes;
    it is told by claims that are still to be bound."""
    wanted = {claim_class(claim) for claim in _claims(pod, view).delayed}
    if not wanted:
        return QueueingHint.SKIP
    found = [view.persistent_volume_claims.get(f"{old.namespace}/{use.name}") for use in claim_uses(old)]
    return queue_if(any(c is not None and not is_fully_bound(c) and claim_class(c) in wanted for c in found))


_CHANGE = Action.ADD | Action.UPDATE

EVENTS = (
    EventRegistration(ClusterEvent(Resource.STORAGE_CLASS, _CHANGE), _class_changed, _waiting_for),
    EventRegistration(ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, _CHANGE), _claim_changed, _waiting_for),
    EventRegistration(ClusterEvent(Resource.PERSISTENT_VOLUME, _CHANGE), _volume_changed, _waiting_for),
    EventRegistration(ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL), _node_changed, _waiting_for),
    EventRegistration(ClusterEvent(Resource.CSI_NODE, _CHANGE | Action.DELETE), _csi_node_changed, _waiting_for),
    EventRegistration(ClusterEvent(Resource.CSI_DRIVER, Action.UPDATE | Action.DELETE), _driver_changed, _waiting_for),
    EventRegistration(ClusterEvent(Resource.CSI_STORAGE_CAPACITY, _CHANGE), _capacity_changed, _waiting_for),
    EventRegistration(ClusterEvent(Resource.POD, Action.DELETE), _pod_gone, _waiting_for),
)
