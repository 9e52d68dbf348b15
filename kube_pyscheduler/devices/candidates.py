"""The devices that a request may take, in the order in which they are tried."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from kube_pyscheduler.devices.constraints import Constraint, Value, attribute_of
from kube_pyscheduler.devices.pools import Pool
from kube_pyscheduler.devices.requests import AllocationError
from kube_pyscheduler.devices.slices import DeviceInfo

Match = bool | AllocationError


class Candidate:
    """A device of a pool, and whether the request's selectors choose it."""

    __slots__ = ("device", "match", "place", "pool")

    def __init__(self, pool: Pool, place: int, match: Match) -> None:
        self.pool = pool
        self.place = place
        self.match = match
        self.device: DeviceInfo = pool.devices[place]

    @property
    def is_selected(self) -> bool:
        """Raises AllocationError."""
        if isinstance(self.match, AllocationError):
            raise self.match
        return self.match and (self.pool.usable is None or self.pool.usable[self.place])


class Candidates:
    """``constraints``: those of the claim, None for those that do not concern the request. ``are_sifted``: devices that
    can never be taken are left out."""

    def __init__(
        self, places: Sequence[Candidate], constraints: Sequence[Constraint | None], *, are_sifted: bool
    ) -> None:
        self.places = places
        self.are_sifted = are_sifted
        self._concerning = [number for number, constraint in enumerate(constraints) if constraint is not None]
        self._by_value: dict[int, dict[Value, list[int]]] = {}
        """Constraint → value of its attribute → the places that have it."""

    def tail(self, start: int, constraints: Sequence[Constraint]) -> Sequence[int]:
        """The places from ``start`` on that go with the devices taken so far."""
        rest: Sequence[int] = range(start, len(self.places))
        if not self.are_sifted:
            return rest
        for number in self._concerning:
            wanted = constraints[number].wanted
            if wanted is None:
                continue
            alike = self._places_with(number, constraints[number].attribute).get(wanted, [])
            alike = alike[bisect_left(alike, start) :]
            if len(alike) < len(rest):
                rest = alike
        return rest

    def _places_with(self, number: int, attribute: str) -> dict[Value, list[int]]:
        known = self._by_value.get(number)
        if known is None:
            known = self._by_value[number] = {}
            for index, candidate in enumerate(self.places):
                value = attribute_of(candidate.device, attribute)
                if value is not None:
                    known.setdefault(value, []).append(index)
        return known
