"""One attempt for one pod: PreFilter, Filter, PostFilter or PreScore and Score, choose.

Source of the order and of all texts: pkg/scheduler/schedule_one.go and framework/runtime/framework.go.
"""

from __future__ import annotations

import numpy as np

from kube_pyscheduler.columns.arrays import Codes, Ints, Mask, RowIndex, Scores
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.engine.compiled import Compiled, is_node_scoped, score_failure
from kube_pyscheduler.engine.node_scoped import NOT_FEASIBLE
from kube_pyscheduler.framework.adapters import EasyFilterKernel, EasyScoreKernel
from kube_pyscheduler.framework.diagnosis import Diagnosis
from kube_pyscheduler.framework.errors import PluginError
from kube_pyscheduler.framework.interfaces import (
    MAX_NODE_SCORE,
    CycleContext,
    Filter,
    FilterKernel,
    NodeFilter,
    Normalize,
    PreFilterResult,
    Score,
    ScoreKernel,
    default_normalize,
)
from kube_pyscheduler.framework.profile import Profile
from kube_pyscheduler.framework.status import Code, Status, error, unresolvable


class AttemptFailed(Exception):
    """The attempt ends with an error: ``status`` has its text."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


class FilterRun:
    """A filter plugin at work on one pod: its kernel and, once asked, its codes for all rows."""

    __slots__ = ("_codes", "kernel", "plugin")

    def __init__(self, plugin: str, kernel: FilterKernel, codes: Codes | None = None) -> None:
        self.plugin = plugin
        self.kernel = kernel
        self._codes = codes

    def codes(self, ctx: CycleContext) -> Codes:
        """uint8[high]."""
        if self._codes is None:
            self._codes = self.kernel.codes(ctx.table, ctx.table.all_rows)
        return self._codes[: ctx.table.high]


class Cycle:
    """The steps of one attempt, and what each found. Call them in order: ``pre_filter``, ``filter``, ``score``."""

    def __init__(self, profile: Profile, ctx: CycleContext, pod: PodInfo, compiled: Compiled) -> None:
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
        self._narrowed = False
        self._restricting: list[str] = []
        self._runs: list[FilterRun] = []

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
        kernels. Raises AttemptFailed."""
        table = self.ctx.table
        feasible = self.compiled.node_scoped.fits[: table.high]
        allowed = self.allowed()
        if allowed is not None:
            feasible = feasible & allowed
        cluster_runs = self._cluster_runs()
        for run in cluster_runs:
            feasible = feasible & (run.codes(self.ctx) == 0)
        self._runs = cluster_runs
        self._narrowed = allowed is not None or bool(cluster_runs)
        if any(run.kernel.may_fail for run in cluster_runs):
            self._raise_failures()
        self.feasible = feasible
        return int(np.count_nonzero(feasible))

    def filter_node(self, row: int) -> bool:
        """Whether one row passes all filters, asked before and instead of the others."""
        if not self.ctx.table.alive[row] or not self.compiled.node_scoped.fits[row]:
            return False
        rows = np.array([row], dtype=np.int64)
        return all(not run.kernel.codes(self.ctx.table, rows).any() for run in self._cluster_runs())

    def _cluster_runs(self) -> list[FilterRun]:
        runs = []
        for plugin in self.profile.filter:
            if plugin.name in self.skipped or is_node_scoped(plugin):
                continue
            kernel: FilterKernel | None
            if isinstance(plugin, NodeFilter):
                kernel = plugin.filter_kernel(self.ctx, self.pod)
            else:
                assert isinstance(plugin, Filter)
                kernel = EasyFilterKernel(plugin, self.ctx, self.pod)
            if kernel is not None:
                runs.append(FilterRun(plugin.name, kernel))
        return runs

    def _runs_in_order(self) -> list[FilterRun]:
        """All filters of this pod, kept and fresh, in the profile's order."""
        names = [plugin.name for plugin in self.profile.filter]
        kept = [FilterRun(names[slot.position], slot.kernel, slot.codes) for slot in self.compiled.node_scoped.filters]
        return sorted((*kept, *self._runs), key=lambda run: names.index(run.plugin))

    def refusals(self) -> list[tuple[Status, RowIndex]]:
        """Each tried and refused row under the status of the first plugin that refused it."""
        table = self.ctx.table
        remaining = table.alive[: table.high].copy()
        allowed = self.allowed()
        if allowed is not None:
            remaining &= allowed
        found = []
        for run in self._runs_in_order():
            codes = run.codes(self.ctx)
            rows = np.flatnonzero(remaining & (codes != 0))
            if not len(rows):
                continue
            for status, members in run.kernel.explain(table, rows, codes[rows]):
                found.append((status.by(run.plugin), members))
            remaining[rows] = False
        return found

    def _raise_failures(self) -> None:
        for status, _rows in self.refusals():
            if not status.is_rejected:
                text = f'running "{status.plugin}" filter plugin: {status.message}'
                raise AttemptFailed(error(text).by(status.plugin))

    def diagnose(self) -> Diagnosis:
        """Why no row is feasible."""
        for status, rows in self.refusals():
            self.diagnosis.refuse(status, rows)
        return self.diagnosis

    # Score

    def score(self) -> Ints:
        """int64[high]: the weighted total where feasible, NOT_FEASIBLE elsewhere. Raises AttemptFailed."""
        compiled = self.compiled
        if compiled.score_failure:
            raise AttemptFailed(error(compiled.score_failure))
        node_scoped = compiled.node_scoped
        table = self.ctx.table
        self._pre_score()
        node_scoped.normalise(table, self.feasible)
        if node_scoped.out_of_range:
            self._check_kept_range()
        totals = node_scoped.masked[: table.high]
        extra = self._cluster_scores()
        if extra is not None:
            totals = totals + extra
        if self._narrowed:
            totals = np.where(self.feasible, totals, NOT_FEASIBLE)
        return totals

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
        rows: RowIndex | None = None
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
            if rows is None:
                rows = np.flatnonzero(self.feasible)
            final = normalised(kernel, kernel.scores(table, rows))
            _check_range(plugin.name, final)
            weighted = np.zeros(table.high, dtype=np.int64)
            weighted[rows] = weight * final
            self.plugin_scores.append((plugin.name, weighted))
            total = weighted if total is None else total + weighted
        return total

    def _check_kept_range(self) -> None:
        for slot in self.compiled.node_scoped.scores:
            plugin = self.profile.score[slot.position][0]
            _check_range(plugin.name, slot.final[: self.ctx.table.high][self.feasible])

    def scores(self) -> list[tuple[str, Scores]]:
        """After ``score``: (plugin, weighted final scores int64[high]) of every plugin that scored."""
        high = self.ctx.table.high
        kept = [
            (self.profile.score[slot.position][0].name, slot.weight * slot.final[:high])
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
