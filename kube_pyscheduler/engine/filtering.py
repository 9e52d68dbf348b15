"""The filters of one attempt: the kept answers of node-scoped plugins, and fresh kernels of the others."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from kube_pyscheduler.columns.arrays import Codes, Mask, RowIndex
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.engine.compiled import Compiled, is_node_scoped
from kube_pyscheduler.framework.adapters import EasyFilterKernel
from kube_pyscheduler.framework.interfaces import CycleContext, Filter, FilterKernel, NodeFilter
from kube_pyscheduler.framework.profile import Profile
from kube_pyscheduler.framework.row_changes import RowChanges
from kube_pyscheduler.framework.status import Status, combined

Refusals = list[tuple[Status, RowIndex]]
"""Statuses, each with the rows it was given for."""


class FilterRun:
    """A filter plugin at work on one pod: its kernel and, once asked, its codes for all rows."""

    __slots__ = ("_codes", "_ctx", "kernel", "plugin")

    def __init__(self, plugin: str, kernel: FilterKernel, ctx: CycleContext, codes: Codes | None = None) -> None:
        self.plugin = plugin
        self.kernel = kernel
        self._ctx = ctx
        self._codes = codes

    @property
    def codes(self) -> Codes:
        """uint8[high]."""
        table = self._ctx.table
        if self._codes is None:
            self._codes = self.kernel.codes(table, table.all_rows)
        return self._codes[: table.high]

    def codes_of(self, rows: RowIndex) -> Codes:
        """uint8[len(rows)]: as ``codes``, without asking for more."""
        return self.kernel.codes(self._ctx.table, rows) if self._codes is None else self._codes[rows]

    def codes_if(self, rows: RowIndex, changes: RowChanges) -> Codes:
        """uint8[len(rows)] in a world that is changed like that."""
        if not self.kernel.reads_usage:
            return self.codes_of(rows)
        return self.kernel.codes_if(self._ctx.table, rows, changes)

    def explain(self, rows: RowIndex, codes: Codes) -> Refusals:
        """The statuses of refused rows, signed."""
        return [(status.by(self.plugin), those) for status, those in self.kernel.explain(self._ctx.table, rows, codes)]


class Filters:
    """``skipped``: plugins whose PreFilter said Skip. ``kept``: bool[capacity], live rows that all node-scoped plugins
    let pass. ``fresh``: the other plugins."""

    def __init__(
        self, profile: Profile, ctx: CycleContext, pod: PodInfo, compiled: Compiled, skipped: Collection[str]
    ) -> None:
        self._names = [plugin.name for plugin in profile.filter]
        self._checks_all = profile.checks_all
        self._ctx = ctx
        self._slots = compiled.node_scoped.filters
        self._all: list[FilterRun] | None = None
        self.kept: Mask = compiled.node_scoped.fits
        self.fresh: list[FilterRun] = []
        for plugin in profile.filter:
            if plugin.name in skipped or is_node_scoped(plugin):
                continue
            kernel: FilterKernel | None
            if isinstance(plugin, NodeFilter):
                kernel = plugin.filter_kernel(ctx, pod)
            else:
                assert isinstance(plugin, Filter)
                kernel = EasyFilterKernel(plugin, ctx, pod)
            if kernel is not None:
                self.fresh.append(FilterRun(plugin.name, kernel, ctx))

    @property
    def in_order(self) -> list[FilterRun]:
        """All filters of this pod in the profile's order."""
        if self._all is None:
            kept = [FilterRun(self._names[slot.position], slot.kernel, self._ctx, slot.codes) for slot in self._slots]
            self._all = sorted((*kept, *self.fresh), key=lambda run: self._names.index(run.plugin))
        return self._all

    @property
    def may_fail(self) -> bool:
        """Whether a refusal may be an error."""
        return any(run.kernel.may_fail for run in self.fresh)

    def fit(self, rows: RowIndex) -> Mask:
        """bool[len(rows)]: which of these rows pass all filters."""
        fits = self.kept[rows]
        for run in self.fresh:
            fits = fits & (run.codes_of(rows) == 0)
        return fits

    def refusals(self, rows: RowIndex) -> Refusals:
        """Each of these rows that is refused, under the status of the first plugin that refuses it; where all are
        asked, under what all of them say."""
        return self._explained(rows, FilterRun.codes_of)

    def fit_if(self, rows: RowIndex, changes: RowChanges) -> Mask:
        """bool[len(rows)]: as ``fit``, in a changed world. Each filter sees only what those before it let pass."""
        fits = np.zeros(len(rows), dtype=np.bool_)
        places = np.arange(len(rows))
        for run in self.in_order:
            passed = run.codes_if(rows[places], changes) == 0
            if not passed.all():
                places = places[passed]
        fits[places] = True
        return fits

    def refusals_if(self, rows: RowIndex, changes: RowChanges) -> Refusals:
        """As ``refusals``, in a changed world."""
        return self._explained(rows, lambda run, those: run.codes_if(those, changes))

    def _explained(self, rows: RowIndex, codes_of: Callable[[FilterRun, RowIndex], Codes]) -> Refusals:
        found: Refusals = []
        left = rows
        for run in self.in_order:
            codes = codes_of(run, left)
            refused = codes != 0
            if refused.any():
                found += run.explain(left[refused], codes[refused])
                if not self._checks_all:
                    left = left[~refused]
        return _together(rows, found) if self._checks_all else found


def _together(rows: RowIndex, found: Refusals) -> Refusals:
    """Refusals where a row may have several statuses, with all of a row's as one. O(rows) a status and combination."""
    order = np.argsort(rows)
    combinations: list[tuple[Status, ...]] = [()]
    of_row = np.zeros(len(rows), dtype=np.int64)
    for status, refused in found:
        places = order[np.searchsorted(rows, refused, sorter=order)]
        before = of_row[places]
        for number in np.unique(before).tolist():
            of_row[places[before == number]] = len(combinations)
            combinations.append((*combinations[number], status))
    numbers = [number for number in np.unique(of_row).tolist() if number]
    return [(combined(combinations[number]), rows[of_row == number]) for number in numbers]
