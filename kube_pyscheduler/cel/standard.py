"""Operators and standard functions. Source: common/stdlib/standard.go and common/types of cel-go."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from kube_pyscheduler.cel.errors import NO_SUCH_OVERLOAD, EvaluationError
from kube_pyscheduler.cel.values import MAX_INT, MAX_UINT, MIN_INT, TypeValue, UInt, no_such_overload, shown, type_of


def _bounded(value: int, kind: type[int]) -> int:
    if kind is UInt:
        if not 0 <= value <= MAX_UINT:
            raise EvaluationError("unsigned integer overflow")
        return UInt(value)
    if not MIN_INT <= value <= MAX_INT:
        raise EvaluationError("integer overflow")
    return value


def _needs(left: Any, operator: str, kinds: tuple[type[Any], ...]) -> None:
    if type(left) not in kinds:
        raise EvaluationError(f"{NO_SUCH_OVERLOAD}: {operator}")


def _same_kind(left: Any, right: Any) -> None:
    if type(left) is not type(right):
        raise no_such_overload()


def add(left: Any, right: Any) -> Any:
    if isinstance(left, list | tuple):
        if not isinstance(right, list | tuple):
            raise no_such_overload()
        return [*left, *right]
    _needs(left, "_+_", (int, UInt, float, str, bytes))
    _same_kind(left, right)
    return _bounded(left + right, type(left)) if isinstance(left, int) else left + right


def subtract(left: Any, right: Any) -> Any:
    _needs(left, "_-_", (int, UInt, float))
    _same_kind(left, right)
    return _bounded(left - right, type(left)) if isinstance(left, int) else left - right


def multiply(left: Any, right: Any) -> Any:
    _needs(left, "_*_", (int, UInt, float))
    _same_kind(left, right)
    return _bounded(int(left) * int(right), type(left)) if isinstance(left, int) else left * right


def divide(left: Any, right: Any) -> Any:
    _needs(left, "_/_", (int, UInt, float))
    _same_kind(left, right)
    if isinstance(left, float):
        if right == 0:
            undefined = left == 0 or math.isnan(left)
            return math.nan if undefined else math.copysign(math.inf, left * math.copysign(1, right))
        return left / right
    if right == 0:
        raise EvaluationError("division by zero")
    quotient = abs(left) // abs(right)
    return _bounded(quotient if (left < 0) == (right < 0) else -quotient, type(left))


def modulo(left: Any, right: Any) -> Any:
    _needs(left, "_%_", (int, UInt))
    _same_kind(left, right)
    if right == 0:
        raise EvaluationError("modulus by zero")
    rest = abs(left) % abs(right)
    return _bounded(rest if left >= 0 else -rest, type(left))


def negate(value: Any) -> Any:
    _needs(value, "-_", (int, float))
    return _bounded(-value, int) if isinstance(value, int) else -value


def logical_not(value: Any) -> bool:
    if not isinstance(value, bool):
        raise no_such_overload()
    return not value


def size(value: Any) -> int:
    if not isinstance(value, str | bytes | list | tuple | dict):
        raise EvaluationError(f"{NO_SUCH_OVERLOAD}: size")
    return len(value)


def type_value(value: Any) -> TypeValue:
    return TypeValue(type_of(value))


def to_int(value: Any) -> int:
    if isinstance(value, float):
        if not -(2.0**63) < value < 2.0**63:
            raise EvaluationError("integer overflow")
        return int(value)
    if isinstance(value, str):
        number: int = _converted(value, "int", lambda text: _integer(text, MIN_INT, MAX_INT))
        return number
    return _bounded(int(value), int)


def to_uint(value: Any) -> UInt:
    if isinstance(value, float):
        if not 0 <= value < 2.0**64:
            raise EvaluationError("unsigned integer overflow")
        return UInt(value)
    if isinstance(value, str):
        return UInt(_converted(value, "uint", lambda text: _integer(text, 0, MAX_UINT)))
    return UInt(_bounded(int(value), UInt))


def to_double(value: Any) -> float:
    number: float = _converted(value, "double", float) if isinstance(value, str) else float(value)
    return number


def to_bool(value: Any) -> bool:
    truth: bool = value if isinstance(value, bool) else _converted(value, "bool", _TRUTH.__getitem__)
    return truth


def to_string(value: Any) -> str:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None
    return shown(value)


def to_bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


_TRUTH = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


def _integer(text: str, low: int, high: int) -> int:
    if _INTEGER.fullmatch(text) is None or (low == 0 and text[0] in "+-") or not low <= int(text) <= high:
        raise ValueError(text)
    return int(text)


_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)


def _converted(text: str, kind: str, parse: Callable[[str], Any]) -> Any:
    try:
        return parse(text)
    except (ValueError, LookupError):
        raise EvaluationError(f"type conversion error from 'string' to '{kind}'") from None


def _text(*values: Any) -> None:
    if not all(isinstance(value, str) for value in values):
        raise no_such_overload()


def text_contains(text: Any, part: Any) -> bool:
    _text(text, part)
    return part in text


def starts_with(text: Any, prefix: Any) -> bool:
    _text(text, prefix)
    return bool(text.startswith(prefix))


def ends_with(text: Any, suffix: Any) -> bool:
    _text(text, suffix)
    return bool(text.endswith(suffix))
