"""One attempt for one pod: PreFilter, Filter, PostFilter or PreScore and Score, choose.

Source of the order and of all texts: pkg/scheduler/schedule_one.go and framework/runtime/framework.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from kube_pyscheduler.columns.arrays import Ints, Mask, RowIndex, Rows, Scores
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.engine.compiled import Compiled, is_node_scoped, score_failure
from kube_pyscheduler.engine.filtering import Filters, Refusals
from kube_pyscheduler.engine.node_scoped import NOT_FEASIBLE
from kube_pyscheduler.engine.nominated import Guests, NominatedPods
from kube_pyscheduler.engine.what_if import NominatedRefilter, failure
from kube_pyscheduler.framework.adapters import EasyScoreKernel
from kube_pyscheduler.framework.diagnosis import Diagnosis
from kube_pyscheduler.framework.errors import PluginError
from kube_pyscheduler.framework.interfaces import (
    MAX_NODE_SCORE,
    ZERO_SCORES,
    CycleContext,
    Normalize,
    PreFilterResult,
    Score,
    ScoreKernel,
    default_normalize,
)
from kube_pyscheduler.framework.profile import Profile
from kube_pyscheduler.framework.row_changes import RowChanges
from kube_pyscheduler.framework.status import Code, Status, error, unresolvable


class AttemptFailed(Exception):
    """The attempt ends with an error: ``status`` has its text."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


