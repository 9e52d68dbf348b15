"""Who asked for pods like this one? Items with selectors, found by the labels of a pod."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from kube_pyscheduler.columns.label_matcher import LabelMatcher

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Namespaces:
    """The namespaces with these names or, with ``others``, all but these, known or not."""

    names: frozenset[str]
    others: bool = False

    def __contains__(self, name: str) -> bool:
        return (name in self.names) is not self.others


ALL_NAMESPACES = Namespaces(frozenset(), others=True)

Anchor = tuple[str, str] | None
"""A label (key, value) without which a selector cannot match; None for selectors that need none."""


class SelectorIndex(Generic[T]):
    """Items by a label and a namespace that their selector needs.

    ``candidates`` costs O(labels of the pod + items that need one of these labels or none at all): items with other
    needs are never looked at.
    """

    def __init__(self) -> None:
        self._items: dict[Anchor, dict[str | None, dict[T, None]]] = {}
        self._anchors: dict[T, list[Anchor]] = {}

    def __len__(self) -> int:
        return len(self._anchors)

    def add(self, item: T, namespaces: Namespaces, selector: LabelMatcher) -> None:
        """``item`` must not be there yet; with a selector that matches nothing it is never found."""
        anchors = self._best_anchors(namespaces, selector)
        self._anchors[item] = anchors
        for anchor in anchors:
            by_namespace = self._items.setdefault(anchor, {})
            for namespace in _keys(namespaces):
                by_namespace.setdefault(namespace, {})[item] = None

    def remove(self, item: T, namespaces: Namespaces) -> None:
        """Forget an item that was added for these namespaces."""
        for anchor in self._anchors.pop(item):
            by_namespace = self._items[anchor]
            for namespace in _keys(namespaces):
                items = by_namespace[namespace]
                del items[item]
                if not items:
                    del by_namespace[namespace]
            if not by_namespace:
                del self._items[anchor]

    def candidates(self, namespace: str, labels: Mapping[str, str]) -> Iterator[T]:
        """The items that may match a pod with these labels in this namespace, each once; whether they do is left to
        ask."""
        if not self._anchors:
            return
        anchors: list[Anchor] = [None, *labels.items()]
        for anchor in anchors:
            by_namespace = self._items.get(anchor)
            if by_namespace is not None:
                yield from by_namespace.get(namespace, ())
                yield from by_namespace.get(None, ())

    def _best_anchors(self, namespaces: Namespaces, selector: LabelMatcher) -> list[Anchor]:
        """The values of one equality requirement: of the one whose values fewest items need so far."""
        if selector.never:
            return []
        best: list[Anchor] = [None]
        fewest = -1
        for key, operator, values in selector.requirements:
            if operator != "In":
                continue
            needed = sum(self._needed((key, value), namespaces) for value in values)
            if fewest < 0 or needed < fewest:
                best, fewest = [(key, value) for value in values], needed
        return best

    def _needed(self, anchor: Anchor, namespaces: Namespaces) -> int:
        """How many items of these namespaces need the label."""
        by_namespace = self._items.get(anchor)
        if by_namespace is None:
            return 0
        return sum(len(by_namespace.get(namespace, ())) for namespace in _keys(namespaces))


def _keys(namespaces: Namespaces) -> frozenset[str] | tuple[None]:
    return (None,) if namespaces.others else namespaces.names
