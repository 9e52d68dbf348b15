"""Devices that have to be waited for: they may be bound to once their driver has set certain conditions.

Source: isClaimReadyForBinding, isClaimTimeout and isPodReadyForBinding in dynamicresources.go.
"""

from __future__ import annotations

from datetime import datetime

from kube_pyscheduler.framework.handle import BindingHandle
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.objects.resource import AllocatedDevice, AllocatedDeviceStatus, ResourceClaim
from kube_pyscheduler.plugins.dynamic_resources.binding import BindingFailed
from kube_pyscheduler.plugins.dynamic_resources.state import PodState

TIMEOUT = "device binding timeout"


class _DeviceFailed(Exception):
    """A driver says that the device cannot be had."""


def has_failed(claim: ResourceClaim, timeout: float, now: float) -> bool:
    """Whether the claim's devices cannot be bound to, or have not been ready for ``timeout`` seconds. ``now``: seconds
    since the epoch."""
    if claim.allocation is None or not _has_conditions(claim):
        return False
    try:
        return not _is_ready(claim) and _left(claim, timeout, now) < 0
    except _DeviceFailed:
        return True


async def wait(handle: BindingHandle, state: PodState, pod: Pod, node: str, timeout: float) -> None:
    """Wait until all devices of the pod are ready. Raises BindingFailed."""
    created = state.extended.created if state.extended is not None else None
    claims = [claim for claim in (*state.claims, created) if claim is not None and _has_conditions(claim)]
    if not claims:
        return
    note = f"waiting for binding conditions for device on node {node}"
    handle.event(pod, "Normal", "BindingConditionsPending", "Scheduling", note)
    seconds = min(timeout, *(max(_left(claim, timeout, handle.wall_time()), 0.0) for claim in claims))
    watched = [("ResourceClaim", claim.key) for claim in claims]
    try:
        if not await handle.until_any(watched, _all_ready, seconds):
            late = next((claim for claim in claims if _left(claim, timeout, handle.wall_time()) <= 0), None)
            what = f"claim={late.metadata.name}" if late is not None else "context deadline exceeded"
            raise BindingFailed(f"{TIMEOUT}: {what}")
    except _DeviceFailed as failed:
        raise BindingFailed(str(failed)) from None


def _all_ready(*claims: ResourceClaim | None) -> bool:
    for claim in claims:
        if claim is None:
            raise _DeviceFailed("could not find a ResourceClaim of the pod")
    return all(_is_ready(claim) for claim in claims if claim is not None)


def _has_conditions(claim: ResourceClaim) -> bool:
    results = claim.allocation.devices.results if claim.allocation is not None else ()
    return any(device.binding_conditions for device in results)


def _is_ready(claim: ResourceClaim) -> bool:
    """Raises _DeviceFailed."""
    if claim.allocation is None:
        return False
    for device in claim.allocation.devices.results:
        if not device.binding_conditions:
            continue
        status = _status_of(claim, device)
        if status is None:
            return False
        conditions = {condition.type: condition for condition in status.conditions}
        for name in device.binding_failure_conditions:
            failed = conditions.get(name)
            if failed is not None and failed.status == "True":
                raise _DeviceFailed(
                    f'device binding failed: claim={claim.name}, reason={failed.reason}, message="{failed.message}"'
                )
        if any(name not in conditions or conditions[name].status != "True" for name in device.binding_conditions):
            return False
    return True


def _status_of(claim: ResourceClaim, device: AllocatedDevice) -> AllocatedDeviceStatus | None:
    wanted = (device.driver, device.pool, device.device)
    return next((each for each in claim.status.devices if (each.driver, each.pool, each.device) == wanted), None)


def _left(claim: ResourceClaim, timeout: float, now: float) -> float:
    """Seconds until the claim's devices count as not to be had; ``timeout`` where it is not known since when."""
    stamp = claim.allocation.allocation_timestamp if claim.allocation is not None else None
    if not stamp:
        return timeout
    return datetime.fromisoformat(stamp).timestamp() + timeout - now
