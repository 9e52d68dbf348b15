"""Pods thought onto rows or away from them, many rows at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kube_pyscheduler.columns.arrays import Ints, RowIndex
from kube_pyscheduler.columns.pod_info import HostPort, PodInfo
from kube_pyscheduler.columns.vocabulary import Vocabulary

if TYPE_CHECKING:
    from kube_pyscheduler.columns.node_table import NodeTable


@dataclass(frozen=True, slots=True)
class Charges:
    """What some pods take of their rows, summed up by row.

    ``rows``: int64[k], distinct. ``requested``: int64[r, k], the first r resources of the table. ``non_zero``:
    int64[2, k], see ``NodeTable.nonzero_requested``. ``count``: int64[k] pods. ``ports``: (row, host ports) of each
    pod that has some.
    """

    rows: RowIndex
    requested: Ints
    non_zero: Ints
    count: Ints
    ports: tuple[tuple[int, tuple[HostPort, ...]], ...] = ()


def charges_of(pods: Sequence[tuple[int, Sequence[PodInfo]]], resources: Vocabulary[str]) -> Charges:
    """The charges of pods given as (row, pods) pairs with distinct rows. O(pods)."""
    columns = [[info.demand.columns(resources) for info in infos] for _row, infos in pods]
    requested = np.zeros((len(resources), len(pods)), dtype=np.int64)
    non_zero = np.zeros((2, len(pods)), dtype=np.int64)
    ports = []
    for place, (row, infos) in enumerate(pods):
        for info, amounts in zip(infos, columns[place], strict=True):
            for resource, amount in amounts.items():
                requested[resource, place] += amount
            cpu, memory = info.demand.non_zero
            non_zero[0, place] += cpu
            non_zero[1, place] += memory
            if info.host_ports:
                ports.append((row, info.host_ports))
    return Charges(
        rows=np.array([row for row, _infos in pods], dtype=np.int64),
        requested=requested,
        non_zero=non_zero,
        count=np.array([len(infos) for _row, infos in pods], dtype=np.int64),
        ports=tuple(ports),
    )


class WhatIf:
    """Usage columns of some rows, changed for a moment. ``table.pods`` stays as it is, and nobody is told.

    A host port that two pods of a row share, as pods that were not scheduled may, is free once one of them is removed.
    """

    def __init__(self, table: NodeTable, rows: RowIndex) -> None:
        self._table = table
        self._rows = rows
        self._requested = table.requested[:, rows]
        self._non_zero = table.nonzero_requested[:, rows]
        self._count = table.pod_count[rows]
        self._ports: list[tuple[int, HostPort, int]] = []
        """(row, port, by how much its uses grew), in the order of the changes."""

    def add(self, charges: Charges) -> None:
        """As if these pods were there. Their rows must be among those of this what-if."""
        self._change(charges, 1)
        for row, ports in charges.ports:
            self._table.host_ports.change(row, ports, 1)
            self._ports += [(row, port, 1) for port in ports]

    def remove(self, charges: Charges) -> None:
        """As if these pods were gone."""
        self._change(charges, -1)
        for row, ports in charges.ports:
            freed = self._table.host_ports.take_away(row, ports)
            self._ports += [(row, port, -uses) for port, uses in freed]

    def undo(self) -> None:
        """Back to how things are."""
        table, rows = self._table, self._rows
        table.requested[: len(self._requested), rows] = self._requested
        table.nonzero_requested[:, rows] = self._non_zero
        table.pod_count[rows] = self._count
        for row, port, grown in reversed(self._ports):
            table.host_ports.change(row, (port,), -grown)
        self._ports.clear()

    def _change(self, charges: Charges, sign: int) -> None:
        table, rows = self._table, charges.rows
        table.requested[: len(charges.requested), rows] += sign * charges.requested
        table.nonzero_requested[:, rows] += sign * charges.non_zero
        table.pod_count[rows] += sign * charges.count
