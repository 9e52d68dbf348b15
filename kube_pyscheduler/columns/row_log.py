"""Which rows were written since a reader last looked."""

from __future__ import annotations

import numpy as np

from kube_pyscheduler.columns.arrays import RowIndex

KEEP = 8192
"""Entries kept at least; a reader that is further behind is told to look at everything."""


class RowLog:
    """An append-only log of row numbers with a moving start. A position is a count of entries since the beginning."""

    __slots__ = ("_entries", "_start")

    def __init__(self) -> None:
        self._entries: list[int] = []
        self._start = 0

    @property
    def position(self) -> int:
        """Where a reader stands that has seen everything."""
        return self._start + len(self._entries)

    def append(self, row: int) -> None:
        self._entries.append(row)
        if len(self._entries) > 2 * KEEP:
            del self._entries[:KEEP]
            self._start += KEEP

    def since(self, position: int) -> RowIndex | None:
        """The distinct rows written after ``position``; None if that is too long ago to tell."""
        if position < self._start:
            return None
        fresh = self._entries[position - self._start :]
        return np.array(fresh if len(fresh) < 2 else sorted(set(fresh)), dtype=np.int64)
