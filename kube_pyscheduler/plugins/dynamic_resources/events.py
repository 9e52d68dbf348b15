"""What may help a pod that DynamicResources refused.

Source: EventsToRegister, isSchedulableAfterClaimChange and isSchedulableAfterPodChange in dynamicresources.go.
"""

from __future__ import annotations

from kube_pyscheduler.framework.cluster_event import Action, ClusterEvent, EventRegistration, QueueingHint, Resource
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.objects.resource import ResourceClaim
from kube_pyscheduler.plugins.dynamic_resources.claims import NotReady, claims_of, mentions


def claim_changed(pod: Pod, old: ResourceClaim | None, new: ResourceClaim, view: Listers) -> QueueingHint:
    """Devices were given back, or a claim of the pod came or changed."""
    is_freed = old is not None and old.allocation is not None and new.allocation is None
    # Most events are about claims of others; many pods may wait.
    if not is_freed and not mentions(pod, new):
        return QueueingHint.SKIP
    try:
        claims = claims_of(pod, view.resource_claims)
    except NotReady:
        return QueueingHint.SKIP
    if is_freed:
        return QueueingHint.QUEUE
    if all(claim.uid != new.uid for claim in claims):
        return QueueingHint.SKIP
    if old is not None and old.status == new.status:
        return QueueingHint.SKIP
    return QueueingHint.QUEUE


def pod_changed(pod: Pod, old: Pod | None, new: Pod, view: Listers) -> QueueingHint:
    """The pod's claims were made."""
    if pod.uid != new.uid:
        return QueueingHint.SKIP
    try:
        claims_of(new, view.resource_claims)
    except NotReady:
        return QueueingHint.SKIP
    return QueueingHint.QUEUE


_NODE_ACTIONS = Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE

REGISTRATIONS = (
    EventRegistration(ClusterEvent(Resource.NODE, _NODE_ACTIONS)),
    EventRegistration(ClusterEvent(Resource.RESOURCE_CLAIM, Action.ADD | Action.UPDATE), claim_changed),
    EventRegistration(ClusterEvent(Resource.POD, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM), pod_changed),
    EventRegistration(ClusterEvent(Resource.DEVICE_CLASS, Action.ADD | Action.UPDATE)),
    EventRegistration(ClusterEvent(Resource.RESOURCE_SLICE, Action.ADD | Action.UPDATE)),
)
