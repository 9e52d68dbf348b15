"""InterPodAffinity: what it needs to know of a pod."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kube_pyscheduler.columns.arrays import Mask
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_classes import PodClasses, Question
from kube_pyscheduler.columns.pod_columns import may_send_away
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.config.args import InterPodAffinityArgs
from kube_pyscheduler.framework.cluster_event import EventRegistration
from kube_pyscheduler.framework.cycle_state import StateKey
from kube_pyscheduler.framework.interfaces import (
    CycleContext,
    FilterKernel,
    NodeFilter,
    NodeScore,
    PreFilter,
    PreFilterResult,
    PreScore,
    ScoreKernel,
)
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.framework.status import SKIP, Status, error, unresolvable
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.plugins.inter_pod_affinity.events import identity, registrations
from kube_pyscheduler.plugins.inter_pod_affinity.existing import ExistingTerms, Kind
from kube_pyscheduler.plugins.inter_pod_affinity.filtering import (
    Asked,
    CountsByKey,
    InterPodAffinityKernel,
    refusing_counts,
)
from kube_pyscheduler.plugins.inter_pod_affinity.namespaces import NamespaceNames, namespace_labels
from kube_pyscheduler.plugins.inter_pod_affinity.scoring import PreferencesKernel, Wish, preferences_kernel
from kube_pyscheduler.plugins.inter_pod_affinity.terms import PodTerms, Term, Terms, pod_terms

REFUSING: StateKey[CountsByKey] = StateKey("InterPodAffinity refusing pods")
PREFERENCES: StateKey[PreferencesKernel] = StateKey("InterPodAffinity scores")


class InterPodAffinity(PreFilter, NodeFilter, PreScore, NodeScore):
    """Source: pkg/scheduler/framework/plugins/interpodaffinity."""

    name = "InterPodAffinity"

    def __init__(self, args: InterPodAffinityArgs | None = None) -> None:
        args = args or InterPodAffinityArgs()
        self._hard_weight = args.hard_pod_affinity_weight
        self._ignores_existing_preferences = args.ignore_preferred_terms_of_existing_pods
        self._namespaces = NamespaceNames()

    def prepare(self, ctx: CycleContext) -> None:
        ctx.table.attached(PodClasses)
        ctx.table.attached(ExistingTerms)

    # Filter

    def pre_filter(self, ctx: CycleContext, pod: PodInfo) -> PreFilterResult | Status | None:
        terms = pod.derived(pod_terms)
        if terms.problem:
            return unresolvable(f"parsing pod: {terms.problem}")
        existing = ctx.table.attached(ExistingTerms).refusing(*identity(pod.pod, ctx.listers))
        refusing = refusing_counts(ctx.table, existing)
        if not refusing and not terms.required and not terms.required_anti:
            return SKIP
        ctx.state.write(REFUSING, refusing)
        return None

    def filter_kernel(self, ctx: CycleContext, pod: PodInfo) -> FilterKernel | None:
        refusing = ctx.state.read(REFUSING)
        return None if refusing is None else self._kernel(ctx.table, ctx.listers, pod, refusing)

    def _kernel(
        self, table: NodeTable, listers: Listers, pod: PodInfo, refusing: CountsByKey
    ) -> InterPodAffinityKernel:
        terms = pod.derived(pod_terms)
        near, far = self._asked(terms.required, listers), self._asked(terms.required_anti, listers)
        return InterPodAffinityKernel(table, pod, namespace_labels(pod.pod.namespace, listers), near, far, refusing)

    def _asked(self, terms: Terms, listers: Listers) -> Asked:
        return tuple([(term.topology_key, self._question(term, listers)) for term in terms])

    def _question(self, term: Term, listers: Listers) -> Question:
        return ((self._namespaces.meant(term, listers), term.selector),)

    # Score

    def pre_score(self, ctx: CycleContext, pod: PodInfo, feasible: Mask) -> Status | None:
        terms = pod.derived(pod_terms)
        if terms.problem:
            return error(f"failed to parse pod: {terms.problem}")
        if self._ignores_existing_preferences and not terms.preferred and not terms.preferred_anti:
            return SKIP
        kernel = preferences_kernel(ctx.table, self._wishes(ctx, pod.pod, terms))
        if kernel is None:
            return SKIP
        ctx.state.write(PREFERENCES, kernel)
        return None

    def score_kernel(self, ctx: CycleContext, pod: PodInfo) -> ScoreKernel | Status:
        kernel = ctx.state.read(PREFERENCES)
        if kernel is None:
            # PreScore can be disabled by itself. Source: getPreScoreState.
            return error(f'failed to read "PreScore{self.name}" from cycleState: not found')
        return kernel

    def _wishes(self, ctx: CycleContext, pod: Pod, terms: PodTerms) -> Iterator[Wish]:
        table, listers = ctx.table, ctx.listers
        for sign, preferred in ((1, terms.preferred), (-1, terms.preferred_anti)):
            for weight, term in preferred:
                counter = table.attached(PodClasses).counter(self._question(term, listers), with_terminating=True)
                yield term.topology_key, sign * weight, counter.counts
        for entry in table.attached(ExistingTerms).scoring(*identity(pod, listers)):
            if entry.kind is Kind.REQUIRED:
                if self._hard_weight > 0:
                    yield entry.term.topology_key, self._hard_weight, entry.pods
            else:
                sign = 1 if entry.kind is Kind.PREFERRED else -1
                yield entry.term.topology_key, sign * entry.weight, entry.pods

    # Events

    def events(self) -> Sequence[EventRegistration]:
        return registrations(self._is_welcome)

    def _is_welcome(self, pod: Pod, view: Listers) -> bool:
        """Whether some node takes the pod as things are, or might once pods went that it may send away."""
        table = view.nodes
        if may_send_away(table, pod):
            return True
        refusing = refusing_counts(table, table.attached(ExistingTerms).refusing(*identity(pod, view)))
        codes = self._kernel(table, view, PodInfo(pod), refusing).codes(table, table.all_rows)
        return bool(((codes == 0) & table.alive[table.all_rows]).any())
