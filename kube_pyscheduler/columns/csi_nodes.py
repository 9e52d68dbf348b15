"""What CSI drivers tell of nodes, one interned set of facts a row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from kube_pyscheduler.columns.arrays import Ids, Rows, grown
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.vocabulary import ABSENT, LookupTable, Vocabulary
from kube_pyscheduler.objects.csi_translation import migrated_plugins
from kube_pyscheduler.objects.storage import CSINode

NO_LIMIT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class CSIFacts:
    """``drivers``: those that registered. ``limits``: (driver, volumes that may be attached) of those that limit them.
    ``migrated``: in-tree plugins whose volumes drivers handle on the node."""

    drivers: frozenset[str]
    limits: frozenset[tuple[str, int]]
    migrated: frozenset[str]

    def limit(self, driver: str) -> int | None:
        """How many volumes of the driver the node takes; None is any number."""
        return next((count for name, count in self.limits if name == driver), None)


def facts_of(csi_node: CSINode) -> CSIFacts:
    """Source: getVolumeLimits in pkg/scheduler/framework/plugins/nodevolumelimits."""
    drivers = csi_node.spec.drivers
    limits = {
        driver.name: driver.allocatable.count
        for driver in drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }
    return CSIFacts(frozenset(driver.name for driver in drivers), frozenset(limits.items()), migrated_plugins(csi_node))


def _limit(facts: CSIFacts, *, driver: str) -> int:
    known = facts.limit(driver)
    return NO_LIMIT if known is None else known


class CSINodes(Protocol):
    """CSINodes by the name of their node, as listers hold them."""

    generation: int

    def get(self, key: str) -> CSINode | None: ...

    def changed_since(self, generation: int) -> set[str] | None: ...


class CSINodeColumn:
    """``ids``: int32[capacity], −1 where the node has no CSINode. Up to date after ``sync``."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self.vocabulary: Vocabulary[CSIFacts] = Vocabulary()
        self.ids: Ids = np.full(table.capacity, ABSENT, dtype=np.int32)
        self._limits: dict[str, LookupTable[CSIFacts, np.int32]] = {}
        self._facts_seen = 0
        self._generation = 0

    def sync(self, csi_nodes: CSINodes) -> None:
        """Cost: the rows and the CSINodes that changed since the last time."""
        table = self._table
        if len(self.ids) != table.capacity:
            self.ids = grown(self.ids, table.capacity, ABSENT)
        rows = table.facts.since(self._facts_seen)
        changed = csi_nodes.changed_since(self._generation)
        self._facts_seen = table.facts.position
        self._generation = csi_nodes.generation
        if rows is None or changed is None:
            for row in range(table.high):
                self._write(row, csi_nodes)
            return
        for row in rows.tolist():
            self._write(row, csi_nodes)
        for name in changed:
            if name in table.row_of:
                self._write(table.row_of[name], csi_nodes)

    def limits(self, driver: str, rows: Rows) -> Ids:
        """int32[len(rows)]: how many volumes of the driver each node takes, NO_LIMIT for any number."""
        table = self._limits.get(driver)
        if table is None:
            table = LookupTable(self.vocabulary, partial(_limit, driver=driver), NO_LIMIT, np.int32)
            self._limits[driver] = table
        return table.take(self.ids[rows])

    def facts(self, row: int) -> CSIFacts | None:
        """What is known of the node of one row."""
        known = int(self.ids[row])
        return None if known == ABSENT else self.vocabulary.values[known]

    def _write(self, row: int, csi_nodes: CSINodes) -> None:
        name = self._table.names[row]
        csi_node = csi_nodes.get(name) if name else None
        self.ids[row] = ABSENT if csi_node is None else self.vocabulary.intern(facts_of(csi_node))
