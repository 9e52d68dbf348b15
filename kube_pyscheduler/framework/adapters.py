"""Easy plugins as kernels: one call a row."""

from __future__ import annotations

import numpy as np

from kube_pyscheduler.columns.arrays import Codes, RowIndex, Rows, Scores
from kube_pyscheduler.columns.node_info import NodeInfo
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.framework.errors import PluginError
from kube_pyscheduler.framework.interfaces import CycleContext, Filter, FilterKernel, Score, ScoreKernel
from kube_pyscheduler.framework.row_changes import UNCHANGED, RowChanges
from kube_pyscheduler.framework.status import Status

REFUSED = 1
REFUSED_IF = 2
"""Refused in a what-if: the status is another than outside."""


def live(table: NodeTable, rows: Rows) -> list[tuple[int, int]]:
    """(position in ``rows``, row) of the rows that hold a node."""
    numbers = range(*rows.indices(table.high)) if isinstance(rows, slice) else rows.tolist()
    return [(position, row) for position, row in enumerate(numbers) if table.nodes[row] is not None]


def length(table: NodeTable, rows: Rows) -> int:
    """How many rows ``rows`` selects."""
    return len(range(*rows.indices(table.high))) if isinstance(rows, slice) else len(rows)


class EasyFilterKernel(FilterKernel):
    """Cost: one Python call a row."""

    may_fail = True

    def __init__(self, plugin: Filter, ctx: CycleContext, pod: PodInfo) -> None:
        self._plugin = plugin
        self._ctx = ctx
        self._pod = pod
        self._statuses: dict[int, Status] = {}
        self._statuses_if: dict[int, Status] = {}

    def codes(self, table: NodeTable, rows: Rows) -> Codes:
        codes = np.zeros(length(table, rows), dtype=np.uint8)
        for position, row in live(table, rows):
            if self._refuses(row, table.node_info(row), self._statuses):
                codes[position] = REFUSED
        return codes

    def codes_if(self, table: NodeTable, rows: RowIndex, changes: RowChanges) -> Codes:
        codes = np.zeros(len(rows), dtype=np.uint8)
        for position, row in live(table, rows):
            change = changes.get(row, UNCHANGED)
            if self._refuses(row, table.changed_node_info(row, change.added, change.removed), self._statuses_if):
                codes[position] = REFUSED_IF
        return codes

    def explain(self, table: NodeTable, rows: RowIndex, codes: Codes) -> list[tuple[Status, RowIndex]]:
        groups: dict[Status, list[int]] = {}
        for row, code in zip(rows.tolist(), codes.tolist(), strict=True):
            status = (self._statuses if code == REFUSED else self._statuses_if)[row]
            groups.setdefault(status, []).append(row)
        return [(status, np.array(members, dtype=np.int64)) for status, members in groups.items()]

    def _refuses(self, row: int, node: NodeInfo, statuses: dict[int, Status]) -> bool:
        try:
            status = self._plugin.filter(self._ctx, self._pod.pod, node)
        except Exception as error:
            raise PluginError(self._plugin.name, "Filter", repr(error)) from error
        if status is None or status.is_success:
            return False
        statuses[row] = status
        return True


class EasyScoreKernel(ScoreKernel):
    """Cost: one Python call a row."""

    def __init__(self, plugin: Score, ctx: CycleContext, pod: PodInfo) -> None:
        self._plugin = plugin
        self._ctx = ctx
        self._pod = pod
        self.normalize = plugin.normalize

    def scores(self, table: NodeTable, rows: Rows) -> Scores:
        scores = np.zeros(length(table, rows), dtype=np.int64)
        for position, row in live(table, rows):
            try:
                scores[position] = self._plugin.score(self._ctx, self._pod.pod, table.node_info(row))
            except Exception as error:
                raise PluginError(self._plugin.name, "Score", repr(error)) from error
        return scores
