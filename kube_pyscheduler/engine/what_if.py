"""Filters asked again with other pods on a node: the nominated ones, and those that a preemption would remove.

Source: RunFilterPluginsWithNominatedPods in pkg/scheduler/framework/runtime/framework.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from kube_pyscheduler.columns.arrays import Ints, Mask, RowIndex
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.engine.filtering import Filters, Refusals
from kube_pyscheduler.engine.nominated import Guests
from kube_pyscheduler.framework.row_changes import NO_CHANGES, UNCHANGED, RowChange, RowChanges
from kube_pyscheduler.framework.status import Status, error


class WithGuests(RowChanges):
    """``changes``, and the guests come too. Made row by row when asked."""

    def __init__(self, changes: RowChanges, guests: Guests) -> None:
        self._changes = changes
        self._guests = guests.changes

    def __getitem__(self, row: int) -> RowChange:
        change = self._changes.get(row, UNCHANGED)
        return RowChange((*change.added, *self._guests.get(row, UNCHANGED).added), change.removed)

    def __iter__(self) -> Iterator[int]:
        return iter(self._changes.keys() | self._guests.keys())

    def __len__(self) -> int:
        return len(self._changes.keys() | self._guests.keys())

    def sums(self, rows: RowIndex, value: Callable[[PodInfo], int]) -> Ints:
        return self._changes.sums(rows, value) + self._guests.sums(rows, value)


class NominatedRefilter:
    """A Refilter: nodes with guests must let the pod pass with and without them."""

    def __init__(self, table: NodeTable, filters: Filters, guests: Guests | None) -> None:
        self._table = table
        self._filters = filters
        self._guests = guests

    def fits_if(self, rows: RowIndex, changes: RowChanges) -> Mask:
        fits = self._filters.fit_if(rows, changes)
        hosting = np.flatnonzero(fits & self._has_guests(rows))
        if len(hosting):
            fits[hosting] = self.fit_beside(rows[hosting], changes)
        return fits

    def refusals_if(self, rows: RowIndex, changes: RowChanges) -> Refusals:
        found: Refusals = []
        hosting = self._has_guests(rows)
        if hosting.any():
            found = self.refusals_beside(rows[hosting], changes)
            for _status, refused in found:
                rows = rows[~np.isin(rows, refused)]
        return [(failure(status), those) for status, those in (*found, *self._filters.refusals_if(rows, changes))]

    def fit_beside(self, rows: RowIndex, changes: RowChanges = NO_CHANGES) -> Mask:
        """bool[len(rows)]: which of these rows, all with guests, fit with them."""
        assert self._guests is not None
        with self._table.what_if(rows) as change:
            change.add(self._guests.charges_on(rows))
            return self._filters.fit_if(rows, self._with_guests(changes))

    def refusals_beside(self, rows: RowIndex, changes: RowChanges = NO_CHANGES) -> Refusals:
        """The refusals of these rows, all with guests, with them."""
        assert self._guests is not None
        with self._table.what_if(rows) as change:
            change.add(self._guests.charges_on(rows))
            return self._filters.refusals_if(rows, self._with_guests(changes))

    def _with_guests(self, changes: RowChanges) -> RowChanges:
        assert self._guests is not None
        return WithGuests(changes, self._guests) if changes else self._guests.changes

    def _has_guests(self, rows: RowIndex) -> Mask:
        if self._guests is None:
            return np.zeros(len(rows), dtype=np.bool_)
        return self._guests.place[rows] >= 0


def failure(status: Status) -> Status:
    """How the attempt ends where a filter's answer is no refusal but an error."""
    if status.is_rejected:
        return status
    return error(f'running "{status.plugin}" filter plugin: {status.message}').by(status.plugin)
