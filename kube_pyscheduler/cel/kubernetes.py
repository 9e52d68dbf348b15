"""Quantities and versions. Source: apiserver/pkg/cel/library/{quantity,semverlib}.go."""

from __future__ import annotations

from typing import Any

from kube_pyscheduler.cel.errors import EvaluationError
from kube_pyscheduler.cel.semver import Semver, SemverError, normalized_semver, parse_semver
from kube_pyscheduler.objects.exact_quantity import Notation, Quantity, parse_quantity, whole_units
from kube_pyscheduler.objects.quantity import QuantityError


def quantity(text: str) -> Quantity:
    try:
        return parse_quantity(text)
    except QuantityError as error:
        raise EvaluationError(str(error)) from None


def is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except QuantityError:
        return False
    return True


def semver(text: str, normalize: bool = False) -> Semver:
    try:
        return normalized_semver(text) if normalize else parse_semver(text)
    except SemverError as error:
        raise EvaluationError(str(error)) from None


def is_semver(text: str, normalize: bool = False) -> bool:
    try:
        semver(text, normalize)
    except EvaluationError:
        return False
    return True


def compare_to(left: Any, right: Any) -> int:
    order: int = left.compare(right)
    return order


def is_greater_than(left: Any, right: Any) -> bool:
    return compare_to(left, right) > 0


def is_less_than(left: Any, right: Any) -> bool:
    return compare_to(left, right) < 0


def sign(amount: Quantity) -> int:
    return (amount.value > 0) - (amount.value < 0)


def is_integer(amount: Quantity) -> bool:
    return amount.as_integer() is not None


def as_integer(amount: Quantity) -> int:
    whole = amount.as_integer()
    if whole is None:
        raise EvaluationError("cannot convert value to integer")
    return whole


def add(amount: Quantity, other: Quantity | int) -> Quantity:
    return amount.plus(_amount(other))


def sub(amount: Quantity, other: Quantity | int) -> Quantity:
    return amount.minus(_amount(other))


def _amount(value: Quantity | int) -> Quantity:
    return value if isinstance(value, Quantity) else whole_units(value, Notation.DECIMAL_EXPONENT)
