"""Kubernetes quantities as values: exact to the last digit, with the notation they are written in.

Amounts of devices are compared, added and written back, so neither their value nor their notation may be lost.
Source: apimachinery/pkg/api/resource/{quantity,amount,math}.go.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from kube_pyscheduler.objects.quantity import QuantityError, RawQuantity

_FORMAT = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]?|[eE][+-]?[0-9]{1,4})")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = {0: "", **{exponent: suffix for suffix, exponent in _BINARY.items()}}

NANO = -9
"""Scale of the smallest amounts; finer ones are rounded away from zero."""

MAX_INT64 = 2**63 - 1


class Notation(Enum):
    """How a quantity is written."""

    DECIMAL_SI = "DecimalSI"
    DECIMAL_EXPONENT = "DecimalExponent"
    BINARY_SI = "BinarySI"


@dataclass(frozen=True, slots=True)
class Quantity:
    """``value`` × 10 to the power of ``scale``. ``is_small``: it was written with few enough digits for Go's fast
    form, which decides whether it counts as an integer."""

    value: int
    scale: int = 0
    notation: Notation = Notation.DECIMAL_SI
    is_small: bool = True

    @property
    def nano(self) -> int:
        """In units of 10⁻⁹."""
        return self.value * _power(self.scale - NANO)

    @property
    def units(self) -> int:
        """Whole units, rounded away from zero, capped to int64."""
        rounded = _divide_away(self.nano, 10**-NANO)
        return max(-MAX_INT64, min(rounded, MAX_INT64))

    def as_integer(self) -> int | None:
        """The value where Go takes it for an integer, else None: what was written with a fraction or in milli is none,
        whatever its value."""
        if not self.is_small or self.scale < 0:
            return None
        whole = self.value * _power(self.scale)
        return whole if -MAX_INT64 - 1 <= whole <= MAX_INT64 else None

    def as_float(self) -> float:
        """About the value."""
        return float(self.value) * 10.0**self.scale

    def compare(self, other: Quantity) -> int:
        """−1, 0 or 1."""
        mine, others = self.nano, other.nano
        return (mine > others) - (mine < others)

    def plus(self, other: Quantity) -> Quantity:
        """The sum, written as this quantity is, or as the other where this one is 0."""
        return self._combined(other, 1)

    def minus(self, other: Quantity) -> Quantity:
        """The difference, written as ``plus`` is."""
        return self._combined(other, -1)

    def _combined(self, other: Quantity, sign: int) -> Quantity:
        scale = min(self.scale, other.scale)
        value = self.value * _power(self.scale - scale) + sign * other.value * _power(other.scale - scale)
        if self.value == 0:
            scale, value = other.scale, sign * other.value
        elif other.value == 0:
            scale, value = self.scale, self.value
        notation = other.notation if self.value == 0 else self.notation
        is_small = self.is_small and other.is_small and -MAX_INT64 <= value <= MAX_INT64
        return Quantity(value, scale, notation, is_small)

    def __str__(self) -> str:
        """The canonical text. Source: CanonicalizeBytes."""
        if self.value == 0:
            return "0"
        nano = self.nano
        whole, rest = divmod(abs(nano), 10**-NANO)
        if self.notation is Notation.BINARY_SI and not rest and whole >= 1024:
            exponent = 0
            while whole % 1024 == 0 and exponent < 60:
                whole //= 1024
                exponent += 10
            return f"{'-' if nano < 0 else ''}{whole}{_BINARY_SUFFIX[exponent]}"
        digits, exponent = abs(nano), NANO
        while digits % 1000 == 0 and (exponent < 18 or self.notation is Notation.DECIMAL_EXPONENT):
            digits //= 1000
            exponent += 3
        suffix = _DECIMAL_SUFFIX.get(exponent, "")
        if self.notation is Notation.DECIMAL_EXPONENT:
            suffix = f"e{exponent}" if exponent else ""
        return f"{'-' if nano < 0 else ''}{digits}{suffix}"


def _power(exponent: int) -> int:
    return int(10**exponent)


def _divide_away(numerator: int, denominator: int) -> int:
    """Quotient rounded away from zero."""
    quotient = -(-abs(numerator) // denominator)
    return quotient if numerator >= 0 else -quotient


def whole_units(amount: int, notation: Notation) -> Quantity:
    """A quantity of so many units."""
    return Quantity(amount, 0, notation)


@lru_cache(maxsize=4096)
def parse_quantity(text: RawQuantity) -> Quantity:
    """The quantity that ``text`` stands for.

    >>> str(parse_quantity("1024Mi")), str(parse_quantity("0.5")), parse_quantity("1500m").units
    ('1Gi', '500m', 2)

    Raises QuantityError, whose text is Go's, for anything the API would not accept.
    """
    match = _FORMAT.fullmatch(str(text))
    if match is None or not (match[2] or match[3]):
        raise QuantityError(_problem(str(text)))
    sign, before, after, suffix = match[1], match[2].lstrip("0"), match[3] or "", match[4]
    if suffix in _BINARY:
        notation, exponent, factor = Notation.BINARY_SI, 0, 1 << _BINARY[suffix]
        is_small = not after and 15 - len(before or "0") - int(_BINARY[suffix] * 3 / 10) - 1 >= 0
    else:
        notation = Notation.DECIMAL_SI if suffix in _DECIMAL else Notation.DECIMAL_EXPONENT
        exponent, factor = _DECIMAL[suffix] if suffix in _DECIMAL else _exponent(suffix), 1
        is_small = 18 - len(before or "0") - len(after) >= 0
    value, scale = int(before + after or "0") * factor, exponent - len(after)
    if scale < NANO:
        value, scale, is_small = _divide_away(value, _power(NANO - scale)), NANO, False
    if not is_small and notation is Notation.BINARY_SI:
        value, scale = min(value, MAX_INT64 * _power(-scale)), scale
        if 0 < value < _power(-scale):
            notation = Notation.DECIMAL_SI
    return Quantity(-value if sign == "-" else value, scale, notation, is_small)


def _exponent(suffix: str) -> int:
    # Beyond these the result is 0, rounded up, or beyond everything else all the same.
    return max(-100, min(int(suffix[1:]), 100))


_SPLIT = re.compile(r"([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)")


def _problem(text: str) -> str:
    if not text or _SPLIT.fullmatch(text) is None:
        return "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    if _SPLIT.fullmatch(text)[1].count(".") > 1:  # type: ignore[index]
        return "unable to parse numeric part of quantity"
    return "unable to parse quantity's suffix"
