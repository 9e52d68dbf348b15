"""The decision for one pod: which node, or why none.

Pure in effect: the same table, listers, nominations and random numbers give the same decision. What is kept between
decisions are answers about rows, repaired before they are used.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.engine.compiled import Compiler, is_node_scoped
from kube_pyscheduler.engine.cycle import AttemptFailed, Cycle, wrap_plugin_error
from kube_pyscheduler.engine.decision import Decision
from kube_pyscheduler.engine.nominated import NominatedPods
from kube_pyscheduler.engine.observer import EngineObserver, Unobserved
from kube_pyscheduler.engine.turns import Turns
from kube_pyscheduler.framework.cycle_state import CycleState
from kube_pyscheduler.framework.diagnosis import NO_NODES, Diagnosis
from kube_pyscheduler.framework.errors import PluginError
from kube_pyscheduler.framework.handle import SchedulingHandle
from kube_pyscheduler.framework.interfaces import CycleContext, Plugin, PostFilterResult
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.framework.profile import Profile
from kube_pyscheduler.framework.status import Code, Status, error, unresolvable
from kube_pyscheduler.kit.rng import AlwaysFirst, Rng
from kube_pyscheduler.kit.verbosity import Log

log = Log(__name__)


class Engine:
    """Decides for all profiles over one table. Holds no state but repaired answers, and whose turn it is where best
    nodes are taken in turns."""

    def __init__(
        self, table: NodeTable, listers: Listers, handle: SchedulingHandle, observer: EngineObserver | None = None
    ) -> None:
        self._table = table
        self._listers = listers
        self._handle = handle
        self._observer = observer or Unobserved()
        self._nominated = NominatedPods(table, handle.nominator)
        self._compilers: dict[Profile, Compiler] = {}
        self._turns = Turns(table)

    def prepare(self, profiles: Iterable[Profile]) -> None:
        """Let the plugins that look at nodes build what takes long, so that no attempt has to."""
        for profile in profiles:
            scorers = (plugin for plugin, _weight in profile.score)
            plugins: tuple[Plugin, ...] = (*profile.filter, *profile.post_filter, *scorers)
            for plugin in dict.fromkeys(plugins):
                plugin.prepare(self._context(AlwaysFirst()))

    def keep(self, profiles: Iterable[Profile]) -> None:
        """Forget what is known of all other profiles and of their plugins."""
        self._compilers = {profile: self._compilers[profile] for profile in profiles if profile in self._compilers}
        is_node_scoped.cache_clear()

    def cycle(self, profile: Profile, pod: PodInfo, rng: Rng | None = None) -> tuple[Cycle, int]:
        """The steps of one attempt, not yet taken, and how many rows were judged to prepare them. Without ``rng``
        nothing is left to chance."""
        ctx = self._context(rng or AlwaysFirst())
        compiler = self._compilers.get(profile)
        if compiler is None:
            compiler = self._compilers[profile] = Compiler(profile)
        compiled, judged = compiler.compiled(ctx, pod)
        return Cycle(profile, ctx, pod, compiled, self._nominated), judged

    def _context(self, rng: Rng) -> CycleContext:
        return CycleContext(self._table, self._listers, CycleState(), self._handle, rng)

    def schedule(self, profile: Profile, pod: PodInfo, rng: Rng) -> Decision:
        """One attempt for one pod. Cost with N nodes: O(N) array work, no Python step a node."""
        cycle: Cycle | None = None
        try:
            cycle, judged = self.cycle(profile, pod, rng)
            return self._attempt(cycle, rng, judged)
        except AttemptFailed as failed:
            status = failed.status
        except PluginError as raised:
            if raised.__cause__ is not None:
                log.error("Plugin failed", raised.__cause__, plugin=raised.plugin, pod=pod.key)
            status = wrap_plugin_error(raised).status
        return Decision(status=status, ctx=cycle.ctx if cycle else self._context(rng))

    def _attempt(self, cycle: Cycle, rng: Rng, judged: int) -> Decision:
        observer = self._observer
        ctx = cycle.ctx
        if self._table.node_count == 0:
            return Decision(
                status=unresolvable(NO_NODES), ctx=ctx, diagnosis=Diagnosis(0), post_filter=PostFilterResult("")
            )
        observer.enter("PreFilter")
        refusal = cycle.pre_filter()
        observer.leave("PreFilter", refusal.code if refusal else Code.SUCCESS)
        if refusal is not None:
            return self._post_filter(cycle, cycle.diagnosis, judged)
        promised = self._promised(cycle)
        if promised is not None:
            return Decision(
                status=Status(Code.SUCCESS), ctx=ctx, node=promised, evaluated=1, feasible=1, rows_judged=judged
            )
        observer.enter("Filter")
        feasible = cycle.filter()
        observer.leave("Filter", Code.SUCCESS if feasible else Code.UNSCHEDULABLE)
        if not feasible:
            return self._post_filter(cycle, cycle.diagnose(), judged)
        if feasible == 1:
            # A single choice needs no score, so errors of scoring stay unseen, as upstream.
            row = int(np.argmax(cycle.feasible))
        else:
            observer.enter("Score")
            totals = cycle.score()
            observer.leave("Score", Code.SUCCESS)
            best = np.flatnonzero(totals == totals.max())
            if cycle.profile.takes_turns:
                row = self._turns.choose(best)
            else:
                row = int(best[rng.randrange(len(best)) if len(best) > 1 else 0])
        return Decision(
            status=Status(Code.SUCCESS),
            ctx=ctx,
            node=self._table.names[row],
            evaluated=self._table.node_count,
            feasible=feasible,
            rows_judged=judged,
        )

    def _promised(self, cycle: Cycle) -> str | None:
        """The node that was promised to the pod, if it still fits there: tried before all others, even outside the set
        of nodes that PreFilter allows.

        Source: evaluateNominatedNode in pkg/scheduler/schedule_one.go.
        """
        name = self._handle.nominator.promised(cycle.pod.pod)
        if not name:
            return None
        row = self._table.row_of.get(name)
        return name if row is not None and cycle.try_promised(row) else None

    def _post_filter(self, cycle: Cycle, diagnosis: Diagnosis, judged: int) -> Decision:
        """Source: RunPostFilterPlugins in framework/runtime/framework.go."""
        result: PostFilterResult | None = None
        if not cycle.profile.post_filter:
            result = PostFilterResult("")
        else:
            self._observer.enter("PostFilter")
            result, status = self._run_post_filters(cycle, diagnosis)
            diagnosis.post_filter_message = status.message
            self._observer.leave("PostFilter", status.code)
        return Decision(
            status=Status(Code.UNSCHEDULABLE, (diagnosis.message(),)),
            ctx=cycle.ctx,
            diagnosis=diagnosis,
            post_filter=result,
            evaluated=self._table.node_count,
            rows_judged=judged,
        )

    @staticmethod
    def _run_post_filters(cycle: Cycle, diagnosis: Diagnosis) -> tuple[PostFilterResult | None, Status]:
        result: PostFilterResult | None = None
        reasons: list[str] = []
        for plugin in cycle.profile.post_filter:
            answer, status = plugin.post_filter(cycle.ctx, cycle.pod, diagnosis)
            if status.is_success or status.code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return answer, status
            if not status.is_rejected:
                return None, error(status.message).by(plugin.name)
            if answer is not None and answer.nominated is not None:
                result = answer
            reasons.extend(status.reasons)
        return result, Status(Code.UNSCHEDULABLE, tuple(reasons))
