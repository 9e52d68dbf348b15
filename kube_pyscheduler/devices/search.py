"""The search for devices: request after request, device after device, back where it does not work out.

The first solution in this order is the one. Source: structured/internal/incubating/allocator_incubating.go; the order,
what counts as taken after an alternative failed, and which mistake of a claim is reported are as there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kube_pyscheduler.devices.allocated import AllocatedDevices
from kube_pyscheduler.devices.candidates import Candidate, Candidates, Match
from kube_pyscheduler.devices.capacity import Amounts, has_room, nano, shares
from kube_pyscheduler.devices.constraints import Constraint, constraint_for
from kube_pyscheduler.devices.pools import Pool
from kube_pyscheduler.devices.requests import MAX_DEVICES, AllocationError, Plan, Variant
from kube_pyscheduler.devices.slices import DeviceInfo
from kube_pyscheduler.objects.exact_quantity import Quantity

Matches = Callable[[Variant, Pool], Sequence[Match]]
"""For each device of a pool, whether the variant's selectors choose it."""


class OutOfSteps(Exception):
    """The search takes too long."""


class _TooManyDevices(Exception):
    """No alternative that was left fits into the limit of devices a claim."""


class Budget:
    """Steps that searches may still take, together."""

    __slots__ = ("left",)

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int = 1) -> None:
        """Raises OutOfSteps."""
        self.left -= steps
        if self.left < 0:
            raise OutOfSteps


@dataclass(frozen=True, slots=True)
class Choice:
    """A device chosen for a request. ``consumed``: what is taken of a shared device, None for devices that are taken
    whole."""

    variant: Variant
    device: DeviceInfo
    consumed: dict[str, Quantity] | None


DeviceKey = tuple[tuple[str, str], str]


