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
from kube_pyscheduler.columns.what_if import WhatIf
from kube_pyscheduler.framework.interfaces import CycleContext
from kube_pyscheduler.framework.row_changes import RowChange, RowChanges, Tally
from kube_pyscheduler.framework.status import Status, error, unresolvable
from kube_pyscheduler.plugins.default_preemption.budgets import Budgets
from kube_pyscheduler.plugins.default_preemption.candidates import Candidate

NO_VICTIMS = unresolvable("No preemption victims found for incoming pod")


class Removed(RowChanges):
    """The pods that are thought away at the moment, by row.

    ``slots`` of row ``rows[i]`` are those from ``starts[i]`` up to ``starts[i + 1]``; ``gone`` says which are away.
    """

    def __init__(self, pods: PodColumns, rows: RowIndex, starts: Ints, slots: RowIndex) -> None:
        self._pods = pods
        self._place = {row: place for place, row in enumerate(rows.tolist())}
        self._starts = starts
        self._slots = slots
        self.gone: Mask = np.ones(len(slots), dtype=np.bool_)

    def __getitem__(self, row: int) -> RowChange:
        return RowChange(removed=tuple(self._pods.info(slot) for slot in self.slots_of(self._place[row]).tolist()))

    def __iter__(self) -> Iterator[int]:
        return iter(self._place)

    def __len__(self) -> int:
        return len(self._place)

    def sums(self, rows: RowIndex, value: Callable[[PodInfo], int]) -> Ints:
        return self._tally.sums(rows, value, -self.gone.astype(np.int64))

    @cached_property
    def _tally(self) -> Tally:
        return Tally(self._pods.row[self._slots], [self._pods.info(slot) for slot in self._slots.tolist()])

    def slots_of(self, place: int) -> RowIndex:
        """The slots of one row's pods that are away, the most important first."""
        segment = slice(self._starts[place], self._starts[place + 1])
        return self._slots[segment][self.gone[segment]]


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
        place = np.full(self._ctx.table.capacity, -1, dtype=np.int64)
        place[rows] = np.arange(len(rows))
        slots = self._pods.below(self._priority, place)
        counts = np.bincount(place[self._pods.row[slots]], minlength=len(rows))
        if not counts.all():
            self.in_vain.append((NO_VICTIMS, rows[counts == 0]))
            rows, counts = rows[counts > 0], counts[counts > 0]
        if not len(rows):
            return []
        starts = np.concatenate(([0], np.cumsum(counts)))
        removed = Removed(self._pods, rows, starts, slots)
        refilter = self._ctx.refilter
        with self._ctx.table.what_if(rows) as world:
            world.remove(self._pods.charges(slots))
            fits = refilter.fits_if(rows, removed)
            if not fits.all():
                self.in_vain += refilter.refusals_if(rows[~fits], removed)
            places = np.flatnonzero(fits)
            violating = self._violating(slots, starts, places)
            self._reprieve(world, rows, places, _order(starts, violating), starts, slots, removed)
        return list(self._candidates(rows, places, removed, violating, starts))

    def _violating(self, slots: RowIndex, starts: Ints, places: RowIndex) -> Mask:
        """bool[len(slots)]: whose end would break a budget."""
        violating = np.zeros(len(slots), dtype=np.bool_)
        if self._budgets:
            for place in places.tolist():
                segment = slice(starts[place], starts[place + 1])
                victims = [self._pods.info(slot) for slot in slots[segment].tolist()]
                violating[segment] = self._budgets.violated_by(victims)
        return violating

    def _reprieve(
        self,
        world: WhatIf,
        rows: RowIndex,
        places: RowIndex,
        order: RowIndex,
        starts: Ints,
        slots: RowIndex,
        removed: Removed,
    ) -> None:
        """Bring back the pods of ``rows[places]`` that may stay, the n-th of each row in the n-th step."""
        counts = np.diff(starts)
        step = 0
        while len(places := places[counts[places] > step]):
            positions = order[starts[places] + step]
            world.add(self._pods.charges(slots[positions]))
            removed.gone[positions] = False
            refused = ~self._ctx.refilter.fits_if(rows[places], removed)
            if refused.any():
                world.remove(self._pods.charges(slots[positions[refused]]))
                removed.gone[positions[refused]] = True
            step += 1

    def _candidates(
        self, rows: RowIndex, places: RowIndex, removed: Removed, violating: Mask, starts: Ints
    ) -> Iterator[Candidate]:
        for place in places.tolist():
            node = self._ctx.table.names[rows[place]]
            slots = removed.slots_of(place)
            if not len(slots):
                status = error(f'expected at least one victim pod on node "{node}"')
                self.in_vain.append((status, rows[place : place + 1]))
                continue
            segment = slice(starts[place], starts[place + 1])
            yield Candidate(
                node=node,
                victims=tuple(self._pods.info(slot) for slot in slots.tolist()),
                violations=int(np.count_nonzero(removed.gone[segment] & violating[segment])),
                started=self._pods.start.item(slots[0]),
            )


def _order(starts: Ints, violating: Mask) -> RowIndex:
    """The positions of all victims as they may come back: on each row those whose end would break a budget first."""
    if not violating.any():
        return np.arange(len(violating))
    row = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return np.lexsort((~violating, row))
