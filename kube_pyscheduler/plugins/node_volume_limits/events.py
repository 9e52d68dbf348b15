"""What may help a pod that NodeVolumeLimits refused: something about the drivers of its volumes, and no others.

Source: EventsToRegister in pkg/scheduler/framework/plugins/nodevolumelimits/csi.go. Upstream takes a limit that is
lifted for one of 0, and does not hear of CSINodes that go, or of nodes, whose CSINode may come before them.
"""

from __future__ import annotations

from collections.abc import Hashable

from kube_pyscheduler.columns.csi_nodes import NO_LIMIT, facts_of
from kube_pyscheduler.framework.cluster_event import (
    Action,
    ClusterEvent,
    EventRegistration,
    QueueingHint,
    Resource,
    queue_if,
)
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.objects.storage import (
    CSIDriver,
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    VolumeAttachment,
    claim_uses,
)
from kube_pyscheduler.plugins.node_volume_limits.volumes import (
    ClaimRef,
    Counted,
    must_be_registered,
    uses_of,
    volume_of_claim,
)

NONE = -1
"""Fewer volumes than 0: not even a pod that brings no new one is taken."""


def _volumes(pod: Pod, view: Listers) -> set[Counted]:
    """The pod's volumes that count, as far as these are known."""
    found = set()
    for use in uses_of(pod):
        if isinstance(use, ClaimRef):
            claim = view.persistent_volume_claims.get(use.key)
            volume = volume_of_claim(view, use, claim) if claim is not None else None
        else:
            volume = use
        if isinstance(volume, Counted):
            found.add(volume)
    return found


def _drivers(pod: Pod, view: Listers) -> set[str]:
    return {counted.volume.driver for counted in _volumes(pod, view)}


def _has_unknown_volumes(pod: Pod, view: Listers) -> bool:
    """Whether a claim is gone, or the volume that it is bound to."""
    for use in uses_of(pod):
        if isinstance(use, ClaimRef):
            claim = view.persistent_volume_claims.get(use.key)
            if claim is None or (
                claim.spec.volume_name and view.persistent_volumes.get(claim.spec.volume_name) is None
            ):
                return True
    return False


def _waiting_for(pod: Pod) -> Hashable:
    """What the hints read of a waiting pod."""
    return pod.namespace, uses_of(pod)


def _limit(csi_node: CSINode | None, counted: Counted, view: Listers) -> int:
    if csi_node is None and counted.is_in_tree:
        return NO_LIMIT
    driver = counted.volume.driver
    facts = facts_of(csi_node) if csi_node is not None else None
    if facts is None or driver not in facts.drivers:
        return NONE if must_be_registered(view, driver) else NO_LIMIT
    limit = facts.limit(driver)
    return NO_LIMIT if limit is None else limit


def _csi_node_changed(pod: Pod, old: CSINode | None, new: CSINode | None, view: Listers) -> QueueingHint:
    return queue_if(any(_limit(new, counted, view) > _limit(old, counted, view) for counted in _volumes(pod, view)))


def _node_came(pod: Pod, old: None, new: Node, view: Listers) -> QueueingHint:
    csi_node = view.csi_nodes.get(new.name)
    return queue_if(all(_limit(csi_node, counted, view) > 0 for counted in _volumes(pod, view)))


def _driver_changed(pod: Pod, old: CSIDriver, new: CSIDriver | None, view: Listers) -> QueueingHint:
    """Ours, as is that drivers may have to be registered."""
    was_needed = old.spec.prevent_pod_scheduling_if_missing
    is_needed = new is not None and new.spec.prevent_pod_scheduling_if_missing
    return queue_if(was_needed and not is_needed and old.name in _drivers(pod, view))


def _pod_came(pod: Pod, old: None, new: Pod, view: Listers) -> QueueingHint:
    """A volume that a node has already needs no place there. Upstream does not look at that."""
    theirs, mine = ({counted.volume for counted in _volumes(each, view)} for each in (new, pod))
    return queue_if(not theirs.isdisjoint(mine))


def _pod_gone(pod: Pod, old: Pod, new: Pod | None, view: Listers) -> QueueingHint:
    if not old.spec.node_name and not old.status.nominated_node_name:
        return QueueingHint.SKIP
    return queue_if(_has_unknown_volumes(old, view) or not _drivers(old, view).isdisjoint(_drivers(pod, view)))


def _claim_added(pod: Pod, old: None, new: PersistentVolumeClaim, view: Listers) -> QueueingHint:
    return queue_if(new.namespace == pod.namespace and any(use.name == new.name for use in claim_uses(pod)))


def _volume_came(pod: Pod, old: None, new: PersistentVolume, view: Listers) -> QueueingHint:
    """The volume of one of the pod's claims may be of another driver than was thought."""
    claims = [view.persistent_volume_claims.get(f"{pod.namespace}/{use.name}") for use in claim_uses(pod)]
    return queue_if(any(claim is not None and claim.spec.volume_name == new.name for claim in claims))


def _volume_detached(pod: Pod, old: VolumeAttachment, new: None, view: Listers) -> QueueingHint:
    return queue_if(old.spec.attacher in _drivers(pod, view))


EVENTS = (
    EventRegistration(ClusterEvent(Resource.NODE, Action.ADD), _node_came, _waiting_for),
    EventRegistration(
        ClusterEvent(Resource.CSI_NODE, Action.ADD | Action.UPDATE | Action.DELETE), _csi_node_changed, _waiting_for
    ),
    EventRegistration(ClusterEvent(Resource.CSI_DRIVER, Action.UPDATE | Action.DELETE), _driver_changed, _waiting_for),
    EventRegistration(ClusterEvent(Resource.POD, Action.ADD), _pod_came, _waiting_for),
    EventRegistration(ClusterEvent(Resource.POD, Action.DELETE), _pod_gone, _waiting_for),
    EventRegistration(ClusterEvent(Resource.PERSISTENT_VOLUME, Action.ADD), _volume_came, _waiting_for),
    EventRegistration(ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD), _claim_added, _waiting_for),
    EventRegistration(ClusterEvent(Resource.VOLUME_ATTACHMENT, Action.DELETE), _volume_detached, _waiting_for),
)
