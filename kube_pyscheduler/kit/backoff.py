"""Exponential backoff as a value: how long to wait next, never the waiting itself."""

from __future__ import annotations

import random
from collections.abc import Callable


class Backoff:
    """Delays in seconds that grow by ``factor`` from ``initial``, spread by ``jitter``, never above ``maximum``.

    A delay lies between its base and ``(1 + jitter)`` times its base; the base stops growing where that reaches
    ``maximum``, so that also the longest delays stay spread. ``uniform`` gives numbers in [0, 1).
    """

    def __init__(
        self,
        initial: float,
        maximum: float,
        *,
        factor: float = 2.0,
        jitter: float = 1.0,
        uniform: Callable[[], float] = random.random,
    ) -> None:
        self._initial = initial
        self._factor = factor
        self._jitter = jitter
        self._ceiling = maximum / (1.0 + jitter)
        self._uniform = uniform
        self._base = min(initial, self._ceiling)

    def next(self) -> float:
        """The delay before the next attempt."""
        delay = self._base * (1.0 + self._jitter * self._uniform())
        self._base = min(self._base * self._factor, self._ceiling)
        return delay

    def reset(self) -> None:
        """Begin again: an attempt succeeded."""
        self._base = min(self._initial, self._ceiling)
