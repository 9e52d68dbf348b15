"""Pods that were promised nodes, as they count for others: thought onto a node while that node is judged."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kube_pyscheduler.columns.arrays import RowIndex
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.columns.what_if import Charges, charges_of
from kube_pyscheduler.framework.handle import Nominator
from kube_pyscheduler.framework.row_changes import RowChange, StatedChanges


@dataclass(frozen=True, slots=True)
class Guests:
    """Nominated pods by row. ``place``: int64[capacity], where a row is in ``charges``, or −1. ``changes``: the same
    pods for kernels."""

    charges: Charges
    place: RowIndex
    changes: StatedChanges

    @property
    def rows(self) -> RowIndex:
        return self.charges.rows

    def charges_on(self, rows: RowIndex) -> Charges:
        """What they take of some of their rows."""
        whole = self.charges
        if len(rows) == len(whole.rows):
            return whole
        places = self.place[rows]
        among = set(rows.tolist()) if whole.ports else ()
        return Charges(
            rows=rows,
            requested=whole.requested[:, places],
            non_zero=whole.non_zero[:, places],
            count=whole.count[places],
            ports=tuple(held for held in whole.ports if held[0] in among),
        )


class NominatedPods:
    """The promises of one nominator over one table. What was worked out is kept until promises or their nodes change:
    O(nominated pods) then, O(1) otherwise."""

    def __init__(self, table: NodeTable, nominator: Nominator) -> None:
        self._table = table
        self._nominator = nominator
        self._generation = -1
        self._facts_seen = 0
        self._layout = -1
        self._by_row: dict[int, list[PodInfo]] = {}
        self._absent: set[str] = set()
        self._row_of: dict[str, int] = {}
        self._priorities: list[int] = []
        self._guests: dict[int, Guests] = {}

    def beside(self, pod: PodInfo) -> Guests | None:
        """Those that count for a pod: of its priority or more, other than itself. None if there are none.

        Source: addGENominatedPods in pkg/scheduler/framework/runtime/framework.go.
        """
        if not self._is_current():
            self._read()
        # The least priority among them that is high enough: many priorities of pods share one answer.
        index = bisect.bisect_left(self._priorities, pod.pod.priority)
        if index == len(self._priorities):
            return None
        least = self._priorities[index]
        guests = self._guests.get(least)
        if guests is None:
            guests = self._guests[least] = self._make(
                [(row, kept) for row, infos in self._by_row.items() if (kept := _at_least(infos, least))]
            )
        own_row = self._row_of.get(pod.uid)
        if own_row is None or own_row not in guests.changes:
            return guests
        return self._without(guests, pod.uid, own_row)

    def _is_current(self) -> bool:
        table = self._table
        if self._generation != self._nominator.generation or self._layout != table.layout:
            return False
        if self._facts_seen == table.facts.position:
            return True
        rows = table.facts.since(self._facts_seen)
        if rows is None or any(row in self._by_row or table.names[row] in self._absent for row in rows.tolist()):
            return False
        self._facts_seen = table.facts.position
        return True

    def _read(self) -> None:
        table = self._table
        self._generation = self._nominator.generation
        self._facts_seen = table.facts.position
        self._layout = table.layout
        self._by_row.clear()
        self._absent.clear()
        self._row_of.clear()
        self._guests.clear()
        priorities: set[int] = set()
        for name in self._nominator.nodes():
            row = table.row_of.get(name)
            if row is None or table.nodes[row] is None:
                self._absent.add(name)
                continue
            infos = self._by_row[row] = self._nominator.nominated_on(name)
            for info in infos:
                self._row_of[info.uid] = row
                priorities.add(info.pod.priority)
        self._priorities = sorted(priorities)

    def _make(self, pods: list[tuple[int, list[PodInfo]]]) -> Guests:
        charges = charges_of(pods, self._table.resources)
        place = np.full(self._table.capacity, -1, dtype=np.int64)
        place[charges.rows] = np.arange(len(charges.rows))
        changes = StatedChanges({row: RowChange(added=tuple(infos)) for row, infos in pods})
        return Guests(charges, place, changes)

    def _without(self, guests: Guests, uid: str, row: int) -> Guests:
        """The same without one of them. Its row stays, perhaps with nobody on it."""
        others = tuple(info for info in guests.changes[row].added if info.uid != uid)
        whole, single = guests.charges, charges_of([(row, others)], self._table.resources)
        place = guests.place[row]
        requested, non_zero, count = whole.requested.copy(), whole.non_zero.copy(), whole.count.copy()
        requested[:, place] = single.requested[: len(requested), 0]
        non_zero[:, place] = single.non_zero[:, 0]
        count[place] = len(others)
        ports = (*(held for held in whole.ports if held[0] != row), *single.ports)
        charges = Charges(whole.rows, requested, non_zero, count, ports)
        changes = StatedChanges({**guests.changes, row: RowChange(added=others)})
        return Guests(charges, guests.place, changes)


def _at_least(infos: Sequence[PodInfo], priority: int) -> list[PodInfo]:
    return [info for info in infos if info.pod.priority >= priority]
