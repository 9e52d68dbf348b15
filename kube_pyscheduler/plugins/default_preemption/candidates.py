"""Nodes where preemption would help, and which of them is the best.

Source: pickOneNodeForPreemption in pkg/scheduler/framework/preemption/preemption.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from kube_pyscheduler.columns.pod_info import PodInfo


@dataclass(frozen=True, slots=True)
class Candidate:
    """``victims``: at least one, the most important first. ``violations``: how many of them a PodDisruptionBudget
    would keep. ``started``: when the first of them started, in seconds since the epoch."""

    node: str
    victims: tuple[PodInfo, ...]
    violations: int
    started: int


_PRIORITY_OFFSET = 2**31
"""Added to each priority in a sum, so that more victims are never better than fewer. Source: MaxInt32 + 1."""

_COSTS: tuple[Callable[[Candidate], int], ...] = (
    lambda candidate: candidate.violations,
    lambda candidate: candidate.victims[0].pod.priority,
    lambda candidate: sum(victim.pod.priority + _PRIORITY_OFFSET for victim in candidate.victims),
    lambda candidate: len(candidate.victims),
    lambda candidate: -candidate.started,
)
"""The less the better; each decides only between candidates that are equal under those before it."""


def best(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates that no other is better than, in the order given."""
    left = list(candidates)
    for cost in _COSTS:
        if len(left) < 2:
            break
        costs = [cost(candidate) for candidate in left]
        least = min(costs)
        left = [candidate for candidate, its in zip(left, costs, strict=True) if its == least]
    return left


class Shortlist:
    """Candidates in the order they are found, until there are enough.

    There are enough when ``wanted`` were found and one of them violates no budget. Of either sort no more than
    ``wanted`` are kept, so where none are wanted, none are found, and all nodes are tried.

    Source: DryRunPreemption in pkg/scheduler/framework/preemption/preemption.go, with one worker.
    """

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._harmless: list[Candidate] = []
        self._violating: list[Candidate] = []

    @property
    def is_complete(self) -> bool:
        return bool(self._harmless) and len(self._harmless) + len(self._violating) >= self._wanted

    def take(self, found: Iterable[Candidate]) -> None:
        """Add candidates; those that are too many are left out."""
        for candidate in found:
            if self.is_complete:
                return
            kept = self._violating if candidate.violations else self._harmless
            if len(kept) < self._wanted:
                kept.append(candidate)

    def candidates(self) -> list[Candidate]:
        """Those that violate no budget first."""
        return [*self._harmless, *self._violating]
