"""Which claims a pod uses. Source: Name and IsForPod in dynamic-resource-allocation/resourceclaim/resourceclaim.go."""

from __future__ import annotations

from kube_pyscheduler.framework.listers import WrittenLister
from kube_pyscheduler.objects.pod import Pod, PodResourceClaim
from kube_pyscheduler.objects.resource import EXTENDED_RESOURCE_CLAIM, ResourceClaim


class NotReady(Exception):
    """The pod cannot be tried before its claims are there; the message is upstream's."""


def claims_of(pod: Pod, claims: WrittenLister[ResourceClaim]) -> list[ResourceClaim]:
    """The claims that ``spec.resourceClaims`` stands for, in this order; without those that were not needed. Raises
    NotReady."""
    found = []
    for use in pod.spec.resource_claims:
        name, is_made_for_pod = _name_of(pod, use)
        if name is None:
            continue
        key = f"{pod.namespace}/{name}"
        claim = claims.latest(key)
        if claim is None:
            raise NotReady(f'could not find ResourceClaim "{key}"')
        if claim.metadata.deletion_timestamp:
            raise NotReady(f'resourceclaim "{name}" is being deleted')
        owner = claim.metadata.controller()
        if is_made_for_pod and (owner is None or owner.uid != pod.uid):
            raise NotReady(f"ResourceClaim {key} was not created for Pod {pod.key} (Pod is not owner)")
        found.append(claim)
    return found


def _name_of(pod: Pod, use: PodResourceClaim) -> tuple[str | None, bool]:
    """The claim's name, None where the pod can do without; and whether it was made for the pod from a template."""
    if use.resource_claim_name is not None:
        return use.resource_claim_name, False
    if use.resource_claim_template_name is not None:
        for status in pod.status.resource_claim_statuses:
            if status.name == use.name:
                return status.resource_claim_name, True
        raise NotReady(f'pod "{pod.key}": ResourceClaim not created yet')
    raise NotReady(f'pod "{pod.key}", spec.resourceClaim "{use.name}": none of the supported fields are set')


def extended_claim_of(pod: Pod, claims: WrittenLister[ResourceClaim]) -> ResourceClaim | None:
    """The claim that an earlier attempt made for the pod's extended resources. Source: findExtendedResourceClaim."""
    for known in claims.in_namespace(pod.namespace):
        claim = claims.latest(known.key) or known
        if claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM) != "true":
            continue
        for owner in claim.metadata.owner_references:
            if owner.controller and (owner.name, owner.uid) == (pod.name, pod.uid):
                return claim
    return None
