"""PreBind: allocations and reservations are written into the claims. Source: bindClaim in dynamicresources.go."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from kube_pyscheduler.framework.handle import BindingHandle, StaleObject
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.objects.resource import (
    EXTENDED_RESOURCE_CLAIM,
    FINALIZER,
    AllocationResult,
    ResourceClaim,
)
from kube_pyscheduler.plugins.dynamic_resources.state import EXTENDED, Extended, PodState
from kube_pyscheduler.plugins.dynamic_resources.writes import CLAIM, TRIES

CLAIM_SEEN = 120.0
"""Seconds to wait until the watch tells of a claim we made. Source: AssumeExtendedResourceTimeoutDefaultSeconds."""


class BindingFailed(Exception):
    """The pod cannot be bound; the message says why."""


async def write_claims(handle: BindingHandle, state: PodState, pod: Pod) -> None:
    """Write what Reserve chose, and that the pod uses its claims. Raises BindingFailed."""
    for number, claim in enumerate(state.claims):
        if claim.is_reserved_for(pod.uid):
            continue
        try:
            state.claims[number] = await _written(handle, claim, state.allocations.get(number), pod)
            _assume(handle, state.claims[number])
        finally:
            state.devices.allocated.give_back(claim.uid)
    if state.extended is not None and EXTENDED in state.allocations and state.extended.requests.devices.requests:
        try:
            await _write_extended(handle, state.extended, state.allocations[EXTENDED], pod)
        finally:
            state.devices.allocated.give_back(state.extended.uid)


async def _write_extended(handle: BindingHandle, extended: Extended, allocation: AllocationResult, pod: Pod) -> None:
    """Make the claim for extended resources, allocate it, and tell the pod of it."""
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": CLAIM,
        "metadata": {
            "namespace": pod.namespace,
            "generateName": f"{pod.name}-extended-resources-",
            "annotations": {EXTENDED_RESOURCE_CLAIM: "true"},
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": True}
            ],
        },
        "spec": {"devices": msgspec.to_builtins(extended.requests.devices)},
    }
    try:
        made: ResourceClaim = await handle.create(CLAIM, pod.namespace, body)
    except Exception as failed:
        raise BindingFailed(f"create claim for extended resources {pod.namespace}/: {failed}") from failed
    extended.created = made
    extended.created = made = await _written(handle, made, allocation, pod)
    # Until the watch has told of the claim nobody would count it.
    await handle.until(CLAIM, made.key, lambda seen: seen is not None, CLAIM_SEEN)
    _assume(handle, made)
    status = {
        "requestMappings": msgspec.to_builtins(extended.requests.mappings),
        "resourceClaimName": made.name,
    }
    patch = {"metadata": {"uid": pod.uid}, "status": {"extendedResourceClaimStatus": status}}
    try:
        await handle.patch("Pod", pod.namespace, pod.name, patch, status=True)
    except Exception as failed:
        raise BindingFailed(f"update pod {pod.key} ExtendedResourceClaimStatus: {failed}") from failed


async def _written(
    handle: BindingHandle, claim: ResourceClaim, allocation: AllocationResult | None, pod: Pod
) -> ResourceClaim:
    """The claim with ``allocation`` (unless it has one) and with the pod among its users. A claim that was changed
    meanwhile is read again."""
    for tries_left in reversed(range(TRIES)):
        try:
            return await _write_once(handle, claim, allocation, pod)
        except StaleObject as stale:
            if not tries_left:
                what = "allocation and reservation" if allocation is not None else "reservation"
                raise BindingFailed(f"add {what} to claim {claim.key}: {stale}") from None
        try:
            latest = await handle.read(CLAIM, claim.namespace, claim.name)
        except Exception as failed:
            raise BindingFailed(f"get updated claim {claim.key} after conflict: {failed}") from failed
        if latest is None or latest.uid != claim.uid:
            raise BindingFailed(f"claim {claim.key} got deleted in the meantime")
        claim = latest
    raise AssertionError("the last try ends this")


async def _write_once(
    handle: BindingHandle, claim: ResourceClaim, allocation: AllocationResult | None, pod: Pod
) -> ResourceClaim:
    if claim.metadata.deletion_timestamp:
        raise BindingFailed(f"claim {claim.key} got deleted in the meantime")
    if allocation is not None:
        if claim.allocation is not None:
            raise BindingFailed(f"claim {claim.key} got allocated elsewhere in the meantime")
        if FINALIZER not in claim.metadata.finalizers:
            patch = {"metadata": {**_version(claim), "finalizers": [*claim.metadata.finalizers, FINALIZER]}}
            claim = await _patched(handle, claim, patch, "add finalizer to claim", status=False)
    elif claim.allocation is None:
        raise BindingFailed(f"claim {claim.key} got deallocated elsewhere in the meantime")
    user = {"resource": "pods", "name": pod.name, "uid": pod.uid}
    status: dict[str, Any] = {"reservedFor": [*msgspec.to_builtins(claim.status.reserved_for), user]}
    if allocation is not None:
        stamp = datetime.fromtimestamp(handle.wall_time(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        status["allocation"] = {**msgspec.to_builtins(allocation), "allocationTimestamp": stamp}
        what = "add allocation and reservation to claim"
    else:
        what = "add reservation to claim"
    return await _patched(handle, claim, {"metadata": _version(claim), "status": status}, what, status=True)


async def _patched(
    handle: BindingHandle, claim: ResourceClaim, patch: dict[str, Any], what: str, *, status: bool
) -> ResourceClaim:
    try:
        written: ResourceClaim = await handle.patch(CLAIM, claim.namespace, claim.name, patch, status=status)
    except StaleObject:
        raise
    except Exception as failed:
        raise BindingFailed(f"{what} {claim.key}: {failed}") from failed
    return written


def _version(claim: ResourceClaim) -> dict[str, str]:
    return {"uid": claim.uid, "resourceVersion": claim.metadata.resource_version}


def _assume(handle: BindingHandle, claim: ResourceClaim) -> None:
    """Count the claim as it was written, although the watch has not told of it yet."""
    try:
        handle.listers.resource_claims.assume(claim)
    except LookupError:
        # It was changed or deleted again, and the watch knows of that.
        return
