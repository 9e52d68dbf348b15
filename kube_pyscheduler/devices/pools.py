"""Resource pools: the slices of a driver that belong together, as one node sees them.

Source: structured/internal/incubating/pools_incubating.go in dynamic-resource-allocation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kube_pyscheduler.devices.capacity import nano
from kube_pyscheduler.devices.slices import DeviceInfo, PoolId, SliceInfo

Counters = Mapping[str, Mapping[str, int]]
"""Counter set → counter → nano-units."""


class Pool:
    """``devices``: those of slices for the node, in the order in which they are tried. ``elsewhere``: the others, which
    matter for counters only. ``usable``: where devices choose their nodes one by one, which of them chose this node."""

    __slots__ = (
        "counters",
        "devices",
        "elsewhere",
        "has_counters",
        "id",
        "is_incomplete",
        "is_invalid",
        "places",
        "slices",
        "usable",
    )

    def __init__(
        self,
        pool_id: PoolId,
        slices: Sequence[SliceInfo] = (),
        elsewhere: Sequence[SliceInfo] = (),
        counters: Counters | None = None,
        usable: tuple[bool, ...] | None = None,
        *,
        is_incomplete: bool = False,
        is_invalid: bool = False,
    ) -> None:
        self.id = pool_id
        self.slices = tuple(slices)
        self.devices: tuple[DeviceInfo, ...] = tuple([device for each in slices for device in each.devices])
        self.elsewhere: tuple[DeviceInfo, ...] = tuple([device for each in elsewhere for device in each.devices])
        self.counters: Counters = counters or {}
        self.has_counters = any(device.device.consumes_counters for device in self.devices)
        self.usable = usable
        self.is_incomplete = is_incomplete
        self.is_invalid = is_invalid
        self.places = {device.name: place for place, device in enumerate(self.devices)}

    def __str__(self) -> str:
        return f"{self.id[0]}/{self.id[1]}"

    @property
    def binds(self) -> bool:
        """Whether a device wants to be waited for; such pools come last."""
        return any(device.device.binding_conditions is not None for device in self.devices)


def newest(slices: Sequence[SliceInfo]) -> list[SliceInfo]:
    """Those of the newest generation."""
    generation = max(each.generation for each in slices)
    return [each for each in slices if each.generation == generation]


def build_pool(
    relevant: Sequence[SliceInfo], everywhere: Sequence[SliceInfo], usable: Mapping[str, tuple[bool, ...]]
) -> Pool | None:
    """The pool of these slices, which are of the newest generation that has any for the node; None where an even newer
    one has none for it. ``everywhere``: all slices of the pool. ``usable``: by slice, as in Pool."""
    pool_id, generation, count = relevant[0].pool_id, relevant[0].generation, relevant[0].count
    others: list[SliceInfo] = []
    if len(relevant) != count:
        if any(each.generation > generation for each in everywhere):
            return None
        together = [each for each in everywhere if each.generation == generation]
        if len(together) != count:
            return Pool(pool_id, is_incomplete=True)
        names = {each.name for each in relevant}
        others = [each for each in together if each.name not in names]
    ordered = sorted(relevant, key=lambda each: each.name)
    offering = [each for each in ordered if not each.spec.shared_counters]
    sets = [offered for each in ordered for offered in each.spec.shared_counters]
    counters = {offered.name: {name: nano(c.value) for name, c in offered.counters.items()} for offered in sets}
    if len(counters) != len(sets) or _has_twins(offering) or not _are_known(counters, [*ordered, *others]):
        return Pool(pool_id, is_invalid=True)
    choosy = [each for each in offering if each.name in usable]
    bits = [bit for each in offering for bit in usable.get(each.name, (True,) * len(each.devices))]
    return Pool(pool_id, offering, others, counters, tuple(bits) if choosy else None)


def _has_twins(slices: Sequence[SliceInfo]) -> bool:
    names = [device.name for each in slices for device in each.devices]
    return len(names) != len(set(names))


def _are_known(counters: Counters, slices: Sequence[SliceInfo]) -> bool:
    """Whether all counters that devices consume exist."""
    return all(
        consumption.counter_set in counters and consumption.counters.keys() <= counters[consumption.counter_set].keys()
        for each in slices
        for device in each.devices
        for consumption in device.device.consumes_counters
    )


def in_order(pools: Sequence[Pool]) -> tuple[Pool, ...]:
    """The order in which pools are tried: by driver and name, those whose devices have to be waited for last."""
    return tuple(sorted(pools, key=lambda pool: (pool.binds, pool.id)))
