"""What the pods on nodes say about pods to come: each distinct term once, with the pods of each row that have it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, auto

from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.columns.row_counts import RowCounts
from kube_pyscheduler.columns.selector_index import ALL_NAMESPACES, Namespaces, SelectorIndex
from kube_pyscheduler.plugins.inter_pod_affinity.terms import NO_TERMS, PodTerms, Term, pod_terms


class Kind(IntEnum):
    """What a term is part of."""

    REQUIRED = auto()
    REQUIRED_ANTI = auto()
    PREFERRED = auto()
    PREFERRED_ANTI = auto()


@dataclass(slots=True, eq=False)
class ExistingTerm:
    """``weight`` is 0 for required terms. ``pods``: how many pods of each row have the term."""

    kind: Kind
    weight: int
    term: Term
    pods: RowCounts = field(default_factory=RowCounts)


class ExistingTerms:
    """The distinct terms over one table; get it with ``table.attached(ExistingTerms)``.

    A pod coming or going costs O(its terms).
    """

    def __init__(self, table: NodeTable) -> None:
        self._terms: dict[tuple[Kind, int, Term], ExistingTerm] = {}
        self._of_pod: dict[str, list[ExistingTerm]] = {}
        self._refusing: SelectorIndex[ExistingTerm] = SelectorIndex()
        self._scoring: SelectorIndex[ExistingTerm] = SelectorIndex()
        table.watch_pods(self)

    def refusing(
        self, namespace: str, namespace_labels: Mapping[str, str], labels: Mapping[str, str]
    ) -> list[ExistingTerm]:
        """The required anti-affinity terms that speak of a pod with these labels."""
        return _matching(self._refusing, namespace, namespace_labels, labels)

    def scoring(
        self, namespace: str, namespace_labels: Mapping[str, str], labels: Mapping[str, str]
    ) -> list[ExistingTerm]:
        """The preferred terms, and the required affinity terms, that speak of a pod with these labels."""
        return _matching(self._scoring, namespace, namespace_labels, labels)

    # Told by the table

    def pod_added(self, row: int, info: PodInfo) -> None:
        terms = info.derived(pod_terms)
        if terms is not NO_TERMS:
            entries = self._of_pod[info.uid] = [self._entry(key) for key in _keys(terms)]
            for entry in entries:
                entry.pods.change(row, 1)

    def pod_removed(self, row: int, info: PodInfo) -> None:
        for entry in self._of_pod.pop(info.uid, ()):
            entry.pods.change(row, -1)
            if entry.pods.total == 0:
                del self._terms[entry.kind, entry.weight, entry.term]
                self._index(entry.kind).remove(entry, _named(entry.term))

    # Inside

    def _entry(self, key: tuple[Kind, int, Term]) -> ExistingTerm:
        entry = self._terms.get(key)
        if entry is None:
            entry = self._terms[key] = ExistingTerm(*key)
            self._index(entry.kind).add(entry, _named(entry.term), entry.term.selector)
        return entry

    def _index(self, kind: Kind) -> SelectorIndex[ExistingTerm]:
        return self._refusing if kind is Kind.REQUIRED_ANTI else self._scoring


def _keys(terms: PodTerms) -> Iterator[tuple[Kind, int, Term]]:
    for term in terms.required:
        yield Kind.REQUIRED, 0, term
    for term in terms.required_anti:
        yield Kind.REQUIRED_ANTI, 0, term
    for weight, term in terms.preferred:
        yield Kind.PREFERRED, weight, term
    for weight, term in terms.preferred_anti:
        yield Kind.PREFERRED_ANTI, weight, term


def _named(term: Term) -> Namespaces:
    """The namespaces a term can speak of, as far as is known without their labels."""
    return Namespaces(term.namespaces) if term.namespace_selector.never else ALL_NAMESPACES


def _matching(
    index: SelectorIndex[ExistingTerm], namespace: str, namespace_labels: Mapping[str, str], labels: Mapping[str, str]
) -> list[ExistingTerm]:
    return [
        entry
        for entry in index.candidates(namespace, labels)
        if entry.term.matches(namespace, namespace_labels, labels)
    ]
