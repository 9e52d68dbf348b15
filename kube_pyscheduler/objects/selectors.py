"""Label selectors and node selectors as the API writes them.

``LabelSelector.matches`` and ``NodeSelectorRequirement.matches`` are the plain per-object forms; columns compile
the same requirements into lookup tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from kube_pyscheduler.objects.meta import Int32, Struct


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
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_LABEL_VALUE_PROBLEM = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_MAX_LABEL_VALUE = 63


def parse_int64(text: str) -> int | None:
    """A decimal integer as Go's ParseInt reads it, or None where it would refuse."""
    if _INTEGER.fullmatch(text) is None or len(text) > 20:
        return None
    value = int(text)
    return value if -(2**63) <= value < 2**63 else None


def label_value_problems(value: str) -> list[str]:
    """Why the API would not take ``value`` for a label. Source: IsValidLabelValue in apimachinery."""
    problems = []
    if len(value.encode()) > _MAX_LABEL_VALUE:
        problems.append(f"must be no more than {_MAX_LABEL_VALUE} bytes")
    if _LABEL_VALUE.fullmatch(value) is None:
        problems.append(_LABEL_VALUE_PROBLEM)
    return problems


class NodeSelectorRequirement(Struct, frozen=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()

    def matches(self, value: str | None) -> bool:
        """Whether a node whose label ``key`` has ``value`` satisfies this; None is absent."""
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
                mine = None if value is None else parse_int64(value)
                bound = parse_int64(self.values[0])
                if mine is None or bound is None:
                    return False
                return mine > bound if self.operator == "Gt" else mine < bound
        return False

    def expression_problems(self, path: str) -> list[str]:
        """Why this says nothing about labels. Source: NewRequirement in apimachinery/pkg/labels/selector.go."""
        values, problems = list(self.values), []
        shown = "[" + ", ".join(f'"{value}"' for value in values) + "]" if values else "null"
        match self.operator:
            case "In" | "NotIn":
                if not values:
                    text = "for 'in', 'notin' operators, values set can't be empty"
                    problems.append(f"{path}.values: Invalid value: {shown}: {text}")
            case "Exists" | "DoesNotExist":
                if values:
                    text = "values set must be empty for exists and does not exist"
                    problems.append(f"{path}.values: Invalid value: {shown}: {text}")
            case "Gt" | "Lt":
                if len(values) != 1:
                    text = "for 'Gt', 'Lt' operators, exactly one value is required"
                    problems.append(f"{path}.values: Invalid value: {shown}: {text}")
                for index, value in enumerate(values):
                    if parse_int64(value) is None:
                        text = "for 'Gt', 'Lt' operators, the value must be an integer"
                        problems.append(f'{path}.values[{index}]: Invalid value: "{value}": {text}')
            case _:
                supported = '"DoesNotExist", "Exists", "Gt", "In", "Lt", "NotIn"'
                return [f'{path}.operator: Unsupported value: "{self.operator}": supported values: {supported}']
        for index, value in enumerate(values):
            bad = label_value_problems(value)
            if bad:
                problems.append(f'{path}.values[{index}][{self.key}]: Invalid value: "{value}": {"; ".join(bad)}')
        return problems

    def field_problems(self, path: str) -> list[str]:
        """Why this says nothing about fields, which know only In and NotIn with one value."""
        if self.operator not in ("In", "NotIn"):
            supported = '"In", "NotIn"'
            return [f'{path}.operator: Unsupported value: "{self.operator}": supported values: {supported}']
        if len(self.values) != 1:
            shown = "[" + ",".join(f'"{value}"' for value in self.values) + "]" if self.values else "null"
            return [f"{path}.values: Invalid value: {shown}: must have one element"]
        return []

    def matches_field(self, fields: Mapping[str, str]) -> bool:
        """As ``matches``, for fields: an unknown one counts as empty."""
        return (fields.get(self.key, "") == self.values[0]) == (self.operator == "In")


class NodeSelectorTerm(Struct, frozen=True):
    """All requirements must hold; a term without any matches nothing, and so does one with a problem."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.match_expressions and not self.match_fields

    def problems(self, path: str = "") -> list[str]:
        """Why the term cannot be used, one text each."""
        found = []
        for index, requirement in enumerate(self.match_expressions):
            found += requirement.expression_problems(f"{path}.matchExpressions[{index}]")
        for index, requirement in enumerate(self.match_fields):
            found += requirement.field_problems(f"{path}.matchFields[{index}]")
        return found

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Whether a node with these labels and this name satisfies the term."""
        if self.is_empty or self.problems():
            return False
        fields = {"metadata.name": name}
        return all(r.matches(labels.get(r.key)) for r in self.match_expressions) and all(
            r.matches_field(fields) for r in self.match_fields
        )


class NodeSelector(Struct, frozen=True):
    """One term must match; without terms nothing does."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        return any(term.matches(labels, name) for term in self.node_selector_terms)

    def label_keys(self) -> frozenset[str]:
        """The labels that it looks at."""
        return frozenset(
            [requirement.key for term in self.node_selector_terms for requirement in term.match_expressions]
        )


class PreferredSchedulingTerm(Struct, frozen=True):
    weight: Int32 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()
