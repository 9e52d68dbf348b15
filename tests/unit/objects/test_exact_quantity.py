"""Quantities as values: nothing of them is lost, and they are written as Go writes them."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_pyscheduler.objects.exact_quantity import Notation, Quantity, parse_quantity, whole_units
from kube_pyscheduler.objects.quantity import QuantityError, RawQuantity


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("0", "0"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("1000", "1k"),
        ("1500", "1500"),
        ("0.5", "500m"),
        ("1.5", "1500m"),
        ("1e3", "1e3"),
        ("1e4", "10e3"),
        ("12E2", "1200"),
        ("1023", "1023"),
        ("1025Ki", "1025Ki"),
        ("-1024Ki", "-1Mi"),
        ("100m", "100m"),
        ("1000000n", "1m"),
        ("0.0000000001", "1n"),
        (3, "3"),
        ("+5", "5"),
        ("008", "8"),
    ],
)
def test_quantities_are_written_canonically(text: RawQuantity, written: str) -> None:
    assert str(parse_quantity(text)) == written


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "quantities must match the regular expression"),
        ("abc", "quantities must match the regular expression"),
        ("1.5x", "quantities must match the regular expression"),
        ("1.2.3", "unable to parse numeric part of quantity"),
        ("1kk", "unable to parse quantity's suffix"),
        (".", "unable to parse quantity's suffix"),
        ("1 Gi", "quantities must match the regular expression"),
    ],
)
def test_what_is_no_quantity(text: str, problem: str) -> None:
    with pytest.raises(QuantityError, match=problem):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("text", "integer"),
    [("5", 5), ("5k", 5000), ("2Ki", 2048), ("1500m", None), ("2000m", None), ("1.0", None), ("1e3", 1000), ("-3", -3)],
)
def test_what_go_takes_for_an_integer(text: str, integer: int | None) -> None:
    assert parse_quantity(text).as_integer() == integer


def test_whole_units_are_rounded_away_from_zero_and_capped() -> None:
    assert parse_quantity("1500m").units == 2
    assert parse_quantity("-1500m").units == -2
    assert parse_quantity("100E").units == 2**63 - 1


def test_sums_are_written_as_the_first_or_as_the_one_that_is_not_zero() -> None:
    gibibyte, thousand, zero = parse_quantity("1Gi"), parse_quantity("1k"), parse_quantity("0")
    assert gibibyte.plus(thousand).notation is Notation.BINARY_SI
    assert thousand.plus(gibibyte).notation is Notation.DECIMAL_SI
    assert str(zero.plus(gibibyte)) == "1Gi"
    assert str(gibibyte.minus(zero)) == "1Gi"
    assert str(zero.minus(gibibyte)) == "-1Gi"
    assert gibibyte.minus(gibibyte).nano == 0


def test_the_same_amount_in_two_notations_compares_equal() -> None:
    assert parse_quantity("1Ki").compare(parse_quantity("1024")) == 0
    assert parse_quantity("1Ki") != parse_quantity("1024")
    assert str(whole_units(2048, Notation.BINARY_SI)) == "2Ki"


AMOUNTS = st.builds(
    lambda value, scale, notation: Quantity(value, scale, notation),
    st.integers(-(10**15), 10**15),
    st.integers(-9, 3),
    st.sampled_from([Notation.DECIMAL_SI, Notation.DECIMAL_EXPONENT]),
)


@given(AMOUNTS, AMOUNTS)
def test_arithmetic_is_exact(first: Quantity, second: Quantity) -> None:
    one, other = (Fraction(each.value) * Fraction(10) ** each.scale for each in (first, second))
    assert Fraction(first.plus(second).nano, 10**9) == one + other
    assert Fraction(first.minus(second).nano, 10**9) == one - other
    assert first.compare(second) == (one > other) - (one < other)


@given(AMOUNTS)
def test_what_is_written_is_read_back(amount: Quantity) -> None:
    again = parse_quantity(str(amount))
    assert again.nano == amount.nano
    assert str(again) == str(amount)
