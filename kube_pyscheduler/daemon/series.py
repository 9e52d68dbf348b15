"""Counters and histograms as plain dictionaries: adding to one costs a look-up, publishing is done elsewhere.

Children are found by the tuple of their label values, in the order of ``labels``; the first use creates them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

Labels = tuple[str, ...]


def exponential_buckets(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Upper bounds, each ``factor`` times the one before. Source: ExponentialBuckets of prometheus/client_golang."""
    bounds = [start]
    while len(bounds) < count:
        bounds.append(bounds[-1] * factor)
    return tuple(bounds)


class Counter(dict[Labels, float]):
    """Only grows. Without labels it is there from the start, at 0."""

    def __init__(self, name: str, help_: str, labels: Sequence[str] = ()) -> None:
        self.name = name
        self.help = help_
        self.labels = tuple(labels)
        if not labels:
            self[()] = 0.0

    def __missing__(self, key: Labels) -> float:
        return 0.0

    def add(self, key: Labels, amount: float = 1.0) -> None:
        self[key] += amount


class Histogram(dict[Labels, list[float]]):
    """A child is ``[sum, count of the first bucket, …, count above all bounds]``; the counts are not cumulative."""

    def __init__(self, name: str, help_: str, labels: Sequence[str], bounds: tuple[float, ...]) -> None:
        self.name = name
        self.help = help_
        self.labels = tuple(labels)
        self.bounds = bounds
        if not labels:
            self[()] = self[()]

    def __missing__(self, key: Labels) -> list[float]:
        child = self[key] = [0.0] * (len(self.bounds) + 2)
        return child

    def observe(self, key: Labels, value: float) -> None:
        child = self[key]
        child[0] += value
        child[bisect_left(self.bounds, value) + 1] += 1

    def cumulative(self, key: Labels) -> tuple[list[tuple[str, float]], float]:
        """Buckets as Prometheus wants them, ``(upper bound as text, count up to it)``, and the sum."""
        child = self[key]
        buckets: list[tuple[str, float]] = []
        total = 0.0
        for bound, count in zip((*self.bounds, float("inf")), child[1:], strict=True):
            total += count
            buckets.append((bound_text(bound), total))
        return buckets, child[0]


def bound_text(bound: float) -> str:
    """As Go writes it: ``0.001``, ``1`` (not ``1.0``), ``+Inf``."""
    if bound == float("inf"):
        return "+Inf"
    return repr(bound).removesuffix(".0")