class Search:
    """One search on one node. ``pools`` in the order in which they are tried."""

    def __init__(
        self, plan: Plan, pools: Sequence[Pool], allocated: AllocatedDevices, matches: Matches, budget: Budget
    ) -> None:
        self._plan = plan
        self._pools = pools
        self._allocated = allocated
        self._matches = matches
        self._budget = budget
        self._all: dict[int, list[Candidate]] = {}
        """Variants that take all devices, by identity → these devices."""
        self._candidates: dict[int, Candidates] = {}
        """By identity of the variant."""
        self._has_counters = any(pool.has_counters for pool in pools)
        self._counts: dict[int, int] = {}
        self._selected: dict[tuple[int, int], int] = {}
        """(claim, request) → number of the variant chosen."""
        self._constraints: list[list[Constraint]] = []
        self._taking: dict[DeviceKey, set[int]] = {}
        """Devices taken whole by this search → the claims they are for."""
        self._consuming: dict[DeviceKey, dict[str, int]] = {}
        self._available: dict[str, dict[str, dict[str, int]]] = {}
        self._used_counters: dict[str, dict[str, dict[str, int]]] = {}
        self._chosen: list[list[Choice]] = [[] for _claim in plan.claims]

    def run(self) -> list[list[Choice]] | None:
        """The devices of each claim; None where there is no solution. Raises AllocationError and OutOfSteps."""
        if self._plan.problem is not None:
            raise self._plan.problem
        for number, claim in enumerate(self._plan.claims):
            least = 0
            for request in claim.requests:
                least += min(self._prepare(number, variant) for variant in request.variants)
            if least > MAX_DEVICES:
                text = f": number of requested devices {least} exceeds the claim limit of {MAX_DEVICES}"
                raise AllocationError(number, text)
            self._constraints.append([constraint_for(constraint) for constraint in claim.constraints])
        try:
            found = self._request(0, 0)
        except _TooManyDevices:
            raise AllocationError(-1, "allocation max size exceeded") from None
        except RecursionError:
            raise OutOfSteps from None
        return self._chosen if found else None

    def variant(self, claim: int, request: int) -> Variant:
        """After a successful ``run``: the variant that was chosen for a request."""
        variants = self._plan.claims[claim].requests[request].variants
        return variants[self._selected.get((claim, request), 0)]

    # Before the search

    def _prepare(self, claim: int, variant: Variant) -> int:
        """How many devices the variant needs. Source: validateDeviceRequest."""
        if not variant.takes_all:
            self._counts[id(variant)] = variant.count
            return variant.count
        found: list[Candidate] = []
        for pool in self._pools:
            if pool.is_incomplete or pool.is_invalid:
                state = "being updated" if pool.is_incomplete else "invalid"
                text = f", request {variant.name}: asks for all devices, but resource pool {pool} is currently {state}"
                raise AllocationError(claim, text, names_devices=True)
            self._budget.spend(len(pool.devices))
            for place, match in enumerate(self._matches(variant, pool)):
                candidate = Candidate(pool, place, match)
                if candidate.is_selected and self._has_room(variant, candidate.device):
                    found.append(candidate)
        self._all[id(variant)] = found
        self._counts[id(variant)] = len(found)
        return len(found)

    def _candidates_for(self, claim: int, variant: Variant) -> Candidates:
        known = self._candidates.get(id(variant))
        if known is None:
            self._budget.spend(sum(len(pool.devices) for pool in self._pools))
            found = [
                Candidate(pool, place, match)
                for pool in self._pools
                if not pool.is_incomplete and not pool.is_invalid
                for place, match in enumerate(self._matches(variant, pool))
            ]
            # Counters stay taken for devices that are refused, so then each must be tried in its turn; and mistakes are
            # for those who get as far as them.
            sifts = not self._has_counters and not any(isinstance(each.match, AllocationError) for each in found)
            if sifts:
                found = [each for each in found if self._may_ever_be_taken(claim, variant, each)]
            concerning = [
                constraint if constraint.concerns(*variant.request) else None for constraint in self._constraints[claim]
            ]
            known = self._candidates[id(variant)] = Candidates(found, concerning, are_sifted=sifts)
        return known

    def _may_ever_be_taken(self, claim: int, variant: Variant, candidate: Candidate) -> bool:
        """Whether nothing speaks against the device but what this search takes."""
        device = candidate.device
        if not variant.admin and device.name in self._allocated.use_of(device.pool).whole:
            return False
        is_offered = candidate.is_selected and variant.tolerates(device.device.taints)
        return is_offered and self._leaves_room(variant, device, {})

    # The search

    def _request(self, claim: int, request: int) -> bool:
        """Find devices for a request and all that come after it."""
        self._budget.spend()
        if claim >= len(self._plan.claims):
            return True
        requests = self._plan.claims[claim].requests
        if request >= len(requests):
            try:
                return self._request(claim + 1, 0)
            except _TooManyDevices:
                # An earlier claim may leave more room with another alternative, so this is no more than "no".
                return False
        if not requests[request].has_alternatives:
            return self._devices(claim, request, requests[request].variants[0], 0, 0)
        too_many = True
        for number, variant in enumerate(requests[request].variants):
            self._budget.spend()
            try:
                found = self._devices(claim, request, variant, 0, 0)
            except _TooManyDevices:
                continue
            too_many = False
            if found:
                self._selected[claim, request] = number
                return True
        if too_many:
            raise _TooManyDevices
        return False

    def _devices(self, claim: int, request: int, variant: Variant, number: int, start: int) -> bool:
        """Find device ``number`` of a request and all that come after it, from a candidate on: devices of one request
        are tried in their order only."""
        everything = self._all.get(id(variant))
        wanted = self._counts[id(variant)]
        if everything is not None and not everything:
            return False
        if number >= wanted:
            return self._request(claim, request + 1)
        if len(self._chosen[claim]) + wanted - number > MAX_DEVICES:
            raise _TooManyDevices
        self._budget.spend()
        if everything is not None:
            candidate = everything[number]
            if not self._take(claim, variant, candidate, must=True):
                return False
            return self._go_on(claim, request, variant, number, candidate, 0)
        candidates = self._candidates_for(claim, variant)
        indexes = candidates.tail(start, self._constraints[claim])
        if candidates.are_sifted and len(indexes) < wanted - number:
            # The rest is too little, whatever is taken of it.
            return False
        for index in indexes:
            self._budget.spend()
            candidate = candidates.places[index]
            if self._is_taken(claim, variant, candidate.device):
                continue
            if not candidate.is_selected or not self._has_room(variant, candidate.device):
                continue
            if not self._take(claim, variant, candidate, must=False):
                continue
            if self._go_on(claim, request, variant, number, candidate, index + 1):
                return True
        return False

    def _go_on(self, claim: int, request: int, variant: Variant, number: int, candidate: Candidate, start: int) -> bool:
        """The rest of the search with the candidate taken; it is free again where that fails."""
        try:
            found = self._devices(claim, request, variant, number + 1, start)
        except BaseException:
            self._release(claim, variant, candidate)
            raise
        if not found:
            self._release(claim, variant, candidate)
        return found

    # Taking devices

    def _is_taken(self, claim: int, variant: Variant, device: DeviceInfo) -> bool:
        taking = self._taking.get((device.pool, device.name))
        if variant.admin:
            # Administration takes nothing from others, but no claim gets a device twice.
            return bool(taking) and claim in taking  # type: ignore[operator]
        return bool(taking) or device.name in self._allocated.use_of(device.pool).whole

    def _has_room(self, variant: Variant, device: DeviceInfo) -> bool:
        return self._leaves_room(variant, device, self._consuming.get((device.pool, device.name), {}))

    def _leaves_room(self, variant: Variant, device: DeviceInfo, taking: Amounts) -> bool:
        """Whether there is room besides what is taken and what this search is ``taking``."""
        capacity = device.device.capacity
        if not capacity and not variant.wanted:
            return True
        return has_room(capacity, variant.wanted, self._allocated.amounts_of(device.pool, device.name), taking)

    def _take(self, claim: int, variant: Variant, candidate: Candidate, *, must: bool) -> bool:
        """Whether the device can be had; it is taken then. Source: allocateDevice."""
        device = candidate.device
        key = (device.pool, device.name)
        is_shared = device.device.allow_multiple_allocations
        if variant.admin:
            if not is_shared and claim in self._taking.get(key, ()):
                return False
        elif self._is_taken(claim, variant, device):
            return False
        in_use = is_shared and (bool(self._allocated.amounts_of(*key)) or key in self._consuming)
        if not in_use and device.device.consumes_counters and not self._use_counters(candidate):
            return False
        if not variant.tolerates(device.device.taints):
            return False
        request, alternative = variant.request
        constraints = self._constraints[claim]
        for number, constraint in enumerate(constraints):
            if not constraint.add(request, alternative, device):
                if must:
                    text = (
                        f", request {variant.name}: cannot add device {device} because a claim constraint "
                        "would not be satisfied"
                    )
                    raise AllocationError(claim, text, names_devices=True)
                for earlier in constraints[:number]:
                    earlier.remove(request, alternative)
                return False
        taking = self._taking.setdefault(key, set())
        if not is_shared:
            taking.add(claim)
        if not self._has_room(variant, device):
            return False
        consumed = None
        if is_shared:
            consumed = shares(device.device.capacity, variant.wanted)
            known = self._consuming.setdefault(key, {})
            for name, amount in consumed.items():
                known[name] = known.get(name, 0) + amount.nano
        self._chosen[claim].append(Choice(variant, device, consumed))
        return True

    def _release(self, claim: int, variant: Variant, candidate: Candidate) -> None:
        """Undo ``_take`` of the device that was taken last."""
        device = candidate.device
        key = (device.pool, device.name)
        request, alternative = variant.request
        for constraint in self._constraints[claim]:
            constraint.remove(request, alternative)
        self._taking[key].discard(claim)
        choice = self._chosen[claim].pop()
        if choice.consumed:
            known = self._consuming[key]
            for name, amount in choice.consumed.items():
                known[name] -= amount.nano
            if not any(known.values()):
                del self._consuming[key]
        elif choice.consumed is None and device.device.consumes_counters:
            self._return_counters(candidate)

    # Counters

    def _use_counters(self, candidate: Candidate) -> bool:
        """Whether the counters allow the device; they are used then. Source: checkAvailableCounters."""
        # By name of the pool alone, as upstream.
        name = candidate.device.pool[1]
        available = self._available.get(name)
        if available is None:
            available = self._available[name] = counters_left(candidate.pool, self._allocated)
        used = self._used_counters.setdefault(name, {})
        for consumption in candidate.device.device.consumes_counters:
            amounts = used.setdefault(consumption.counter_set, {})
            for counter, consumed in consumption.counters.items():
                amounts[counter] = amounts.get(counter, 0) + nano(consumed.value)
        for counter_set, limits in available.items():
            amounts = used.get(counter_set, {})
            if any(limit < amounts.get(counter, 0) for counter, limit in limits.items()):
                self._return_counters(candidate)
                return False
        return True

    def _return_counters(self, candidate: Candidate) -> None:
        used = self._used_counters[candidate.device.pool[1]]
        for consumption in candidate.device.device.consumes_counters:
            for counter, consumed in consumption.counters.items():
                used[consumption.counter_set][counter] -= nano(consumed.value)


def counters_left(pool: Pool, allocated: AllocatedDevices) -> dict[str, dict[str, int]]:
    """What devices in use have left of the pool's counters, in nano-units; may be negative."""
    left = {counter_set: dict(limits) for counter_set, limits in pool.counters.items()}
    use = allocated.use_of(pool.id)
    for device in (*pool.devices, *pool.elsewhere):
        if not use.is_taken(device.name):
            continue
        for consumption in device.device.consumes_counters:
            limits = left.get(consumption.counter_set, {})
            for counter, consumed in consumption.counters.items():
                if counter in limits:
                    limits[counter] -= nano(consumed.value)
    return left
