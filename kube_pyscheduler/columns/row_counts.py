"""Counts by row, for facts that most rows do not have."""

from __future__ import annotations

import numpy as np

from kube_pyscheduler.columns.arrays import Ints, RowIndex

INITIAL = 4


class RowCounts:
    """A sparse column of counts ≥ 0. Changing one costs O(1); memory is O(rows with a count)."""

    __slots__ = ("_counts", "_place", "_rows", "total")

    def __init__(self) -> None:
        self.total = 0
        """Sum of all counts."""
        self._rows: RowIndex = np.empty(INITIAL, dtype=np.int64)
        self._counts: Ints = np.empty(INITIAL, dtype=np.int64)
        self._place: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._place)

    @property
    def rows(self) -> RowIndex:
        """The rows that have a count, in no order. Valid until the next change."""
        return self._rows[: len(self._place)]

    @property
    def counts(self) -> Ints:
        """The counts of ``rows``, all > 0. Valid until the next change."""
        return self._counts[: len(self._place)]

    def change(self, row: int, amount: int) -> None:
        """Add ``amount``, which may be negative, to the count of a row."""
        self.total += amount
        place = self._place.get(row)
        if place is None:
            self._append(row, amount)
            return
        count = self._counts.item(place) + amount
        self._counts[place] = count
        if count == 0:
            self._drop(row, place)

    def _append(self, row: int, amount: int) -> None:
        place = len(self._place)
        if place == len(self._rows):
            self._rows = np.concatenate((self._rows, self._rows))
            self._counts = np.concatenate((self._counts, self._counts))
        self._rows[place] = row
        self._counts[place] = amount
        self._place[row] = place

    def _drop(self, row: int, place: int) -> None:
        """Close the gap with the last entry."""
        del self._place[row]
        last = len(self._place)
        if place != last:
            moved = self._rows.item(last)
            self._rows[place] = moved
            self._counts[place] = self._counts[last]
            self._place[moved] = place
