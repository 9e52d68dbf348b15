"""Label selectors and node selectors as the API writes them.

``LabelSelector.matches`` and ``NodeSelectorRequirement.matches`` are the plain per-object forms; columns compile
the same requirements into lookup tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from kube_pyscheduler.objects.meta import Struct


class LabelSelectorRequirement(Struct, frozen=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        return False


class LabelSelector(Struct, frozen=True):
    """All requirements must hold. The empty selector matches everything; an absent one is None, and matches nothing."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.match_labels and not self.match_expressions

    def matches(self, labels: Mapping[str, str]) -> bool:
        for key, value in self.match_labels.items():
            if labels.get(key) != value:
                return False
        return all(requirement.matches(labels) for requirement in self.match_expressions)

    def canonical(self) -> tuple[object, ...]:
        """A hashable form, equal for selectors that say the same in another order."""
        return (
            tuple(sorted(self.match_labels.items())),
            tuple(sorted((r.key, r.operator, tuple(sorted(r.values))) for r in self.match_expressions)),
        )

    def problem(self) -> str:
        """Why no label set can be matched against this selector, or ""."""
        for requirement in self.match_expressions:
            has_values = bool(requirement.values)
            if requirement.operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
                return f'"{requirement.operator}" is not a valid label selector operator'
            if has_values != (requirement.operator in ("In", "NotIn")):
                return f"values: Invalid value for operator {requirement.operator}"
        return ""


_INTEGER = re.compile(r"[+-]?[0-9]+")


def parse_int64(text: str) -> int | None:
    """A decimal integer as Go's ParseInt reads it, or None where it would refuse."""
    if _INTEGER.fullmatch(text) is None or len(text) > 20:
        return None
    value = int(text)
    return value if -(2**63) <= value < 2**63 else None


class NodeSelectorRequirement(Struct, frozen=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()

    def matches(self, value: str | None) -> bool:
        """Whether a node whose label (or field) ``key`` has ``value`` satisfies this; None is absent."""
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                if value is None or len(self.values) != 1:
                    return False
                mine, bound = parse_int64(value), parse_int64(self.values[0])
                if mine is None or bound is None:
                    return False
                return mine > bound if self.operator == "Gt" else mine < bound
        return False


class NodeSelectorTerm(Struct, frozen=True):
    """All requirements must hold; a term without any matches nothing."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.match_expressions and not self.match_fields


class NodeSelector(Struct, frozen=True):
    """One term must match; without terms nothing does."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(Struct, frozen=True):
    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()
