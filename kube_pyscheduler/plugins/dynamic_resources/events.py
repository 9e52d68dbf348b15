"""What may help a pod that DynamicResources refused.

Source: EventsToRegister, isSchedulableAfterClaimChange and isSchedulableAfterPodChange in dynamicresources.go. Upstream
wakes for whatever happens to nodes, classes and slices, and for all devices that are given back. Here the kept answers
of ``devices`` tell whether some node can serve the claims now.
"""

from __future__ import annotations

import numpy as np

from kube_pyscheduler.columns.arrays import Rows
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.devices.classes import is_offered
from kube_pyscheduler.devices.fragments import FITS, MAX_STEPS, TIMED_OUT
from kube_pyscheduler.devices.requests import class_names
from kube_pyscheduler.devices.search import Budget
from kube_pyscheduler.devices.world import Devices
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
from kube_pyscheduler.objects.resource import CLASS_PREFIX, DeviceClass, ResourceClaim, ResourceSlice
from kube_pyscheduler.plugins.dynamic_resources.claims import NotReady, claims_of, mentions
from kube_pyscheduler.plugins.dynamic_resources.extended import wanted_resources


def _claims(pod: Pod, view: Listers) -> list[ResourceClaim] | None:
    """None while some are missing: then only these help."""
    try:
        return claims_of(pod, view.resource_claims)
    except NotReady:
        return None


def _is_served(pod: Pod, view: Listers, rows: Rows | None = None) -> bool:
    """Whether the pod, if it lacks devices, could get them on some node now; with ``rows``, whether its claims can be
    used or allocated there. For extended resources this is left to the attempt, as it is where too many kinds of claims
    are asked about."""
    claims = _claims(pod, view)
    if claims is None:
        return False
    if _wants_extended(pod, view):
        return True
    table = view.nodes
    lacking = [claim for claim in claims if claim.allocation is None]
    if not lacking and rows is None:
        return False
    wanted = [claim.spec.devices for claim in lacking]
    if any(view.device_classes.get(name) is None for name in class_names(wanted)):
        return False
    rows = table.all_rows if rows is None else rows
    served = table.alive[rows].copy()
    for claim in claims:
        selector = claim.allocation.node_selector if claim.allocation is not None else None
        if selector is not None:
            served &= [
                node is not None and selector.matches(node.metadata.labels, node.name)
                for node in (table.nodes[row] for row in np.arange(table.high)[rows].tolist())
            ]
    if lacking and served.any():
        devices = table.attached(Devices)
        devices.sync(view)
        fragment = devices.expected_fragment(wanted)
        if fragment is None:
            return True
        fragment.sync(Budget(MAX_STEPS))
        codes = fragment.codes(rows)
        served &= (codes == FITS) | (codes == TIMED_OUT)
    return bool(served.any())


def _wants_extended(pod: Pod, view: Listers) -> bool:
    """Whether the pod asks for an extended resource that devices serve."""
    return any(is_offered(name, view.device_classes) for name in wanted_resources(PodInfo(pod)))


def _node_changed(pod: Pod, old: Node | None, new: Node, view: Listers) -> QueueingHint:
    row = view.nodes.row_of.get(new.name)
    if row is None or not _is_served(pod, view, np.array([row], dtype=np.int64)):
        return QueueingHint.SKIP
    if old is None:
        return QueueingHint.QUEUE
    amounts, former = new.status.allocatable, old.status.allocatable
    if any(amounts.get(name) != former.get(name) for name in wanted_resources(PodInfo(pod))):
        return QueueingHint.QUEUE
    before, after = old.metadata.labels, new.metadata.labels
    keys = {key for key in (*before, *after) if before.get(key) != after.get(key)}
    if not keys.isdisjoint(view.nodes.attached(Devices).node_labels(view)):
        return QueueingHint.QUEUE
    placed = [claim.allocation for claim in _claims(pod, view) or () if claim.allocation is not None]
    selectors = [each.node_selector for each in placed if each.node_selector is not None]
    return queue_if(any(not keys.isdisjoint(selector.label_keys()) for selector in selectors))


def _claim_changed(pod: Pod, old: ResourceClaim | None, new: ResourceClaim | None, view: Listers) -> QueueingHint:
    """Devices were given back, or a claim of the pod came or changed."""
    is_freed = old is not None and old.allocation is not None and (new is None or new.allocation is None)
    # Most events are about claims of others; many pods may wait.
    is_mine = new is not None and mentions(pod, new)
    if not is_freed and not is_mine:
        return QueueingHint.SKIP
    claims = _claims(pod, view)
    if claims is None:
        return QueueingHint.SKIP
    if is_mine and any(claim.uid == new.uid for claim in claims if new is not None):
        return queue_if(old is None or new is None or old.status != new.status)
    return queue_if(is_freed and _is_served(pod, view))


def _pod_changed(pod: Pod, old: Pod | None, new: Pod, view: Listers) -> QueueingHint:
    """The pod's claims were made."""
    return queue_if(pod.uid == new.uid and _claims(new, view) is not None)


def _pod_gone(pod: Pod, old: Pod, new: None, view: Listers) -> QueueingHint:
    """Upstream does not listen to that. Devices that a pod had are given back with its claims; but one that did not get
    its node after all gives back what had not been written yet."""
    mine = _claims(old, view) or ()
    status = old.status.extended_resource_claim_status
    is_unwritten = any(claim.allocation is None for claim in mine) or (status is None and _wants_extended(old, view))
    return queue_if(is_unwritten and _is_served(pod, view))


def _class_changed(pod: Pod, old: DeviceClass | None, new: DeviceClass | None, view: Listers) -> QueueingHint:
    if old is not None and new is not None and old.spec == new.spec:
        return QueueingHint.SKIP
    changed = [each for each in (old, new) if each is not None]
    resources = wanted_resources(PodInfo(pod))
    if any(CLASS_PREFIX + each.name in resources or each.spec.extended_resource_name in resources for each in changed):
        return QueueingHint.QUEUE
    wanted = [claim.spec.devices for claim in _claims(pod, view) or ()]
    return queue_if(new is not None and new.name in class_names(wanted) and _is_served(pod, view))


def _slice_changed(pod: Pod, old: ResourceSlice | None, new: ResourceSlice | None, view: Listers) -> QueueingHint:
    if old is not None and new is not None and old.spec == new.spec:
        return QueueingHint.SKIP
    return queue_if(_is_served(pod, view))


_NODE_ACTIONS = Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE
_ANY_CHANGE = Action.ADD | Action.UPDATE | Action.DELETE

REGISTRATIONS = (
    EventRegistration(ClusterEvent(Resource.NODE, _NODE_ACTIONS), _node_changed),
    EventRegistration(ClusterEvent(Resource.RESOURCE_CLAIM, _ANY_CHANGE), _claim_changed),
    EventRegistration(ClusterEvent(Resource.POD, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM), _pod_changed),
    EventRegistration(ClusterEvent(Resource.POD, Action.DELETE), _pod_gone),
    EventRegistration(ClusterEvent(Resource.DEVICE_CLASS, _ANY_CHANGE), _class_changed),
    EventRegistration(ClusterEvent(Resource.RESOURCE_SLICE, _ANY_CHANGE), _slice_changed),
)
