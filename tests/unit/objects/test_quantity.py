"""Quantities: every notation, exact, rounded away from zero once."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_pyscheduler.objects.quantity import (
    MAX_INT64,
    QuantityError,
    parse_list,
    parse_milli,
    to_milli,
    to_units,
)

SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(1000),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "e3": Fraction(1000),
    "E-2": Fraction(1, 100),
}


@pytest.mark.parametrize(
    ("text", "milli"),
    [
        ("100m", 100),
        ("0.1", 100),
        ("1e-1", 100),
        ("100000u", 100),
        ("1Ki", 1024_000),
        ("1.5Gi", 1_610_612_736_000),
        ("128974848", 128_974_848_000),
        ("129e6", 129_000_000_000),
        ("1500m", 1500),
        ("+5", 5000),
        (".5", 500),
        ("1.", 1000),
        ("-1", -1000),
        ("1n", 1),
        ("-1n", -1),
        (3, 3000),
        (0.25, 250),
    ],
)
def test_notations(text: str | float, milli: int) -> None:
    assert parse_milli(text) == milli


@pytest.mark.parametrize(
    "text", ["", "lots", "1 Gi", "1KiB", "--1", "1e", "0x10", "1Zi", "∞", "1e99999999", "9" * 100, "."]
)
def test_what_is_no_quantity(text: str) -> None:
    with pytest.raises(QuantityError):
        parse_milli(text)


def test_absurd_sizes_are_capped() -> None:
    assert to_units(parse_milli("99999999999E")) == MAX_INT64
    assert to_milli(parse_milli("99999999999E")) == MAX_INT64
    assert to_units(parse_milli("-99999999999E")) == -MAX_INT64


@given(
    number=st.decimals(min_value=0, max_value=10**6, places=3, allow_nan=False),
    suffix=st.sampled_from(sorted(SUFFIXES)),
    sign=st.sampled_from(["", "-"]),
)
def test_equals_exact_arithmetic(number: object, suffix: str, sign: str) -> None:
    exact = Fraction(str(number)) * SUFFIXES[suffix] * 1000
    ceiling = -(-exact.numerator // exact.denominator)
    assert parse_milli(f"{sign}{number}{suffix}") == (-ceiling if sign else ceiling)


def test_units_round_away_from_zero() -> None:
    assert [to_units(milli) for milli in (0, 1, 1000, 1001, -1, -1000, -1001)] == [0, 1, 1, 2, -1, -1, -2]


def test_a_list_names_the_resource_that_is_wrong() -> None:
    with pytest.raises(QuantityError, match="memory: 'much'"):
        parse_list({"cpu": "1", "memory": "much"})
