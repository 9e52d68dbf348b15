"""Who would have to leave a node, for many nodes at once.

On every node all pods of lower priority are thought away in one step. Where the pod fits then, they come back one by
one, on all these nodes at the same time: first those that a budget would keep, the more important before the less.
Who cannot come back is a victim. A node's pods are gone only while that node is judged.

Source: SelectVictimsOnNode in pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np

from kube_pyscheduler.columns.arrays import Ints, Mask, RowIndex
from kube_pyscheduler.columns.pod_columns import PodColumns
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.columns.what_if import Charges, WhatIf
from kube_pyscheduler.framework.interfaces import CycleContext
from kube_pyscheduler.framework.row_changes import RowChange, RowChanges, Tally
from kube_pyscheduler.framework.status import Status, error, unresolvable
from kube_pyscheduler.plugins.default_preemption.budgets import Budgets
from kube_pyscheduler.plugins.default_preemption.candidates import Candidate

NO_VICTIMS = unresolvable("No preemption victims found for incoming pod")


class Batch(RowChanges):
    """Rows under trial, and their pods of lower priority: which of them are thought away at the moment.

    ``rows``: int64[k]. ``slots``: the pods, those of one row together, the more important first. ``gone`` and
    ``violating``: bool[pods], who is away, and whose end would break a budget.
    """

    def __init__(self, pods: PodColumns, rows: RowIndex, counts: Ints, slots: RowIndex) -> None:
        self._pods = pods
        self.rows = rows
        self.counts = counts
        self.slots = slots
        self.starts: Ints = np.concatenate(([0], np.cumsum(counts)))
        self.gone: Mask = np.ones(len(slots), dtype=np.bool_)
        self.violating: Mask = np.zeros(len(slots), dtype=np.bool_)
        self._place = {row: place for place, row in enumerate(rows.tolist())}

    def pods_of(self, place: int) -> slice:
        """Where in ``slots`` the pods of ``rows[place]`` are."""
        return slice(self.starts[place], self.starts[place + 1])

    def charges(self, positions: RowIndex) -> Charges:
        """What some of ``slots`` take, those of one row together."""
        return self._pods.charges(self.slots[positions])

    def infos(self, slots: RowIndex) -> tuple[PodInfo, ...]:
        """The pods in some slots."""
        return tuple([self._pods.info(slot) for slot in slots.tolist()])

    def __getitem__(self, row: int) -> RowChange:
        pods = self.pods_of(self._place[row])
        return RowChange(removed=self.infos(self.slots[pods][self.gone[pods]]))

    def __iter__(self) -> Iterator[int]:
        return iter(self._place)

    def __len__(self) -> int:
        return len(self._place)

    def sums(self, rows: RowIndex, value: Callable[[PodInfo], int]) -> Ints:
        return self._tally.sums(rows, value, -self.gone.astype(np.int64))

    @cached_property
    def _tally(self) -> Tally:
        return Tally(self._pods.row[self.slots], self.infos(self.slots))

    def in_order_of_return(self) -> RowIndex:
        """Positions in ``slots``: on each row those whose end would break a budget first."""
        if not self.violating.any():
            return np.arange(len(self.slots))
        return np.lexsort((~self.violating, np.repeat(np.arange(len(self.rows)), self.counts)))


class DryRun:
    """Tries nodes for one pod. ``in_vain``: the nodes where preemption does not help, with what they answered."""

    def __init__(self, ctx: CycleContext, pod: PodInfo, budgets: Budgets) -> None:
        self._ctx = ctx
        self._priority = pod.pod.priority
        self._budgets = budgets
        self._pods = ctx.table.attached(PodColumns)
        self.in_vain: list[tuple[Status, RowIndex]] = []

    def try_rows(self, rows: RowIndex) -> list[Candidate]:
        """Candidates among these live rows, in their order. With k rows: O(pods of the cluster) in array steps, and
        as many calls of the filters as a row has pods at most."""
        table, refilter = self._ctx.table, self._ctx.refilter
        place = np.full(table.capacity, -1, dtype=np.int64)
        place[rows] = np.arange(len(rows))
        slots = self._pods.below(self._priority, place)
        counts = np.bincount(place[self._pods.row[slots]], minlength=len(rows))
        if not counts.all():
            self.in_vain.append((NO_VICTIMS, rows[counts == 0]))
            rows, counts = rows[counts > 0], counts[counts > 0]
        if not len(rows):
            return []
        batch = Batch(self._pods, rows, counts, slots)
        with table.what_if(rows) as world:
            world.remove(self._pods.charges(slots))
            fits = refilter.fits_if(rows, batch)
            if not fits.all():
                self.in_vain += refilter.refusals_if(rows[~fits], batch)
            places = np.flatnonzero(fits)
            self._mark_violating(batch, places)
            self._reprieve(world, batch, places)
        return list(self._candidates(batch, places))

    def _mark_violating(self, batch: Batch, places: RowIndex) -> None:
        if self._budgets:
            for place in places.tolist():
                pods = batch.pods_of(place)
                batch.violating[pods] = self._budgets.violated_by(batch.infos(batch.slots[pods]))

    def _reprieve(self, world: WhatIf, batch: Batch, places: RowIndex) -> None:
        """Bring back the pods of these rows that may stay, the n-th of each row in the n-th step."""
        order = batch.in_order_of_return()
        step = 0
        while len(places := places[batch.counts[places] > step]):
            positions = order[batch.starts[places] + step]
            world.add(batch.charges(positions))
            batch.gone[positions] = False
            leaving = positions[~self._ctx.refilter.fits_if(batch.rows[places], batch)]
            if len(leaving):
                world.remove(batch.charges(leaving))
                batch.gone[leaving] = True
            step += 1

    def _candidates(self, batch: Batch, places: RowIndex) -> Iterator[Candidate]:
        for place in places.tolist():
            pods = batch.pods_of(place)
            gone = batch.gone[pods]
            slots = batch.slots[pods][gone]
            node = self._ctx.table.names[batch.rows[place]]
            if not len(slots):
                status = error(f'expected at least one victim pod on node "{node}"')
                self.in_vain.append((status, batch.rows[place : place + 1]))
                continue
            violations = int(np.count_nonzero(batch.violating[pods][gone]))
            yield Candidate(node, batch.infos(slots), violations, self._pods.start.item(slots[0]))