class Cycle:
    """The steps of one attempt, and what each found. Call them in order: ``pre_filter``, ``filter``, ``score``."""

    def __init__(
        self, profile: Profile, ctx: CycleContext, pod: PodInfo, compiled: Compiled, nominated: NominatedPods
    ) -> None:
        self.profile = profile
        self.ctx = ctx
        self.pod = pod
        self.compiled = compiled
        self.nodes: frozenset[str] | None = None
        """Names that PreFilter allows; None is all."""
        self.skipped: set[str] = set()
        """Plugins whose PreFilter said Skip."""
        self.diagnosis = Diagnosis(ctx.table.node_count)
        self.feasible: Mask = np.zeros(ctx.table.high, dtype=np.bool_)
        """bool[high], after ``filter``."""
        self.skipped_scores: set[str] = set()
        self.plugin_scores: list[tuple[str, Scores]] = []
        """(plugin, weighted final scores int64[high]) of cluster-scoped plugins, after ``score``."""
        ctx.refilter = self
        self._nominated = nominated
        self._restricting: list[str] = []

    # PreFilter

    def pre_filter(self) -> Status | None:
        """None to go on; a refusal otherwise. Raises AttemptFailed."""
        known = self.compiled.pre_filter
        refusal: Status | None = None
        for plugin in self.profile.pre_filter:
            name = plugin.name
            answer = known[name] if name in known else plugin.pre_filter(self.ctx, self.pod)
            if isinstance(answer, Status):
                if answer.code == Code.SKIP:
                    self.skipped.add(name)
                    continue
                if answer.code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                    return self._refused_by_pre_filter(answer.by(name))
                if answer.code == Code.UNSCHEDULABLE:
                    # Preemption may help against this one, and it will want the state of all PreFilters.
                    refusal = answer.by(name)
                    continue
                if not answer.is_success:
                    raise AttemptFailed(error(f'running PreFilter plugin "{name}": {answer.message}').by(name))
            elif isinstance(answer, PreFilterResult) and answer.nodes is not None:
                self._restricting.append(name)
                self.nodes = answer.nodes if self.nodes is None else self.nodes & answer.nodes
                if not self.nodes:
                    plugins = sorted(self._restricting)
                    text = (
                        f"node(s) didn't satisfy plugin {plugins[0]}"
                        if len(plugins) == 1
                        else f"node(s) didn't satisfy plugin(s) {_go_list(plugins)} simultaneously"
                    )
                    self.diagnosis.unschedulable_plugins.update(plugins)
                    return self._refused_by_pre_filter(unresolvable(text))
        if refusal is not None:
            return self._refused_by_pre_filter(refusal)
        if self.nodes is not None:
            self.diagnosis.unschedulable_plugins.update(self._restricting)
            text = f"node(s) didn't satisfy plugin(s) {_go_list(sorted(self._restricting))}"
            self.diagnosis.absent = unresolvable(text)
        return None

    def _refused_by_pre_filter(self, status: Status) -> Status:
        self.diagnosis.absent = status
        self.diagnosis.pre_filter_message = status.message
        self.diagnosis.blame(status)
        return status

    # Filter

    @cached_property
    def _filters(self) -> Filters:
        return Filters(self.profile, self.ctx, self.pod, self.compiled, self.skipped)

    @cached_property
    def _guests(self) -> Guests | None:
        return self._nominated.beside(self.pod)

    @cached_property
    def _refilter(self) -> NominatedRefilter:
        return NominatedRefilter(self.ctx.table, self._filters, self._guests)

    @cached_property
    def allowed(self) -> Mask | None:
        """bool[high]: the rows PreFilter left, or None for all."""
        if self.nodes is None:
            return None
        table = self.ctx.table
        mask = np.zeros(table.high, dtype=np.bool_)
        rows = [table.row_of[name] for name in self.nodes if name in table.row_of]
        mask[rows] = True
        return mask

    def filter(self) -> int:
        """Fill ``feasible``; returns how many rows are. Cost: O(N) for the kept answers, plus the cluster-scoped
        kernels, plus the rows with nominated pods. Raises AttemptFailed."""
        filters = self._filters
        feasible = filters.kept[: self.ctx.table.high]
        if self.allowed is not None:
            feasible = feasible & self.allowed
        for run in filters.fresh:
            feasible = feasible & (run.codes == 0)
        if self._guests is not None:
            feasible = self._beside_guests(self._guests, feasible)
        for run in filters.fresh:
            feasible = self._without(run.kernel.last_resort, feasible)
        self.feasible = feasible
        if filters.may_fail:
            self._raise_failures()
        return int(np.count_nonzero(feasible))

    def _beside_guests(self, guests: Guests, feasible: Mask) -> Mask:
        """``feasible`` without the rows that do not let the pod pass together with their nominated pods."""
        rows = guests.rows[feasible[guests.rows]]
        if not len(rows):
            return feasible
        refused = rows[~self._refilter.fit_beside(rows)]
        if not len(refused):
            return feasible
        feasible = feasible.copy()
        feasible[refused] = False
        return feasible

    def _without(self, last_resort: Sequence[int], feasible: Mask) -> Mask:
        """``feasible`` without these rows, unless no other one is."""
        if not last_resort:
            return feasible
        others = feasible.copy()
        others[list(last_resort)] = False
        if not others.any():
            return feasible
        return others

    def try_promised(self, row: int) -> bool:
        """Whether the node that was promised to the pod passes all filters. It is asked before the others, even
        outside the set that PreFilter left; there a refusal counts beside those of the set."""
        table = self.ctx.table
        if not table.alive[row]:
            return False
        rows = np.array([row], dtype=np.int64)
        hosting = self._guests is not None and self._guests.place[row] >= 0
        if self._filters.fit(rows)[0] and (not hosting or self._refilter.fit_beside(rows)[0]):
            return True
        if self.allowed is not None and not self.allowed[row]:
            for status, those in self._row_refusals(rows):
                if status.is_rejected:
                    self.diagnosis.refuse(status, those)
        return False

    def fits_if(self, rows: RowIndex, changes: RowChanges) -> Mask:
        """See Refilter."""
        return self._refilter.fits_if(rows, changes)

    def refusals_if(self, rows: RowIndex, changes: RowChanges) -> Refusals:
        """See Refilter."""
        return self._refilter.refusals_if(rows, changes)

    def refusals(self) -> Refusals:
        """Each tried and refused row under the status of the first plugin that refused it; with its nominated pods
        where it has some, and without them if it let the pod pass then."""
        table = self.ctx.table
        tried = table.alive[: table.high]
        return self._row_refusals(np.flatnonzero(tried if self.allowed is None else tried & self.allowed))

    def _row_refusals(self, rows: RowIndex) -> Refusals:
        found: Refusals = []
        if self._guests is not None:
            hosting = self._guests.place[rows] >= 0
            found = self._refilter.refusals_beside(rows[hosting])
            for _status, refused in found:
                rows = rows[~np.isin(rows, refused)]
        return found + self._filters.refusals(rows)

    def _raise_failures(self) -> None:
        for status, _rows in self.refusals():
            if not status.is_rejected:
                raise AttemptFailed(failure(status))

    def diagnose(self) -> Diagnosis:
        """Why no row is feasible."""
        for status, rows in self.refusals():
            self.diagnosis.refuse(status, rows)
        return self.diagnosis

    # Score

    def score(self) -> Ints:
        """int64[high]: the weighted total where feasible, NOT_FEASIBLE elsewhere. Raises AttemptFailed."""
        compiled = self.compiled
        if not self.profile.score:
            # All are worth the same. Source: prioritizeNodes in schedule_one.go.
            return np.where(self.feasible, np.int64(1), NOT_FEASIBLE)
        if compiled.score_failure:
            raise AttemptFailed(error(compiled.score_failure))
        node_scoped = compiled.node_scoped
        table = self.ctx.table
        self._pre_score()
        node_scoped.normalise(table, self.feasible)
        if node_scoped.out_of_range:
            self._check_kept_range()
        totals = node_scoped.totals[: table.high]
        extra = self._cluster_scores()
        if extra is not None:
            totals = totals + extra
        return np.where(self.feasible, totals, NOT_FEASIBLE)

    def _pre_score(self) -> None:
        self.skipped_scores.update(self.compiled.skipped_scores)
        for plugin in self.profile.pre_score:
            if is_node_scoped(plugin):
                continue
            status = plugin.pre_score(self.ctx, self.pod, self.feasible)
            if status is None or status.is_success:
                continue
            if status.code != Code.SKIP:
                raise AttemptFailed(error(f'running PreScore plugin "{plugin.name}": {status.message}'))
            self.skipped_scores.add(plugin.name)

    def _cluster_scores(self) -> Scores | None:
        """Sum of the cluster-scoped plugins' weighted scores, int64[high]; None if there are none."""
        table = self.ctx.table
        total: Scores | None = None
        rows: Rows | None = None
        for plugin, weight in self.profile.score:
            if is_node_scoped(plugin) or plugin.name in self.skipped_scores:
                continue
            kernel: ScoreKernel | Status
            if isinstance(plugin, Score):
                kernel = EasyScoreKernel(plugin, self.ctx, self.pod)
            else:
                kernel = plugin.score_kernel(self.ctx, self.pod)
            if isinstance(kernel, Status):
                raise AttemptFailed(error(score_failure(plugin.name, kernel)))
            if kernel is ZERO_SCORES:
                self.plugin_scores.append((plugin.name, np.zeros(table.high, dtype=np.int64)))
                continue
            if rows is None:
                rows = table.all_rows if self.feasible.all() else np.flatnonzero(self.feasible)
            final = normalised(kernel, kernel.scores(table, rows))
            _check_range(plugin.name, final)
            if isinstance(rows, slice):
                weighted = weight * final
            else:
                weighted = np.zeros(table.high, dtype=np.int64)
                weighted[rows] = weight * final
            self.plugin_scores.append((plugin.name, weighted))
            total = weighted if total is None else total + weighted
        return total

    def _check_kept_range(self) -> None:
        for slot in self.compiled.node_scoped.scores:
            plugin = self.profile.score[slot.position][0]
            _check_range(plugin.name, slot.final[: self.ctx.table.high][self.feasible].astype(np.int64))

    def scores(self) -> list[tuple[str, Scores]]:
        """After ``score``: (plugin, weighted final scores int64[high]) of every plugin that scored."""
        high = self.ctx.table.high
        kept = [
            (self.profile.score[slot.position][0].name, slot.weighted(slice(0, high)))
            for slot in self.compiled.node_scoped.scores
        ]
        return [*kept, *self.plugin_scores]


def normalised(kernel: ScoreKernel, raw: Scores) -> Scores:
    """Final scores of the feasible rows from their raw ones."""
    how = kernel.normalize
    if isinstance(how, Normalize):
        return raw if how is Normalize.NONE else default_normalize(raw, reverse=how is Normalize.REVERSED)
    return how(raw)


def _check_range(plugin: str, final: Scores) -> None:
    if len(final) and (int(final.min()) < 0 or int(final.max()) > MAX_NODE_SCORE):
        wrong = next(score for score in final.tolist() if not 0 <= score <= MAX_NODE_SCORE)
        raise AttemptFailed(
            error(
                f'applying score defaultWeights on Score plugins: plugin "{plugin}" returns an invalid score {wrong}, '
                f"it should in the range of [0, {MAX_NODE_SCORE}] after normalizing"
            )
        )


def _go_list(names: list[str]) -> str:
    """As Go prints a list of strings."""
    return f"[{' '.join(names)}]"


def wrap_plugin_error(raised: PluginError) -> AttemptFailed:
    """A plugin that raised fails the attempt of its pod, nothing else."""
    return AttemptFailed(error(str(raised)).by(raised.plugin))
