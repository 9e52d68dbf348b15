"""One fact about each node as interned ids, brought up to date row by row."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import numpy as np

from kube_pyscheduler.columns.arrays import Ids, grown
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.vocabulary import ABSENT, Vocabulary
from kube_pyscheduler.objects.node import Node

T = TypeVar("T", bound=Hashable)


class NodeFacts(Generic[T]):
    """``ids``: int32[capacity], −1 where there is no node. Up to date after ``sync``."""

    def __init__(self, table: NodeTable, fact: Callable[[Node], T]) -> None:
        self._table = table
        self._fact = fact
        self._seen = 0
        self.vocabulary: Vocabulary[T] = Vocabulary()
        self.ids: Ids = np.full(table.capacity, ABSENT, dtype=np.int32)

    def sync(self) -> None:
        """Cost: the nodes that changed since the last time."""
        table = self._table
        if len(self.ids) != table.capacity:
            self.ids = grown(self.ids, table.capacity, ABSENT)
        rows = table.facts.since(self._seen)
        self._seen = table.facts.position
        for row in range(table.high) if rows is None else rows.tolist():
            node = table.nodes[row]
            self.ids[row] = ABSENT if node is None else self.vocabulary.intern(self._fact(node))
