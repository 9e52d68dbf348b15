"""DefaultPreemption: when a pod fits nowhere, find the node where the least important pods would make room for it.

Source: pkg/scheduler/framework/preemption/preemption.go and
pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kube_pyscheduler.columns.arrays import RowIndex
from kube_pyscheduler.columns.pod_columns import PodColumns
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.config.args import DefaultPreemptionArgs
from kube_pyscheduler.framework.cluster_event import Action, ClusterEvent, EventRegistration, QueueingHint, Resource
from kube_pyscheduler.framework.diagnosis import Diagnosis
from kube_pyscheduler.framework.interfaces import CycleContext, PostFilter, PostFilterResult, Preempting, PreEnqueue
from kube_pyscheduler.framework.listers import Lister, Listers
from kube_pyscheduler.framework.status import SUCCESS, Code, Status, error, unresolvable, unschedulable
from kube_pyscheduler.objects.group import PodDisruptionBudget
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.plugins.default_preemption.budgets import Budgets
from kube_pyscheduler.plugins.default_preemption.candidates import Candidate, Shortlist, best
from kube_pyscheduler.plugins.default_preemption.dry_run import DryRun

NOT_HELPFUL = unresolvable("Preemption is not helpful for scheduling")
"""Stands for the nodes that were not tried."""

Refusals = list[tuple[Status, RowIndex]]


class DefaultPreemption(PostFilter, PreEnqueue, Preempting):
    """See the module."""

    name = "DefaultPreemption"

    def __init__(self, args: DefaultPreemptionArgs | None = None) -> None:
        self._args = args or DefaultPreemptionArgs()
        self._budgets: tuple[Lister[PodDisruptionBudget] | None, int, Budgets] = (None, 0, Budgets(()))

    def prepare(self, ctx: CycleContext) -> None:
        """The first look at all pods takes about 3 µs a pod."""
        ctx.table.attached(PodColumns)

    def pre_enqueue(self, pod: Pod, view: Listers) -> Status | None:
        if self.preemptions.is_running(pod.uid):
            return unresolvable("waiting for the preemption for this pod to be finished")
        return None

    def events(self) -> Sequence[EventRegistration]:
        """The end of a pod may end the wait of PreEnqueue; whether it helps the pod, other plugins know."""
        return (EventRegistration(ClusterEvent(Resource.POD, Action.DELETE), _leave_it_to_others),)

    def post_filter(
        self, ctx: CycleContext, pod: PodInfo, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult | None, Status]:
        self.preemptions.attempted()
        result, status = self._preempt(ctx, pod, diagnosis)
        return result, Status(status.code, (f"preemption: {status.message}",)) if status.reasons else status

    def _preempt(self, ctx: CycleContext, pod: PodInfo, diagnosis: Diagnosis) -> tuple[PostFilterResult | None, Status]:
        why_not = self._ineligible(ctx, pod.pod, diagnosis)
        if why_not:
            return None, unschedulable(why_not)
        candidates, in_vain = self.find_candidates(ctx, pod, diagnosis)
        if not candidates:
            errors = _error_text(in_vain)
            if errors:
                return None, error(errors)
            found = Diagnosis(ctx.table.node_count, in_vain, absent=NOT_HELPFUL)
            return PostFilterResult(""), unschedulable(found.message())
        equals = best(candidates)
        chosen = equals[ctx.rng.randrange(len(equals)) if len(equals) > 1 else 0]
        return PostFilterResult(chosen.node, tuple(victim.pod for victim in chosen.victims)), SUCCESS

    def _ineligible(self, ctx: CycleContext, pod: Pod, diagnosis: Diagnosis) -> str:
        """Why the pod may not preempt others now, or "".

        Victims that were told to go count at once, not when the watch says so.

        Source: PodEligibleToPreemptOthers.
        """
        if pod.spec.preemption_policy == "Never":
            return "not eligible due to preemptionPolicy=Never."
        promised = ctx.handle.nominator.promised(pod)
        row = ctx.table.row_of.get(promised) if promised else None
        if row is None or diagnosis.status_of(row).code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return ""
        for info in ctx.table.pods[row].values():
            leaves = self.preemptions.is_evicting(info.uid) or _is_being_preempted(info.pod)
            if leaves and info.pod.priority < pod.priority:
                return "not eligible due to a terminating pod on the nominated node."
        return ""

    def find_candidates(
        self, ctx: CycleContext, pod: PodInfo, diagnosis: Diagnosis
    ) -> tuple[list[Candidate], Refusals]:
        """Nodes where preemption would help, as many as are wanted; and the nodes that were tried in vain."""
        potential = diagnosis.rows_with(Code.UNSCHEDULABLE, ctx.table)
        if not len(potential):
            return [], []
        # A random start, so that not always the same nodes are tried.
        rows = np.roll(potential, -ctx.rng.randrange(len(potential)))
        wanted = self._wanted(len(rows))
        shortlist = Shortlist(wanted)
        dry_run = DryRun(ctx, pod, self._current_budgets(ctx.listers))
        begin, size = 0, max(wanted, 1)
        while begin < len(rows) and not shortlist.is_complete:
            shortlist.take(dry_run.try_rows(rows[begin : begin + size]))
            begin += size
            size *= 2
        return shortlist.candidates(), dry_run.in_vain

    def _wanted(self, nodes: int) -> int:
        """How many candidates to look for. Source: calculateNumCandidates."""
        share = nodes * self._args.min_candidate_nodes_percentage // 100
        return min(max(share, self._args.min_candidate_nodes_absolute), nodes)

    def _current_budgets(self, listers: Listers) -> Budgets:
        lister = listers.pod_disruption_budgets
        known, generation, budgets = self._budgets
        if known is not lister or generation != lister.generation:
            budgets = Budgets(lister)
            self._budgets = (lister, lister.generation, budgets)
        return budgets


def _is_being_preempted(pod: Pod) -> bool:
    if not pod.is_terminating:
        return False
    target = next((condition for condition in pod.status.conditions if condition.type == "DisruptionTarget"), None)
    return target is not None and target.status == "True" and target.reason == "PreemptionByScheduler"


def _error_text(in_vain: Refusals) -> str:
    """All errors in one text, as upstream's aggregates have it."""
    texts = list(dict.fromkeys(status.message for status, _rows in in_vain if status.code == Code.ERROR))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]" if texts else ""


def _leave_it_to_others(pod: Pod, old: Pod, new: Pod | None, view: Listers) -> QueueingHint:
    return QueueingHint.SKIP
