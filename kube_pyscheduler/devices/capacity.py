"""Capacity of devices that several claims share.

Source: structured/internal/incubating/consumable_capacity.go in dynamic-resource-allocation.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from kube_pyscheduler.objects.exact_quantity import Notation, Quantity, parse_quantity, whole_units
from kube_pyscheduler.objects.quantity import RawQuantity
from kube_pyscheduler.objects.resource import CapacityPolicy, CapacityRange, DeviceCapacity

Amounts = Mapping[str, int]
"""Capacity name → nano-units."""

Wanted = Mapping[str, RawQuantity]
"""Capacity name → what a request wants of it."""


def has_room(capacity: Mapping[str, DeviceCapacity], wanted: Wanted, taken: Amounts, taking: Amounts) -> bool:
    """Whether a device with ``capacity`` can serve a request besides what is ``taken`` of it and what this search is
    ``taking``. A request for a capacity that the device does not have is never served."""
    if any(name not in capacity for name in wanted):
        return False
    for name, offered in capacity.items():
        share = consumed(wanted.get(name), offered)
        if _violates(share, offered.request_policy):
            return False
        total = share.nano + taken.get(name, 0) + taking.get(name, 0)
        if total > parse_quantity(offered.value).nano:
            return False
    return True


def consumed(wanted: RawQuantity | None, offered: DeviceCapacity) -> Quantity:
    """What a request takes of a capacity: what it wants, rounded up as the device's policy says."""
    policy = offered.request_policy
    if wanted is None:
        default = policy.default if policy is not None else None
        return parse_quantity(offered.value if default is None else default)
    amount = parse_quantity(wanted)
    if policy is None:
        return amount
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _rounded_to_range(amount, policy.valid_range, parse_quantity(policy.valid_range.min))
    for value in policy.valid_values:
        allowed = parse_quantity(value)
        if amount.compare(allowed) <= 0:
            return allowed
    return amount


def _rounded_to_range(amount: Quantity, bounds: CapacityRange, least: Quantity) -> Quantity:
    if amount.compare(least) < 0:
        return least
    if bounds.step is None:
        return amount
    step = parse_quantity(bounds.step).units
    added = amount.units - least.units
    return whole_units(least.units + step * -(-added // step), Notation.BINARY_SI)


def _violates(amount: Quantity, policy: CapacityPolicy | None) -> bool:
    if policy is None or (policy.default is not None and _is_same(amount, policy.default)):
        return False
    bounds = policy.valid_range
    if bounds is not None:
        if bounds.max is not None and amount.compare(parse_quantity(bounds.max)) > 0:
            return True
        if bounds.step is None:
            return False
        least = parse_quantity(bounds.min).units if bounds.min is not None else 0
        return (amount.units - least) % parse_quantity(bounds.step).units != 0
    return bool(policy.valid_values) and all(amount.compare(parse_quantity(value)) for value in policy.valid_values)


def _is_same(amount: Quantity, default: RawQuantity) -> bool:
    """Whether the amount is the default down to its notation, which is how upstream compares them."""
    known = parse_quantity(default)
    return amount == known and known.is_small


def shares(capacity: Mapping[str, DeviceCapacity], wanted: Wanted) -> dict[str, Quantity]:
    """What a request takes of each capacity."""
    return {name: consumed(wanted.get(name), offered) for name, offered in capacity.items()}


@lru_cache(maxsize=4096)
def nano(amount: RawQuantity) -> int:
    """The amount in nano-units."""
    return parse_quantity(amount).nano
