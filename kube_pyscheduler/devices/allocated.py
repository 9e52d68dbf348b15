"""What is taken of devices: by claims that are allocated, and by allocations on their way.

Source: pkg/scheduler/framework/plugins/dynamicresources/{allocateddevices,dra_manager}.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kube_pyscheduler.devices.capacity import Amounts, nano
from kube_pyscheduler.devices.slices import PoolId
from kube_pyscheduler.framework.listers import AssumingLister
from kube_pyscheduler.objects.resource import AllocatedDevice, ResourceClaim

KEEP = 8192
"""Changes remembered at least; a reader that is further behind is told to look at everything."""

Taken = tuple[AllocatedDevice, ...]


class PoolUse:
    """What is taken in one pool. ``whole``: device → how many claims have it for themselves (more than one is an error
    of somebody else). ``shared``: device → how many claims share it. ``amounts``: device → what these consume."""

    __slots__ = ("amounts", "shared", "whole")

    def __init__(self) -> None:
        self.whole: dict[str, int] = {}
        self.shared: dict[str, int] = {}
        self.amounts: dict[str, dict[str, int]] = {}

    def is_taken(self, device: str) -> bool:
        """Whether anybody has it, alone or with others."""
        return device in self.whole or device in self.shared


_NOTHING = PoolUse()


class AllocatedDevices:
    """Follows the claims; allocations in flight are told to it."""

    def __init__(self) -> None:
        self._pools: dict[PoolId, PoolUse] = {}
        self._claims: dict[str, Taken] = {}
        """Key of a claim → what was counted for it."""
        self._in_flight: dict[str, Taken] = {}
        """Uid of a claim → what was counted for it."""
        self._generation = 0
        self._log: list[PoolId] = []
        self._start = 0

    def sync(self, claims: AssumingLister[ResourceClaim]) -> None:
        """Cost: the claims that changed."""
        changed = claims.changed_since(self._generation)
        self._generation = claims.generation
        if changed is None:
            changed = {*self._claims, *(claim.key for claim in claims)}
        for key in changed:
            claim = claims.latest(key)
            allocation = claim.allocation if claim is not None else None
            fresh = _counted(allocation.devices.results) if allocation is not None else ()
            known = self._claims.get(key, ())
            if fresh == known:
                continue
            self._count(known, -1)
            self._count(fresh, 1)
            if fresh:
                self._claims[key] = fresh
            else:
                self._claims.pop(key, None)

    # In flight

    def is_in_flight(self, uid: str) -> bool:
        """Whether an allocation of this claim was decided and not written yet."""
        return uid in self._in_flight

    def take(self, uid: str, devices: Sequence[AllocatedDevice]) -> None:
        """An allocation was decided for the claim with this uid."""
        self._in_flight[uid] = _counted(devices)
        self._count(self._in_flight[uid], 1)

    def give_back(self, uid: str) -> None:
        """The allocation was written, or given up. Unknown uids are ignored."""
        self._count(self._in_flight.pop(uid, ()), -1)

    # Reading

    def use_of(self, pool: PoolId) -> PoolUse:
        """What is taken in a pool."""
        return self._pools.get(pool, _NOTHING)

    def amounts_of(self, pool: PoolId, device: str) -> Amounts:
        """What is consumed of a shared device; empty where nothing is."""
        return self.use_of(pool).amounts.get(device, {})

    @property
    def position(self) -> int:
        """Where a reader stands that has seen everything."""
        return self._start + len(self._log)

    def changed_since(self, position: int) -> set[PoolId] | None:
        """The pools whose use changed after ``position``; None if that is too long ago to tell."""
        if position < self._start:
            return None
        return set(self._log[position - self._start :])

    # Inside

    def _count(self, devices: Taken, sign: int) -> None:
        for device in devices:
            pool_id = (device.driver, device.pool)
            use = self._pools.setdefault(pool_id, PoolUse())
            if device.share_id is None:
                _add(use.whole, device.device, sign)
            else:
                _add(use.shared, device.device, sign)
                _consume(use.amounts, device, sign)
            if not use.whole and not use.shared:
                del self._pools[pool_id]
            self._log.append(pool_id)
        if len(self._log) > 2 * KEEP:
            del self._log[:KEEP]
            self._start += KEEP


def _counted(devices: Sequence[AllocatedDevice]) -> Taken:
    """Devices given for administration stay free for others."""
    return tuple([device for device in devices if not device.admin_access])


def _add(counts: dict[str, int], name: str, sign: int) -> None:
    count = counts.get(name, 0) + sign
    if count:
        counts[name] = count
    else:
        del counts[name]


def _consume(amounts: dict[str, dict[str, int]], device: AllocatedDevice, sign: int) -> None:
    consumed: Mapping[str, int] = {name: nano(amount) for name, amount in device.consumed_capacity.items()}
    if not consumed:
        return
    known = amounts.setdefault(device.device, {})
    for name, amount in consumed.items():
        known[name] = known.get(name, 0) + sign * amount
    if not any(known.values()):
        del amounts[device.device]
