"""Semantic versions: their order, and what is none."""

from __future__ import annotations

import pytest

from kube_pyscheduler.cel.semver import SemverError, normalized_semver, parse_semver

IN_ORDER = [
    "0.0.1-alpha",
    "0.0.1",
    "1.0.0-0",
    "1.0.0-2",
    "1.0.0-10",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.beta",
    "1.0.0-beta",
    "1.0.0-rc.1",
    "1.0.0",
    "1.2.0",
    "1.10.0",
    "18446744073709551615.0.0",
]


def test_versions_are_ordered_as_semver_says() -> None:
    versions = [parse_semver(text) for text in IN_ORDER]
    for place, version in enumerate(versions):
        assert [version.compare(other) for other in versions] == [
            (place > other) - (place < other) for other in range(len(versions))
        ]


def test_build_metadata_does_not_count() -> None:
    assert parse_semver("1.0.0+a.b-c") == parse_semver("1.0.0")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "Version string empty"),
        ("1", "No Major.Minor.Patch elements found"),
        ("1.2", "No Major.Minor.Patch elements found"),
        ("v1.2.3", 'Invalid character(s) found in major number "v1"'),
        ("1.02.3", 'Minor number must not contain leading zeroes "02"'),
        ("1.2.x", 'Invalid character(s) found in patch number "x"'),
        ("1..3", 'strconv.ParseUint: parsing "": invalid syntax'),
        ("18446744073709551616.0.0", 'strconv.ParseUint: parsing "18446744073709551616": value out of range'),
        ("1.2.3-", "Prerelease is empty"),
        ("1.2.3-a..b", "Prerelease is empty"),
        ("1.2.3-01", 'Numeric PreRelease version must not contain leading zeroes "01"'),
        ("1.2.3-a_b", 'Invalid character(s) found in prerelease "a_b"'),
        ("1.2.3+", "Build meta data is empty"),
        ("1.2.3+a_b", 'Invalid character(s) found in build meta data "a_b"'),
        ("1.2.\u0663", 'Invalid character(s) found in patch number "\u0663"'),
    ],
)
def test_what_is_no_version(text: str, problem: str) -> None:
    with pytest.raises(SemverError) as failed:
        parse_semver(text)
    assert str(failed.value) == problem


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("v1", "1.0.0"),
        ("1.2", "1.2.0"),
        ("01.002.0003", "1.2.3"),
        ("v00.0.0", "0.0.0"),
        ("1.2.3-rc.1", "1.2.3-rc.1"),
    ],
)
def test_versions_that_are_put_in_order_first(text: str, version: str) -> None:
    assert normalized_semver(text) == parse_semver(version)


@pytest.mark.parametrize("text", ["1.2-rc", "1+b", "vv1.2.3", ""])
def test_what_cannot_be_put_in_order(text: str) -> None:
    with pytest.raises(SemverError):
        normalized_semver(text)
