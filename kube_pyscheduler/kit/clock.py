"""Time as a parameter: monotonic seconds for durations, wall-clock seconds for stamps."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """What tells time. All values are seconds as float."""

    def monotonic(self) -> float:
        """Seconds that never jump; only differences mean something."""

    def now(self) -> float:
        """Seconds since the Unix epoch; may jump."""


class RealClock:
    """The machine's clocks."""

    def monotonic(self) -> float:
        return time.monotonic()

    def now(self) -> float:
        return time.time()


class FakeClock:
    """A clock that stands still until it is told to move.

    ``start`` is the first value of both readings, in seconds.
    """

    def __init__(self, start: float = 1_000_000.0) -> None:
        self._monotonic = start
        self._offset = 0.0

    def monotonic(self) -> float:
        return self._monotonic

    def now(self) -> float:
        return self._monotonic + self._offset

    def advance(self, seconds: float) -> None:
        """Let ``seconds`` pass on both readings."""
        self._monotonic += seconds

    def jump(self, seconds: float) -> None:
        """Move the wall clock alone, as an administrator or NTP would."""
        self._offset += seconds
