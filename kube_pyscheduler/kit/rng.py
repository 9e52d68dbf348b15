"""Randomness as a parameter."""

from __future__ import annotations

from typing import Protocol


class Rng(Protocol):
    """The part of ``random.Random`` that decisions need."""

    def randrange(self, stop: int, /) -> int:
        """A number from 0 to stop − 1, all equally likely."""


class AlwaysFirst:
    """No randomness: the first of all choices."""

    def randrange(self, stop: int, /) -> int:
        return 0
