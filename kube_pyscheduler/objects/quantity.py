"""Kubernetes quantities as exact integers of milli-units.

The API server rounds every entry of a resource list up to milli-units when it decodes the object
(Source: SetDefaults_ResourceList in pkg/apis/core/v1/defaults.go), so a milli-unit integer holds every such
value without loss; sums stay exact and are rounded up once, where a whole unit is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import MAX_PREC, Context, Decimal
from functools import lru_cache

RawQuantity = str | int | float
"""A quantity as JSON carries it; the API server always writes text."""

MAX_INT64 = 2**63 - 1

_FORMAT = re.compile(r"([+-]?)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]?|[eE][+-]?[0-9]{1,4})")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_EXACT = Context(prec=MAX_PREC)


class QuantityError(ValueError):
    """The text is not a quantity."""


@lru_cache(maxsize=4096)
def parse_milli(text: RawQuantity) -> int:
    """The quantity in milli-units, rounded away from zero; at most about 2**63 units in magnitude.

    >>> parse_milli("100m"), parse_milli("1.5Gi"), parse_milli("100u")
    (100, 1610612736000, 1)

    Raises QuantityError for anything the API would not accept.
    Source: ParseQuantity in apimachinery/pkg/api/resource/quantity.go.
    """
    match = _FORMAT.fullmatch(str(text))
    if match is None:
        raise QuantityError(f"{str(text)[:64]!r} is not a quantity such as 500m, 2 or 1.5Gi")
    sign, number, suffix = match.groups()
    if len(number) > 64:
        raise QuantityError(f"{number[:24]}… has too many digits for a quantity")
    value = Decimal(number)
    if suffix in _BINARY:
        milli = value * (1 << _BINARY[suffix]) * 1000
    elif suffix in _DECIMAL:
        milli = value.scaleb(_DECIMAL[suffix] + 3, _EXACT)
    else:
        # Beyond these exponents the result is capped, or rounded up to the smallest value, all the same.
        exponent = max(-100, min(int(suffix[1:]), 100))
        milli = value.scaleb(exponent + 3, _EXACT)
    whole = int(milli.to_integral_value(rounding="ROUND_CEILING"))
    whole = min(whole, MAX_INT64 * 1000)
    return -whole if sign == "-" else whole


def to_units(milli: int) -> int:
    """Milli-units to whole units, rounded away from zero, capped to int64."""
    units = -(-milli // 1000) if milli >= 0 else milli // 1000
    return max(-MAX_INT64, min(units, MAX_INT64))


def to_milli(milli: int) -> int:
    """Milli-units capped to int64."""
    return max(-MAX_INT64, min(milli, MAX_INT64))


def parse_list(resources: Mapping[str, RawQuantity]) -> dict[str, int]:
    """Resource name to milli-units. Raises QuantityError naming the resource."""
    try:
        return {name: parse_milli(text) for name, text in resources.items()}
    except QuantityError:
        for name, text in resources.items():
            try:
                parse_milli(text)
            except QuantityError as error:
                raise QuantityError(f"{name}: {error}") from None
        raise
