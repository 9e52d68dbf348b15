"""What is written outside of binding cycles: allocations and reservations given back, claims deleted.

Source: PostFilter, Unreserve and deleteClaim in pkg/scheduler/framework/plugins/dynamicresources.
"""

from __future__ import annotations

from kube_pyscheduler.framework.handle import BindingHandle, StaleObject
from kube_pyscheduler.objects.resource import FINALIZER, ResourceClaim

CLAIM = "ResourceClaim"

TRIES = 5
"""How often a write is tried whose object was changed meanwhile. Source: DefaultRetry in client-go/util/retry."""


async def deallocate(claim: ResourceClaim, handle: BindingHandle) -> None:
    """Take the allocation back, unless the claim was changed meanwhile."""
    meta = claim.metadata
    nothing = {"allocation": None, "reservedFor": None, "devices": None}
    patch = {"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version}, "status": nothing}
    await handle.patch(CLAIM, meta.namespace, meta.name, patch, status=True)


async def release(claim: ResourceClaim, pod_uid: str, handle: BindingHandle) -> None:
    """The pod does not use the claim after all."""
    gone = [{"$patch": "delete", "uid": pod_uid}]
    patch = {"metadata": {"uid": claim.uid}, "status": {"reservedFor": gone}}
    await handle.patch(CLAIM, claim.namespace, claim.name, patch, status=True, strategic=True)


async def delete(claim: ResourceClaim, handle: BindingHandle) -> None:
    """Delete the claim, and let go of it first."""
    for tries_left in reversed(range(TRIES)):
        meta = claim.metadata
        kept = [finalizer for finalizer in meta.finalizers if finalizer != FINALIZER]
        version = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        try:
            await handle.patch(CLAIM, meta.namespace, meta.name, {"metadata": {**version, "finalizers": kept}})
            break
        except StaleObject:
            latest = await handle.read(CLAIM, meta.namespace, meta.name) if tries_left else None
            if latest is None or latest.metadata.uid != meta.uid:
                raise
            claim = latest
    await handle.delete(CLAIM, claim.namespace, claim.name, claim.uid)
