"""One of several best nodes after the other, as kube-scheduler chose up to 1.15.

Source: selectHost in plugin/pkg/scheduler/core/generic_scheduler.go of 1.9.
"""

from __future__ import annotations

import numpy as np

from kube_pyscheduler.columns.arrays import RowIndex
from kube_pyscheduler.columns.node_table import NodeTable


class Turns:
    """Counts how often it was asked, for all pods together; each time the next of the best nodes is taken, by their
    names from the last to the first."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._turn = 0
        self._names: list[str] = []
        self._place: RowIndex = np.zeros(0, dtype=np.int64)

    def choose(self, best: RowIndex) -> int:
        """One of these rows. O(rows), and O(nodes × log nodes) after nodes came or went."""
        self._sync()
        ordered = best[np.argsort(self._place[best])]
        row = int(ordered[self._turn % len(ordered)])
        self._turn += 1
        return row

    def _sync(self) -> None:
        names = self._table.names
        if names == self._names:
            return
        self._names = list(names)
        order = sorted(range(len(names)), key=names.__getitem__, reverse=True)
        self._place = np.empty(len(names), dtype=np.int64)
        self._place[order] = np.arange(len(names))
