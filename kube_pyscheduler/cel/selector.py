"""Selectors of devices: an expression, compiled once, asked about one device after another.

Source: dynamic-resource-allocation/cel/compile.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kube_pyscheduler.cel.checker import ATTRIBUTES, CAPACITY, DEVICE, DRIVER, MULTIPLE, Checker
from kube_pyscheduler.cel.errors import CompileError, EvaluationError
from kube_pyscheduler.cel.functions import COMPARISONS, OVERLOADS
from kube_pyscheduler.cel.program import Scope, Step, plan
from kube_pyscheduler.cel.reads import Reads, reads_of
from kube_pyscheduler.cel.semver import Semver, SemverError, parse_semver
from kube_pyscheduler.cel.values import DomainMap, type_of
from kube_pyscheduler.objects.exact_quantity import Quantity, parse_quantity
from kube_pyscheduler.objects.resource import Device, DeviceAttribute

KEEP = 1024
"""Compiled expressions kept at most."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A device as expressions see it. ``problem``: why none can be asked about it, or ""."""

    variables: Mapping[str, Any]
    problem: str = ""


def qualified(name: str, driver: str) -> tuple[str, str]:
    """Domain and identifier of an attribute or a capacity; the driver is the domain of names without one."""
    domain, slash, identifier = name.partition("/")
    return (domain, identifier) if slash else (driver, name)


def subject_of(device: Device, driver: str, *, shares: bool = True) -> Subject:
    """``shares``: whether the device may tell that it allows several allocations."""
    attributes: DomainMap = DomainMap()
    for name, attribute in device.attributes.items():
        domain, identifier = qualified(name, driver)
        try:
            attributes.setdefault(domain, {})[identifier] = _attribute(attribute)
        except (SemverError, LookupError) as error:
            return Subject({}, f"attribute {name}: {error.args[0]}")
    capacity: DomainMap = DomainMap()
    for name, offered in device.capacity.items():
        domain, identifier = qualified(name, driver)
        amount: Quantity = parse_quantity(offered.value)
        capacity.setdefault(domain, {})[identifier] = amount
    multiple = shares and device.allow_multiple_allocations
    whole = {"driver": driver, "allowMultipleAllocations": multiple, "attributes": attributes, "capacity": capacity}
    return Subject({DRIVER: driver, MULTIPLE: multiple, ATTRIBUTES: attributes, CAPACITY: capacity, DEVICE: whole})


def _attribute(attribute: DeviceAttribute) -> int | bool | str | Semver:
    known = attribute.value
    if known is None:
        raise LookupError("unsupported attribute value")
    kind, value = known
    if kind != "version":
        return value
    try:
        return parse_semver(str(value))
    except SemverError as error:
        raise SemverError(f"parse semantic version: {error}") from None


class Selector:
    """A compiled expression. ``reads``: what of a device it looks at."""

    __slots__ = ("_step", "expression", "reads")

    def __init__(self, expression: str, step: Step, reads: Reads) -> None:
        self.expression = expression
        self._step = step
        self.reads = reads

    def matches(self, subject: Subject) -> bool:
        """Whether the device is selected. Raises EvaluationError."""
        if subject.problem:
            raise EvaluationError(subject.problem)
        try:
            result = self._step(Scope(subject.variables))
        except RecursionError:
            raise EvaluationError("the expression is nested too deeply") from None
        if not isinstance(result, bool):
            kind = type_of(result)
            problem = _NO_BOOL.get(kind, f"type conversion error from '{kind}' to 'bool'")
            raise EvaluationError(f"CEL result of type {kind} could not be converted to bool: {problem}")
        return result


_NO_BOOL = {
    "string": "unsupported native conversion from string to 'bool'",
    "int": "unsupported type conversion from 'int' to bool",
    "kubernetes.Semver": "type conversion error from 'Semver' to 'bool'",
    "kubernetes.Quantity": "type conversion error from 'Quantity' to 'bool'",
}
"""Source: ConvertToNative in common/types of cel-go and in apiserver/pkg/cel."""

_CHECKER = Checker(OVERLOADS.values(), COMPARISONS)


@lru_cache(maxsize=KEEP)
def compiled(expression: str) -> Selector | CompileError:
    """The selector that the expression is, or why it is none."""
    try:
        checked = _CHECKER.check(expression)
        return Selector(expression, plan(checked.expr), reads_of(checked.expr))
    except CompileError as error:
        return error
    except RecursionError:
        return CompileError("compilation failed: the expression is nested too deeply")
