"""Which nodes a volume, a storage class or a capacity object is for, as lookups in label columns."""

from __future__ import annotations

from kube_pyscheduler.columns.arrays import Mask, Rows
from kube_pyscheduler.columns.node_selector import SelectorMatcher
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.objects.selectors import (
    LabelSelector,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from kube_pyscheduler.objects.storage import PersistentVolume, TopologySelectorTerm

KEEP = 4096
"""Matchers kept at most; then all are made anew."""

_ANYWHERE = NodeSelectorTerm((NodeSelectorRequirement("metadata.name", "DoesNotExist"),))
"""A term that every node matches, as no label can have this key and mean it."""


class Matchers:
    """Selectors with what is made of them once."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._matchers: dict[NodeSelector, SelectorMatcher] = {}

    def mask(self, selector: NodeSelector, rows: Rows) -> Mask:
        """bool[len(rows)]: nodes that match."""
        matcher = self._matchers.get(selector)
        if matcher is None:
            if len(self._matchers) >= KEEP:
                self._matchers.clear()
            matcher = self._matchers[selector] = SelectorMatcher(self._table, selector)
        return matcher.mask(self._table, rows)


def affinity_of(volume: PersistentVolume) -> NodeSelector | None:
    """The nodes a volume can be reached from; None is all.

    Fields are matched as if nodes had no name, which is how upstream asks. Source: CheckNodeAffinity in
    component-helpers/storage/volume/helpers.go.
    """
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return None
    required = affinity.required
    if not any(term.match_fields for term in required.node_selector_terms):
        return required
    return NodeSelector(tuple(_without_fields(term) for term in required.node_selector_terms))


def _without_fields(term: NodeSelectorTerm) -> NodeSelectorTerm:
    if not term.match_fields:
        return term
    if term.problems() or not all(requirement.matches_field({}) for requirement in term.match_fields):
        return NodeSelectorTerm()
    return NodeSelectorTerm(term.match_expressions) if term.match_expressions else _ANYWHERE


def one_label(selector: NodeSelector) -> tuple[str, frozenset[str]] | None:
    """(key, values) where the selector asks for one of some values of a single label, and for nothing else."""
    keys: set[str] = set()
    values: set[str] = set()
    for term in selector.node_selector_terms:
        if len(term.match_expressions) != 1 or term.match_fields or term.problems():
            return None
        requirement = term.match_expressions[0]
        if requirement.operator != "In":
            return None
        keys.add(requirement.key)
        values.update(requirement.values)
    return (keys.pop(), frozenset(values)) if len(keys) == 1 else None


def label_keys(selector: NodeSelector | None) -> frozenset[str]:
    """The labels that the selector looks at."""
    return selector.label_keys() if selector is not None else frozenset()


def allowed_nodes(terms: tuple[TopologySelectorTerm, ...]) -> NodeSelector | None:
    """``allowedTopologies`` of a class; None is all nodes. Source: MatchTopologySelectorTerms."""
    if not terms:
        return None
    return NodeSelector(
        tuple(
            NodeSelectorTerm(
                tuple(NodeSelectorRequirement(r.key, "In", r.values) for r in term.match_label_expressions)
            )
            for term in terms
        )
    )


def labelled_nodes(selector: LabelSelector) -> NodeSelector:
    """A label selector over nodes."""
    if selector.problem():
        return NodeSelector()
    if selector.is_empty:
        return NodeSelector((_ANYWHERE,))
    requirements = [NodeSelectorRequirement(key, "In", (value,)) for key, value in selector.match_labels.items()]
    requirements += [NodeSelectorRequirement(r.key, r.operator, r.values) for r in selector.match_expressions]
    return NodeSelector((NodeSelectorTerm(tuple(requirements)),))
