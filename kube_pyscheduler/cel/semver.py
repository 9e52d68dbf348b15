"""Semantic versions. Source: github.com/blang/semver/v4, which Kubernetes uses."""

from __future__ import annotations

import re
from dataclasses import dataclass

_DIGITS = re.compile(r"[0-9]*")
_ALPHANUMERIC = re.compile(r"[0-9A-Za-z-]*")


class SemverError(ValueError):
    """The text is no version; the message is Go's."""


@dataclass(frozen=True, slots=True)
class Semver:
    """``pre``: the identifiers of the pre-release. Build metadata takes no part in comparisons and is not kept."""

    major: int
    minor: int
    patch: int
    pre: tuple[int | str, ...] = ()

    def compare(self, other: Semver) -> int:
        """−1, 0 or 1."""
        mine, others = self._order, other._order
        return (mine > others) - (mine < others)

    @property
    def _order(self) -> tuple[object, ...]:
        # No pre-release comes after all of them, numbers before words, the shorter list first.
        identifiers = tuple((0, part, "") if isinstance(part, int) else (1, 0, part) for part in self.pre)
        return self.major, self.minor, self.patch, not self.pre, identifiers


def _number(text: str, what: str) -> int:
    if _DIGITS.fullmatch(text) is None:
        raise SemverError(f'Invalid character(s) found in {what.lower()} number "{text}"')
    if len(text) > 1 and text[0] == "0":
        raise SemverError(f'{what} number must not contain leading zeroes "{text}"')
    return _parse_uint(text)


def _parse_uint(text: str) -> int:
    if not text:
        raise SemverError('strconv.ParseUint: parsing "": invalid syntax')
    value = int(text)
    if value >= 2**64:
        raise SemverError(f'strconv.ParseUint: parsing "{text}": value out of range')
    return value


def parse_semver(text: str) -> Semver:
    """Raises SemverError."""
    if not text:
        raise SemverError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise SemverError("No Major.Minor.Patch elements found")
    major, minor = _number(parts[0], "Major"), _number(parts[1], "Minor")
    rest, plus, build = parts[2].partition("+")
    patch_text, dash, pre = rest.partition("-")
    patch = _number(patch_text, "Patch")
    identifiers = tuple([_identifier(part) for part in pre.split(".")]) if dash else ()
    for part in build.split(".") if plus else ():
        if not part:
            raise SemverError("Build meta data is empty")
        if _ALPHANUMERIC.fullmatch(part) is None:
            raise SemverError(f'Invalid character(s) found in build meta data "{part}"')
    return Semver(major, minor, patch, identifiers)


def _identifier(text: str) -> int | str:
    if not text:
        raise SemverError("Prerelease is empty")
    if _DIGITS.fullmatch(text):
        if len(text) > 1 and text[0] == "0":
            raise SemverError(f'Numeric PreRelease version must not contain leading zeroes "{text}"')
        return _parse_uint(text)
    if _ALPHANUMERIC.fullmatch(text) is None:
        raise SemverError(f'Invalid character(s) found in prerelease "{text}"')
    return text


def normalized_semver(text: str) -> Semver:
    """As ``parse_semver``, without a leading "v", without leading zeroes, and with missing numbers as 0.

    Source: normalizeAndParse in apiserver/pkg/cel/library/semverlib.go.
    """
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[index] = stripped if stripped[:1] in tuple("0123456789") else f"0{stripped}"
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise SemverError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return parse_semver(".".join(parts))
