"""What DynamicResources knows of a pod, from PreFilter to PreBind."""

from __future__ import annotations

from dataclasses import dataclass, field

from kube_pyscheduler.columns.arrays import Mask
from kube_pyscheduler.devices.fragments import Fragment
from kube_pyscheduler.devices.world import Devices
from kube_pyscheduler.framework.cycle_state import StateKey
from kube_pyscheduler.objects.resource import AllocationResult, ResourceClaim
from kube_pyscheduler.plugins.dynamic_resources.extended import NO_REQUESTS, ExtendedRequests


@dataclass(slots=True)
class Extended:
    """The claim for extended resources. ``uid`` stands for it until it is created. ``resources``: what the pod asks
    for, in whole units. ``stale``: the claim that an earlier attempt left behind, which must go first. ``created``: the
    claim once it is written."""

    uid: str
    resources: dict[str, int]
    stale: ResourceClaim | None = None
    created: ResourceClaim | None = None
    requests: ExtendedRequests = NO_REQUESTS
    """What of it the chosen node serves by devices; set by Reserve."""


@dataclass(frozen=True, slots=True)
class Part:
    """Rows on which the same claims need devices. ``rows``: bool[high], None for all. ``resources``: the extended
    resources that are served by devices there. ``fragment``: None where nothing needs devices."""

    rows: Mask | None
    resources: tuple[str, ...]
    fragment: Fragment | None


@dataclass(slots=True)
class PodState:
    """``claims``: those of ``spec.resourceClaims``, replaced by newer versions as they are written."""

    devices: Devices
    claims: list[ResourceClaim] = field(default_factory=list)
    extended: Extended | None = None
    to_allocate: tuple[int, ...] = ()
    """Numbers of the claims that need devices, without the one for extended resources."""
    unavailable: dict[int, Mask] = field(default_factory=dict)
    """Number of an allocated claim → bool[high]: rows where it cannot be used; set by Filter."""
    parts: list[Part] = field(default_factory=list)
    """Set by Filter."""
    allocations: dict[int, AllocationResult] = field(default_factory=dict)
    """By number of the claim, what Reserve chose; the claim for extended resources is number EXTENDED."""

    @property
    def is_empty(self) -> bool:
        """The pod uses no claims, or its claims are not ready."""
        return not self.claims and self.extended is None

    def keys(self, namespace: str) -> list[str]:
        """Keys of the claims that need devices, as messages name them."""
        keys = [self.claims[number].key for number in self.to_allocate]
        return [*keys, f"{namespace}/{IN_MEMORY}"] if self.extended is not None else keys


EXTENDED = -1

IN_MEMORY = "<extended-resources>"
"""Name of the claim for extended resources until it is created. Source: specialClaimInMemName."""

STATE: StateKey[PodState] = StateKey("DynamicResources")
