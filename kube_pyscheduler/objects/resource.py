"""Devices: what drivers offer in slices, what classes select, what claims ask for and were given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from kube_pyscheduler.objects.exact_quantity import parse_quantity
from kube_pyscheduler.objects.meta import Int64, Object, Struct
from kube_pyscheduler.objects.quantity import RawQuantity
from kube_pyscheduler.objects.selectors import NodeSelector

EXACT_COUNT = "ExactCount"
ALL_DEVICES = "All"

FINALIZER = "resource.kubernetes.io/delete-protection"
"""On a claim while it is allocated. Source: Finalizer in api/resource/v1/types.go."""

EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"
"""Annotation of claims that the scheduler made for extended resources of a pod."""

CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"
"""Every class can be asked for as the extended resource of this prefix and its name."""


class DeviceAttribute(Struct, frozen=True):
    """One of these."""

    int_value: Int64 | None = msgspec.field(name="int", default=None)
    bool_value: bool | None = msgspec.field(name="bool", default=None)
    string_value: str | None = msgspec.field(name="string", default=None)
    version_value: str | None = msgspec.field(name="version", default=None)

    @property
    def value(self) -> tuple[str, int | bool | str] | None:
        """Type and value of what is set; None where it is of a type we do not know."""
        if self.string_value is not None:
            return "string", self.string_value
        if self.int_value is not None:
            return "int", self.int_value
        if self.bool_value is not None:
            return "bool", self.bool_value
        if self.version_value is not None:
            return "version", self.version_value
        return None


class CapacityRange(Struct, frozen=True):
    min: RawQuantity | None = None
    max: RawQuantity | None = None
    step: RawQuantity | None = None


class CapacityPolicy(Struct, frozen=True):
    default: RawQuantity | None = None
    valid_range: CapacityRange | None = None
    valid_values: tuple[RawQuantity, ...] = ()


class DeviceCapacity(Struct, frozen=True):
    value: RawQuantity = 0
    request_policy: CapacityPolicy | None = None

    def amounts(self) -> Iterator[RawQuantity]:
        """Every quantity in it."""
        yield self.value
        policy = self.request_policy
        if policy is None:
            return
        bounds = policy.valid_range
        limits = (bounds.min, bounds.max, bounds.step) if bounds is not None else ()
        yield from (amount for amount in (policy.default, *limits) if amount is not None)
        yield from policy.valid_values


class Counter(Struct, frozen=True):
    value: RawQuantity = 0


class CounterSet(Struct, frozen=True):
    name: str = ""
    counters: dict[str, Counter] = {}


class CounterConsumption(Struct, frozen=True):
    counter_set: str = ""
    counters: dict[str, Counter] = {}


class DeviceTaint(Struct, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class DeviceToleration(Struct, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None

    def tolerates(self, taint: DeviceTaint) -> bool:
        """Source: ToleratesTaint in dynamic-resource-allocation/resourceclaim/devicetoleration.go."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator in ("", "Equal"):
            return self.value == taint.value
        return self.operator == "Exists"


class Device(Struct, frozen=True):
    name: str = ""
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: tuple[CounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool = False


class ResourcePool(Struct, frozen=True):
    name: str = ""
    generation: Int64 = 0
    resource_slice_count: Int64 = 0


class ResourceSliceSpec(Struct, frozen=True):
    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(Object, frozen=True):
    spec: ResourceSliceSpec = ResourceSliceSpec()

    def check(self) -> None:
        for device in self.spec.devices:
            for capacity in device.capacity.values():
                for amount in capacity.amounts():
                    parse_quantity(amount)
        consumed = [consumption.counters for device in self.spec.devices for consumption in device.consumes_counters]
        for counters in (*(offered.counters for offered in self.spec.shared_counters), *consumed):
            for counter in counters.values():
                parse_quantity(counter.value)


class CELSelector(Struct, frozen=True):
    expression: str = ""


class DeviceSelector(Struct, frozen=True):
    cel: CELSelector | None = None


class OpaqueConfiguration(Struct, frozen=True):
    driver: str = ""
    parameters: Any = None


class DeviceConfiguration(Struct, frozen=True):
    opaque: OpaqueConfiguration | None = None


class DeviceClassSpec(Struct, frozen=True):
    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(Object, frozen=True):
    spec: DeviceClassSpec = DeviceClassSpec()


class CapacityRequirements(Struct, frozen=True):
    requests: dict[str, RawQuantity] = {}


class DeviceSubRequest(Struct, frozen=True):
    """One of the alternatives of a request."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = EXACT_COUNT
    count: Int64 = 1
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class ExactDeviceRequest(Struct, frozen=True):
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = EXACT_COUNT
    count: Int64 = 1
    admin_access: bool = False
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceRequest(Struct, frozen=True):
    """Either ``exactly``, or one of ``first_available``, the earlier the better."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(Struct, frozen=True):
    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class ClaimConfiguration(Struct, frozen=True):
    requests: tuple[str, ...] = ()
    opaque: OpaqueConfiguration | None = None


class DeviceClaim(Struct, frozen=True):
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[ClaimConfiguration, ...] = ()


class ResourceClaimSpec(Struct, frozen=True):
    devices: DeviceClaim = DeviceClaim()


class AllocatedDevice(Struct, frozen=True):
    """A device that a claim was given, and for which of its requests."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = msgspec.field(name="shareID", default=None)
    consumed_capacity: dict[str, RawQuantity] = {}


class AllocationConfiguration(Struct, frozen=True):
    source: str = ""
    requests: tuple[str, ...] = ()
    opaque: OpaqueConfiguration | None = None


class DeviceAllocation(Struct, frozen=True):
    results: tuple[AllocatedDevice, ...] = ()
    config: tuple[AllocationConfiguration, ...] = ()


class AllocationResult(Struct, frozen=True):
    devices: DeviceAllocation = DeviceAllocation()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ConsumerReference(Struct, frozen=True):
    """Who uses a claim."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class Condition(Struct, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class AllocatedDeviceStatus(Struct, frozen=True):
    """What a driver tells of an allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    conditions: tuple[Condition, ...] = ()


class ResourceClaimStatus(Struct, frozen=True):
    allocation: AllocationResult | None = None
    reserved_for: tuple[ConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(Object, frozen=True):
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def allocation(self) -> AllocationResult | None:
        return self.status.allocation

    def is_reserved_for(self, uid: str) -> bool:
        """Whether the pod with this uid uses the claim."""
        return any(consumer.uid == uid for consumer in self.status.reserved_for)

    def check(self) -> None:
        allocation = self.status.allocation
        for request in self.spec.devices.requests:
            for variant in (request.exactly, *request.first_available):
                if variant is not None and variant.capacity is not None:
                    for amount in variant.capacity.requests.values():
                        parse_quantity(amount)
        for device in allocation.devices.results if allocation is not None else ():
            for amount in device.consumed_capacity.values():
                parse_quantity(amount)
