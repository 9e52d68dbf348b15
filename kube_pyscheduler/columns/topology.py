"""Topology domains: which nodes share the value of a label.

Domains are small numbers that start at 1; 0 is "nowhere": no such label, or no node. A domain that lost its last node
is used again for the next new value, so a cluster whose nodes come and go under new names does not outgrow itself.
"""

from __future__ import annotations

import numpy as np

from kube_pyscheduler.columns.arrays import Floats, Mask, RowIndex, grown
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.row_counts import RowCounts
from kube_pyscheduler.columns.vocabulary import ABSENT

NOWHERE = 0


class Topology:
    """The domains of one label key.

    ``domain``: int64[capacity]. ``size``: domains are below it. ``inside``: how many nodes are in a domain.
    ``version`` grows when any row's domain changes. ``absent_is_empty``: nodes without the label count as having the
    empty value.
    """

    def __init__(self, table: NodeTable, key: str, *, absent_is_empty: bool) -> None:
        self.version = 0
        self.size = 1
        self.inside = 0
        self._column = table.label_column(key)
        self._absent = self._column.vocabulary.intern("") if absent_is_empty else ABSENT
        self._domain_of: dict[int, int] = {}
        self._values = [ABSENT]
        self._members = [0]
        self._free: list[int] = []
        self._seen = table.facts.position
        self.domain: RowIndex = np.zeros(table.capacity, dtype=np.int64)
        self._move(table, range(table.high))

    @property
    def domain_count(self) -> int:
        """How many domains have a node."""
        return len(self._domain_of)

    def sync(self, table: NodeTable) -> None:
        """Take notice of all nodes that changed. O(changed rows)."""
        if len(self.domain) != table.capacity:
            self.domain = grown(self.domain, table.capacity)
        if self._seen == table.facts.position:
            return
        rows = table.facts.since(self._seen)
        self._seen = table.facts.position
        self._move(table, range(table.high) if rows is None else rows.tolist())

    def sums(self, counts: RowCounts, eligible: Mask | None = None) -> Floats:
        """float64[size]: the counts summed by domain, of eligible rows (bool[capacity]) alone where these are given;
        what is nowhere is at 0. O(rows with a count + domains)."""
        rows = counts.rows
        weights = counts.counts if eligible is None else counts.counts * eligible[rows]
        sums: Floats = np.bincount(self.domain[rows], weights, self.size).astype(np.float64, copy=False)
        return sums

    def _move(self, table: NodeTable, rows: range | list[int]) -> None:
        changed = False
        ids, alive, domain = self._column.ids, table.alive, self.domain
        for row in rows:
            value = ids.item(row)
            if value == ABSENT and alive.item(row):
                value = self._absent
            before = domain.item(row)
            if self._values[before] != value:
                self._leave(before)
                domain[row] = self._enter(value)
                changed = True
        if changed:
            self.version += 1

    def _leave(self, domain: int) -> None:
        if domain == NOWHERE:
            return
        self.inside -= 1
        self._members[domain] -= 1
        if self._members[domain] == 0:
            del self._domain_of[self._values[domain]]
            self._values[domain] = ABSENT
            self._free.append(domain)

    def _enter(self, value: int) -> int:
        if value == ABSENT:
            return NOWHERE
        domain = self._domain_of.get(value)
        if domain is None:
            if self._free:
                domain = self._free.pop()
            else:
                domain = self.size
                self.size += 1
                self._values.append(ABSENT)
                self._members.append(0)
            self._values[domain] = value
            self._domain_of[value] = domain
        self.inside += 1
        self._members[domain] += 1
        return domain


class Topologies:
    """The topologies that somebody asked for; get it with ``table.attached(Topologies)``."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._known: dict[tuple[str, bool], Topology] = {}

    def get(self, key: str, *, absent_is_empty: bool = False) -> Topology:
        """The topology of a label key, up to date. O(nodes) the first time."""
        topology = self._known.get((key, absent_is_empty))
        if topology is None:
            topology = Topology(self._table, key, absent_is_empty=absent_is_empty)
            self._known[key, absent_is_empty] = topology
        else:
            topology.sync(self._table)
        return topology
