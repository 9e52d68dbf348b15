"""Constraints between the devices of a claim.

Source: structured/internal/incubating/{allocator_incubating,constraint}.go. What a search puts in, it takes out again,
in the opposite order; what is odd here is so upstream.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from kube_pyscheduler.devices.slices import DeviceInfo
from kube_pyscheduler.objects.resource import DeviceConstraint

Value = tuple[str, int | bool | str]


def attribute_of(device: DeviceInfo, name: str) -> Value | None:
    """Type and value of the fully qualified attribute. None where the device lacks it."""
    attributes = device.device.attributes
    found = attributes.get(name)
    if found is None:
        domain, slash, identifier = name.partition("/")
        if not slash or domain != device.pool[0]:
            return None
        found = attributes.get(identifier)
    if found is None:
        return None
    return found.value or ("unknown", "")


class Constraint(ABC):
    """What the devices taken so far have to have in common, or must not."""

    def __init__(self, attribute: str, requests: frozenset[str]) -> None:
        self.attribute = attribute
        self._requests = requests
        self._count = 0

    @property
    def wanted(self) -> Value | None:
        """The only value that goes with the devices taken so far, None where several may."""
        return None

    def concerns(self, request: str, alternative: str) -> bool:
        """Whether devices for this request are constrained. ``alternative`` is "" for requests without."""
        if not self._requests or request in self._requests:
            return True
        return bool(alternative) and f"{request}/{alternative}" in self._requests

    def add(self, request: str, alternative: str, device: DeviceInfo) -> bool:
        """Whether the device goes with the others; it is one of them then."""
        if not self.concerns(request, alternative):
            return True
        value = attribute_of(device, self.attribute)
        if value is None or (self._count and not self._goes(value)):
            return False
        self._take(request, value)
        self._count += 1
        return True

    def remove(self, request: str, alternative: str) -> None:
        """Take back what the last ``add`` for this request did."""
        if self.concerns(request, alternative):
            self._drop(request)
            self._count -= 1

    @abstractmethod
    def _goes(self, value: Value) -> bool: ...

    @abstractmethod
    def _take(self, request: str, value: Value) -> None: ...

    @abstractmethod
    def _drop(self, request: str) -> None: ...


class SameAttribute(Constraint):
    """All devices have the value of the first one."""

    _value: Value = ("", "")

    @property
    def wanted(self) -> Value | None:
        return self._value if self._count and self._value[0] != "unknown" else None

    def _goes(self, value: Value) -> bool:
        return value == self._value and value[0] != "unknown"

    def _take(self, request: str, value: Value) -> None:
        if not self._count:
            self._value = value

    def _drop(self, request: str) -> None:
        return None


class DistinctAttribute(Constraint):
    """No two devices have the same value. Only the last value of each request is remembered."""

    def __init__(self, attribute: str, requests: frozenset[str]) -> None:
        super().__init__(attribute, requests)
        self._values: dict[str, Value] = {}

    def _goes(self, value: Value) -> bool:
        if value[0] == "unknown":
            return not self._values
        return value not in self._values.values()

    def _take(self, request: str, value: Value) -> None:
        self._values[request] = value

    def _drop(self, request: str) -> None:
        self._values.pop(request, None)


def constraint_for(source: DeviceConstraint) -> Constraint:
    """A fresh constraint, with no devices yet."""
    requests = frozenset(source.requests)
    if source.match_attribute is not None:
        return SameAttribute(source.match_attribute, requests)
    return DistinctAttribute(source.distinct_attribute or "", requests)
