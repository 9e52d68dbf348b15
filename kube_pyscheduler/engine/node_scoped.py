"""The answers of all node-scoped plugins for one signature, kept and repaired row by row.

Every pod with equal fragments shares them. Filling costs one pass of each kernel over all N rows; after that an attempt
costs the rows written since the last one (one, after a placement) and O(N) for choosing.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kube_pyscheduler.columns.arrays import Codes, Ints, Mask, Rows, Scores
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.framework.errors import PluginError
from kube_pyscheduler.framework.interfaces import (
    MAX_NODE_SCORE,
    CycleContext,
    FilterKernel,
    Normalize,
    ScoreKernel,
)
from kube_pyscheduler.framework.status import Status

NOT_FEASIBLE = np.int64(-(2**62))
"""In ``totals``: below every score."""


class FilterSlot:
    """One filter plugin: its place in the profile, how its kernel is made, and the codes of all rows."""

    __slots__ = ("build", "codes", "kernel", "position")

    def __init__(
        self, position: int, kernel: FilterKernel, build: Callable[[CycleContext], FilterKernel | None], capacity: int
    ) -> None:
        self.position = position
        self.kernel = kernel
        self.build = build
        self.codes: Codes = np.zeros(capacity, dtype=np.uint8)


class ScoreSlot:
    """One score plugin: weight, kernel, raw scores of all rows and, where they are normalised, the final ones."""

    __slots__ = ("any_raw", "build", "final", "greatest", "kernel", "position", "raw", "weight")

    def __init__(
        self,
        position: int,
        weight: int,
        kernel: ScoreKernel,
        build: Callable[[CycleContext], ScoreKernel | Status],
        capacity: int,
    ) -> None:
        self.position = position
        self.weight = weight
        self.kernel = kernel
        self.build = build
        self.raw = np.zeros(capacity, dtype=kernel.dtype)
        self.final = self.raw if kernel.normalize is Normalize.NONE else np.zeros(capacity, dtype=np.int16)
        self.any_raw = False
        self.greatest = 0
        """The greatest feasible raw score that ``final`` was made with."""

    def weighted(self, rows: Rows) -> Scores:
        """int64[rows]: what the plugin adds to the totals."""
        final = self.final[rows].astype(np.int64)
        return final if self.weight == 1 else self.weight * final


class NodeScoped:
    """See the module. ``filters`` and ``scores`` are in the profile's order."""

    def __init__(self, table: NodeTable, filters: list[FilterSlot], scores: list[ScoreSlot]) -> None:
        self.filters = filters
        self.scores = scores
        self._layout = table.layout
        self._facts_seen = table.facts.position
        self._usage_seen = table.usage.position
        self.fits: Mask = np.zeros(table.capacity, dtype=np.bool_)
        """bool[C]: live rows that every filter of these lets pass."""
        self.totals: Ints = np.zeros(table.capacity, dtype=np.int64)
        """int64[C]: weighted sum of the final scores."""
        self.out_of_range = False
        """Some row had a score that cannot end within 0–100."""
        self._normalised = [slot for slot in scores if slot.kernel.normalize is not Normalize.NONE]
        self._fill(table)

    @property
    def nbytes(self) -> int:
        """Memory of the arrays, in bytes."""
        size = self.fits.nbytes + self.totals.nbytes
        size += sum(slot.codes.nbytes for slot in self.filters)
        for slot in self.scores:
            size += slot.raw.nbytes + (slot.final.nbytes if slot.final is not slot.raw else 0)
        return size

    def fits_layout(self, table: NodeTable) -> bool:
        """Whether the table still has the capacity these arrays were made for."""
        return self._layout == table.layout

    def repair(self, ctx: CycleContext) -> int:
        """Bring all answers up to date. Returns how many rows were judged again."""
        table = ctx.table
        facts = table.facts.since(self._facts_seen)
        usage = table.usage.since(self._usage_seen)
        self._facts_seen = table.facts.position
        self._usage_seen = table.usage.position
        if facts is None or usage is None:
            self._fill(table)
            return table.high
        judged = len(facts) + len(usage)
        if len(facts):
            self._judge(table, facts, usage_only=False)
        if len(usage):
            self._judge(table, usage, usage_only=True)
        for slot in self.filters:
            if slot.kernel.is_stale(table):
                kernel = slot.build(ctx)
                if kernel is None:
                    slot.codes[:] = 0
                else:
                    slot.kernel = kernel
                    slot.codes[: table.high] = kernel.codes(table, table.all_rows)
                self._update_fits(table, table.all_rows)
                judged += table.high
        for score in self.scores:
            if score.kernel.is_stale(table):
                fresh = score.build(ctx)
                if isinstance(fresh, Status):
                    raise PluginError("", "Score", fresh.message)
                score.kernel = fresh
                self._score(table, score, table.all_rows)
                self._update_totals(table.all_rows)
                judged += table.high
        return judged

    def normalise(self, table: NodeTable, feasible: Mask) -> None:
        """Make the final scores those of this feasible set (bool[high]). O(N) for each plugin that has any score to
        normalise, nothing for the others."""
        changed = False
        for slot in self._normalised:
            greatest = 0
            if slot.any_raw:
                raw = slot.raw[: table.high]
                greatest = int(np.max(raw, where=feasible, initial=0))
            if greatest != slot.greatest:
                slot.greatest = greatest
                self._finish(slot, table.all_rows)
                changed = True
        if changed:
            self._update_totals(table.all_rows)

    def _fill(self, table: NodeTable) -> None:
        self._judge(table, table.all_rows, usage_only=False)

    def _judge(self, table: NodeTable, rows: Rows, *, usage_only: bool) -> None:
        for slot in self.filters:
            if slot.kernel.reads_usage or not usage_only:
                slot.codes[rows] = slot.kernel.codes(table, rows)
        self._update_fits(table, rows)
        for score in self.scores:
            if score.kernel.reads_usage or not usage_only:
                self._score(table, score, rows)
        self._update_totals(rows)

    def _update_fits(self, table: NodeTable, rows: Rows) -> None:
        fits = table.alive[rows].copy()
        for slot in self.filters:
            fits &= slot.codes[rows] == 0
        self.fits[rows] = fits

    def _score(self, table: NodeTable, slot: ScoreSlot, rows: Rows) -> None:
        raw = slot.kernel.scores(table, rows)
        slot.raw[rows] = raw
        is_final = slot.kernel.normalize is Normalize.NONE
        if len(raw) and (int(raw.min()) < 0 or (is_final and int(raw.max()) > MAX_NODE_SCORE)):
            self.out_of_range = True
        if not is_final:
            slot.any_raw = bool(slot.raw[: table.high].any())
            self._finish(slot, rows)

    def _finish(self, slot: ScoreSlot, rows: Rows) -> None:
        """Source: DefaultNormalizeScore in plugins/helper/normalize_score.go."""
        reverse = slot.kernel.normalize is Normalize.REVERSED
        if slot.greatest == 0:
            slot.final[rows] = MAX_NODE_SCORE if reverse else 0
            return
        # Rows that are not feasible may be scaled beyond what the array holds; nobody looks at them.
        scaled = MAX_NODE_SCORE * slot.raw[rows].astype(np.int64) // slot.greatest
        slot.final[rows] = MAX_NODE_SCORE - scaled if reverse else scaled

    def _update_totals(self, rows: Rows) -> None:
        totals = np.zeros_like(self.totals[rows])
        for slot in self.scores:
            totals += slot.weighted(rows)
        self.totals[rows] = totals
