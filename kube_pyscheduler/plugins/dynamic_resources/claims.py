"""Which claims a pod uses. Source: Name and IsForPod in dynamic-resource-allocation/resourceclaim/resourceclaim.go."""

from __future__ import annotations

from kube_pyscheduler.columns.node_table import NodeTable
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


def mentions(pod: Pod, claim: ResourceClaim) -> bool:
    """Whether the pod names the claim, itself or in its status."""
    if pod.namespace != claim.namespace:
        return False
    name = claim.name
    return any(use.resource_claim_name == name for use in pod.spec.resource_claims) or any(
        made.resource_claim_name == name for made in pod.status.resource_claim_statuses
    )


PodKey = tuple[str, str, str]
"""(namespace, name, uid)."""


class MadeClaims:
    """The claims that earlier attempts made for extended resources, by pod. Attached to the node table, to have one of
    it. Source: findExtendedResourceClaim."""

    def __init__(self, table: NodeTable) -> None:
        self._keys_of: dict[PodKey, set[str]] = {}
        self._pod_of: dict[str, PodKey] = {}
        """Key of a claim → its pod."""
        self._generation = 0

    def of(self, pod: Pod, claims: WrittenLister[ResourceClaim]) -> ResourceClaim | None:
        """The pod's. Cost: the claims that changed since anybody asked."""
        changed = claims.changed_since(self._generation)
        self._generation = claims.generation
        for key in {*self._pod_of, *(claim.key for claim in claims)} if changed is None else changed:
            self._follow(key, claims.latest(key))
        known = self._keys_of.get((pod.namespace, pod.name, pod.uid))
        return claims.latest(min(known)) if known else None

    def _follow(self, key: str, claim: ResourceClaim | None) -> None:
        pod = self._pod_of.pop(key, None)
        if pod is not None:
            self._keys_of[pod].discard(key)
            if not self._keys_of[pod]:
                del self._keys_of[pod]
        owner = claim.metadata.controller() if claim is not None else None
        if claim is None or owner is None or claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM) != "true":
            return
        pod = claim.namespace, owner.name, owner.uid
        self._pod_of[key] = pod
        self._keys_of.setdefault(pod, set()).add(key)
