"""Node selectors as lookups in label columns. Plain twins: ``matches`` in objects/selectors.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from kube_pyscheduler.columns.arrays import Mask, RowIndex, Rows
from kube_pyscheduler.columns.labels import LabelColumn
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.vocabulary import LookupTable, Membership
from kube_pyscheduler.objects.selectors import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm


def row_numbers(table: NodeTable, rows: Rows) -> RowIndex:
    """The row numbers that ``rows`` selects."""
    return np.arange(*rows.indices(table.high), dtype=np.int64) if isinstance(rows, slice) else rows


def _lookup(column: LabelColumn, requirement: NodeSelectorRequirement) -> LookupTable[str, np.bool_] | Membership[str]:
    if requirement.operator == "In":
        return Membership(column.vocabulary, requirement.values)
    return LookupTable(column.vocabulary, requirement.matches, requirement.matches(None), np.bool_)


class TermMatcher:
    """One term over rows. Cost: one lookup a requirement."""

    def __init__(self, table: NodeTable, term: NodeSelectorTerm) -> None:
        self._never = term.is_empty or bool(term.problems())
        self._tables: list[tuple[LabelColumn, LookupTable[str, np.bool_] | Membership[str]]] = []
        self._fields = () if self._never else term.match_fields
        if not self._never:
            for requirement in term.match_expressions:
                column = table.label_column(requirement.key)
                self._tables.append((column, _lookup(column, requirement)))

    def mask(self, table: NodeTable, rows: Rows) -> Mask:
        """bool[len(rows)]: where the term matches."""
        count = len(table.alive[rows]) if isinstance(rows, slice) else len(rows)
        if self._never:
            return np.zeros(count, dtype=np.bool_)
        mask = np.ones(count, dtype=np.bool_)
        for column, lookup in self._tables:
            mask &= lookup.take(column.ids[rows])
        for requirement in self._fields:
            mask &= self._field(table, rows, requirement)
        return mask

    @staticmethod
    def _field(table: NodeTable, rows: Rows, requirement: NodeSelectorRequirement) -> Mask:
        numbers = row_numbers(table, rows)
        if requirement.key != "metadata.name":
            return np.full(len(numbers), requirement.matches_field({}), dtype=np.bool_)
        named: Mask = numbers == table.row_of.get(requirement.values[0], -1)
        return named if requirement.operator == "In" else ~named


class SelectorMatcher:
    """A whole selector: any of its terms."""

    def __init__(self, table: NodeTable, selector: NodeSelector) -> None:
        self._terms = [TermMatcher(table, term) for term in selector.node_selector_terms]

    def mask(self, table: NodeTable, rows: Rows) -> Mask:
        """bool[len(rows)]."""
        count = len(table.alive[rows]) if isinstance(rows, slice) else len(rows)
        mask = np.zeros(count, dtype=np.bool_)
        for term in self._terms:
            mask |= term.mask(table, rows)
        return mask


class LabelsMatcher:
    """A map of labels that must all be there (``spec.nodeSelector``)."""

    def __init__(self, table: NodeTable, labels: Mapping[str, str]) -> None:
        self._wanted = [(table.label_column(key), value) for key, value in labels.items()]

    def mask(self, table: NodeTable, rows: Rows) -> Mask:
        """bool[len(rows)]."""
        count = len(table.alive[rows]) if isinstance(rows, slice) else len(rows)
        mask = np.ones(count, dtype=np.bool_)
        for column, value in self._wanted:
            wanted = column.vocabulary.lookup(value)
            if wanted < 0:
                return np.zeros(count, dtype=np.bool_)
            mask &= column.ids[rows] == wanted
        return mask


Matcher = SelectorMatcher | LabelsMatcher


class RequiredNodeAffinity:
    """``spec.nodeSelector`` and the required node affinity of a pod together.

    Source: RequiredNodeAffinity in component-helpers/scheduling/corev1/nodeaffinity.
    """

    def __init__(self, table: NodeTable, node_selector: Mapping[str, str], required: NodeSelector | None) -> None:
        self._matchers: list[Matcher] = []
        if node_selector:
            self._matchers.append(LabelsMatcher(table, node_selector))
        if required is not None:
            self._matchers.append(SelectorMatcher(table, required))

    def mask(self, table: NodeTable, rows: Rows) -> Mask:
        """bool[len(rows)]."""
        count = len(table.alive[rows]) if isinstance(rows, slice) else len(rows)
        mask = np.ones(count, dtype=np.bool_)
        for matcher in self._matchers:
            mask &= matcher.mask(table, rows)
        return mask


def weighted_terms(table: NodeTable, terms: Iterable[tuple[int, NodeSelectorTerm]]) -> list[tuple[int, TermMatcher]]:
    """Matchers of preferred terms; those of weight 0 or without requirements say nothing."""
    return [(weight, TermMatcher(table, term)) for weight, term in terms if weight and not term.is_empty]
