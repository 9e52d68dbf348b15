"""Which namespaces a term of an incoming pod means, and what labels a namespace has."""

from __future__ import annotations

from collections.abc import Mapping

from kube_pyscheduler.columns.label_matcher import LabelMatcher
from kube_pyscheduler.columns.selector_index import ALL_NAMESPACES, Namespaces
from kube_pyscheduler.framework.listers import Lister, Listers
from kube_pyscheduler.objects.group import Namespace
from kube_pyscheduler.plugins.inter_pod_affinity.terms import Term

KEEP = 8192
"""Selectors remembered at most; when there are more, all are forgotten."""


class NamespaceNames:
    """Remembers which namespaces a selector selects, until some namespace changes."""

    def __init__(self) -> None:
        self._seen: tuple[Lister[Namespace] | None, int] = (None, 0)
        self._meant: dict[tuple[frozenset[str], LabelMatcher], Namespaces] = {}

    def meant(self, term: Term, listers: Listers) -> Namespaces:
        """The namespaces that the term names and those that its selector selects. One that is not known has no labels,
        so selectors that want a label absent select it.

        v1.36 lets such selectors (NotIn, DoesNotExist) select every namespace, whatever its labels. This follows the
        API's documentation instead. Source: mergeAffinityTermNamespacesIfNotEmpty.
        """
        selector = term.namespace_selector
        if selector.is_everything:
            return ALL_NAMESPACES
        namespaces = listers.namespaces
        if self._seen != (namespaces, namespaces.generation) or len(self._meant) > KEEP:
            self._seen = namespaces, namespaces.generation
            self._meant.clear()
        key = term.namespaces, selector
        meant = self._meant.get(key)
        if meant is None:
            meant = self._meant[key] = _meant(term, namespaces)
        return meant


def _meant(term: Term, namespaces: Lister[Namespace]) -> Namespaces:
    selector = term.namespace_selector
    if selector.matches({}):
        refused = {item.name for item in namespaces if not selector.matches(item.metadata.labels)}
        return Namespaces(frozenset(refused - term.namespaces), others=True)
    selected = [] if selector.never else [n.name for n in namespaces if selector.matches(n.metadata.labels)]
    return Namespaces(term.namespaces.union(selected))


def namespace_labels(namespace: str, listers: Listers) -> Mapping[str, str]:
    """The labels of a namespace; none if it is not known."""
    known = listers.namespaces.get(namespace)
    return known.metadata.labels if known is not None else {}
