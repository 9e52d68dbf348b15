"""Label selectors as values: equal where they say the same, hashed once, ready to match."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kube_pyscheduler.objects.selectors import LabelSelector


class Requirement(NamedTuple):
    """``operator``: In, NotIn, Exists or DoesNotExist."""

    key: str
    operator: str
    values: frozenset[str]


class LabelMatcher:
    """A conjunction of requirements; without any it matches everything. ``never``: it matches nothing instead."""

    __slots__ = ("_hash", "never", "requirements")

    def __init__(self, requirements: frozenset[Requirement] = frozenset(), *, never: bool = False) -> None:
        self.requirements = requirements
        self.never = never
        self._hash = hash((requirements, never))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, LabelMatcher)
            and self._hash == other._hash
            and self.never == other.never
            and self.requirements == other.requirements
        )

    @property
    def is_everything(self) -> bool:
        return not self.requirements and not self.never

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Source: Requirement.Matches in apimachinery/pkg/labels/selector.go."""
        if self.never:
            return False
        for key, operator, values in self.requirements:
            # An absent label is None, which is never among the values.
            if operator == "In":
                if labels.get(key) not in values:
                    return False
            elif operator == "NotIn":
                if labels.get(key) in values:
                    return False
            elif (key in labels) != (operator == "Exists"):
                return False
        return True

    def and_labels(self, labels: Mapping[str, str]) -> LabelMatcher:
        """The same with more labels that must be there; what matches nothing stays so."""
        if self.never or not labels:
            return self
        return LabelMatcher(self.requirements | _equalities(labels))

    def and_all(self, other: LabelMatcher) -> LabelMatcher:
        """Both; neither may match nothing."""
        return LabelMatcher(self.requirements | other.requirements)


EVERYTHING = LabelMatcher()
NOTHING = LabelMatcher(never=True)


def labels_matcher(labels: Mapping[str, str]) -> LabelMatcher:
    """All of these labels must be there."""
    return LabelMatcher(_equalities(labels))


def selector_matcher(selector: LabelSelector | None) -> LabelMatcher:
    """The selector as a value; None matches nothing. Raises ValueError where it makes no sense.

    Source: LabelSelectorAsSelector in apimachinery/pkg/apis/meta/v1/helpers.go.
    """
    if selector is None:
        return NOTHING
    problem = selector.problem()
    if problem:
        raise ValueError(problem)
    expressions = frozenset(
        [Requirement(entry.key, entry.operator, frozenset(entry.values)) for entry in selector.match_expressions]
    )
    return LabelMatcher(_equalities(selector.match_labels) | expressions)


def _equalities(labels: Mapping[str, str]) -> frozenset[Requirement]:
    return frozenset([Requirement(key, "In", frozenset((value,))) for key, value in labels.items()])
