"""CEL values as Python values: what they are called, when they are equal, how they are ordered.

bool, int, float, str, bytes, None, lists (or tuples) and dicts stand for themselves; the rest has classes.
Source: common/types of cel-go.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from kube_pyscheduler.cel.errors import NO_SUCH_OVERLOAD, EvaluationError
from kube_pyscheduler.cel.semver import Semver
from kube_pyscheduler.objects.exact_quantity import Quantity

MIN_INT, MAX_INT, MAX_UINT = -(2**63), 2**63 - 1, 2**64 - 1


class UInt(int):
    """An unsigned integer, which is another type than a signed one."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value."""

    name: str


@dataclass(frozen=True, slots=True)
class Optional:
    """A value, or none."""

    present: bool
    value: Any = None


NONE = Optional(False)


class DomainMap(dict[str, Any]):
    """A map whose absent keys lead to an empty map; they are still not ``in`` it.

    Source: newStringInterfaceMapWithDefault in dynamic-resource-allocation/cel/compile.go.
    """

    __slots__ = ()


EMPTY_MAP: dict[Any, Any] = {}

_NAMES: dict[type[Any], str] = {
    bool: "bool",
    int: "int",
    UInt: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    tuple: "list",
    dict: "map",
    DomainMap: "map",
    Optional: "optional_type",
    Quantity: "kubernetes.Quantity",
    Semver: "kubernetes.Semver",
    TypeValue: "type",
}

_NUMBERS = frozenset({int, UInt, float})
_ORDERED = frozenset({bool, int, UInt, float, str, bytes})
"""Types that can be compared with ``<``."""


def type_of(value: Any) -> str:
    """The name of a value's type, without parameters."""
    return _NAMES[type(value)]


def no_such_overload() -> EvaluationError:
    return EvaluationError(NO_SUCH_OVERLOAD)


def equal(left: Any, right: Any) -> bool:
    """``left == right``. Numbers of any type compare by value; other types are equal only to themselves. Raises
    EvaluationError where a quantity or a version is compared with something else."""
    if left is None or right is None:
        return left is right
    kind = type(left)
    if kind in _NUMBERS:
        return type(right) in _NUMBERS and left == right
    if kind in (list, tuple):
        return (
            isinstance(right, list | tuple)
            and len(left) == len(right)
            and all(equal(mine, other) for mine, other in zip(left, right, strict=True))
        )
    if isinstance(left, dict):
        return isinstance(right, dict) and len(left) == len(right) and _same_entries(left, right)
    if kind in (Quantity, Semver):
        if type(right) is not kind:
            raise no_such_overload()
        return bool(left.compare(right) == 0)
    if kind is Optional:
        if type(right) is not Optional or left.present != right.present:
            return False
        return not left.present or equal(left.value, right.value)
    return type(right) is kind and bool(left == right)


def is_equal(left: Any, right: Any) -> bool:
    """As ``equal``, with errors as "no"."""
    try:
        return equal(left, right)
    except EvaluationError:
        return False


def _same_entries(left: dict[Any, Any], right: dict[Any, Any]) -> bool:
    for key, value in left.items():
        found = find(right, key)
        if not found.present or not equal(value, found.value):
            return False
    return True


def compare(left: Any, right: Any, operator: str) -> int:
    """−1, 0 or 1. ``operator`` is for the message where ``left`` has no order."""
    kind, other = type(left), type(right)
    if kind not in _ORDERED:
        raise EvaluationError(f"{NO_SUCH_OVERLOAD}: {operator}")
    if kind in _NUMBERS:
        if other not in _NUMBERS:
            raise no_such_overload()
        if (kind is float and math.isnan(left)) or (other is float and math.isnan(right)):
            raise EvaluationError("NaN values cannot be ordered")
    elif other is not kind:
        raise no_such_overload()
    return int(left > right) - int(left < right)


def find(source: dict[Any, Any], key: Any) -> Optional:
    """The entry of a map; numbers find keys of their value whatever their type, and truth values are no numbers."""
    if type(key) in (list, dict, Optional):
        return NONE
    for known, value in ((key, source[key]),) if key in source and type(key) is str else source.items():
        if isinstance(known, bool) == isinstance(key, bool) and is_equal(known, key):
            return Optional(True, value)
    return NONE


def contains(container: Any, item: Any) -> bool:
    """``item in container``."""
    if isinstance(container, dict):
        return find(container, item).present
    if isinstance(container, list | tuple):
        return any(is_equal(item, element) for element in container)
    raise no_such_overload()


def qualify(operand: Any, key: Any) -> Optional:
    """What ``operand[key]`` or ``operand.key`` leads to, if anything. Raises EvaluationError where the key is of no use
    for the operand's type. Source: refQualify in interpreter/attributes.go of cel-go."""
    if isinstance(operand, dict):
        found = find(operand, key)
        if found.present or not isinstance(operand, DomainMap):
            return found
        return Optional(True, EMPTY_MAP)
    if isinstance(operand, list | tuple):
        index = _index(key)
        return Optional(True, operand[index]) if 0 <= index < len(operand) else NONE
    return NONE


def missing(operand: Any, key: Any) -> EvaluationError:
    """Why ``qualify`` found nothing."""
    if isinstance(operand, list | tuple):
        return EvaluationError(f"index out of bounds: {shown(key)}")
    return EvaluationError(f"no such key: {shown(key)}")


def _index(key: Any) -> int:
    if type(key) in (int, UInt):
        return int(key)
    if type(key) is float and key.is_integer():
        return int(key)
    if type(key) is float:
        raise EvaluationError(f"unsupported index value {shown(key)} in list")
    raise EvaluationError(f"unsupported index type '{type_of(key)}' in list")


def shown(value: Any) -> str:
    """A value as Go prints it in messages."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)
