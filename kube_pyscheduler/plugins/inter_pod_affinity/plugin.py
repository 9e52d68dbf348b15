"""InterPodAffinity: what it needs to know of a pod, and which events may help pods it refused."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

from kube_pyscheduler.columns.arrays import Mask
from kube_pyscheduler.columns.pod_classes import PodClasses, Question
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.config.args import InterPodAffinityArgs
from kube_pyscheduler.framework.cluster_event import Action, ClusterEvent, EventRegistration, QueueingHint, Resource
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
from kube_pyscheduler.objects.group import Namespace
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod
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
        existing = ctx.table.attached(ExistingTerms).refusing(*_identity(pod.pod, ctx.listers))
        refusing = refusing_counts(ctx.table, existing)
        if not refusing and not terms.required and not terms.required_anti:
            return SKIP
        ctx.state.write(REFUSING, refusing)
        return None

    def filter_kernel(self, ctx: CycleContext, pod: PodInfo) -> FilterKernel | None:
        refusing = ctx.state.read(REFUSING)
        if refusing is None:
            return None
        terms = pod.derived(pod_terms)
        near, far = self._asked(terms.required, ctx.listers), self._asked(terms.required_anti, ctx.listers)
        labels = namespace_labels(pod.pod.namespace, ctx.listers)
        return InterPodAffinityKernel(ctx.table, pod, labels, near, far, refusing)

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
        for entry in table.attached(ExistingTerms).scoring(*_identity(pod, listers)):
            if entry.kind is Kind.REQUIRED:
                if self._hard_weight > 0:
                    yield entry.term.topology_key, self._hard_weight, entry.pods
            else:
                sign = 1 if entry.kind is Kind.PREFERRED else -1
                yield entry.term.topology_key, sign * entry.weight, entry.pods

    # Events

    def events(self) -> Sequence[EventRegistration]:
        pod_changed = ClusterEvent(Resource.POD, Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE)
        node_changed = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
        namespace_changed = ClusterEvent(Resource.NAMESPACE, Action.ALL)
        return (
            EventRegistration(pod_changed, _after_pod, _hint_fragment),
            EventRegistration(node_changed, _after_node, _hint_fragment),
            EventRegistration(namespace_changed, _after_namespace, _hint_fragment),
        )


def _identity(pod: Pod, listers: Listers) -> tuple[str, Mapping[str, str], Mapping[str, str]]:
    """What the terms of others look at: namespace, its labels, the pod's labels."""
    return pod.namespace, namespace_labels(pod.namespace, listers), pod.metadata.labels


def _hint_fragment(pod: Pod) -> Hashable:
    """Events of the waiting pod itself are judged for it alone, so its uid does not tell pods apart."""
    terms = pod_terms(pod)
    if terms.problem:
        return pod.uid
    return pod.namespace, frozenset(pod.metadata.labels.items()), terms.required, terms.required_anti


def _required(pod: Pod) -> PodTerms:
    terms = pod_terms(pod)
    if terms.problem:
        raise ValueError(terms.problem)
    return terms


def _after_pod(pod: Pod, old: Pod | None, new: Pod | None, view: Listers) -> QueueingHint:
    """Source: isSchedulableAfterPodChange; the labels of namespaces are looked up, where upstream takes none."""
    if old is not None and new is not None and pod.uid == new.uid:
        return QueueingHint.QUEUE
    if any(p is not None and not p.spec.node_name and not p.status.nominated_node_name for p in (old, new)):
        return QueueingHint.SKIP
    terms = _required(pod)

    def near(other: Pod) -> bool:
        return _match_all(terms.required, other, view)

    def far(other: Pod) -> bool:
        return _match_all(terms.required_anti, other, view)

    if old is None:
        return _queue_if(new is not None and near(new))
    if new is not None:
        return _queue_if((not near(old) and near(new)) or (far(old) and not far(new)))
    return _queue_if(far(old) or _match_all(_required(old).required_anti, pod, view))


def _match_all(terms: Terms, pod: Pod, view: Listers) -> bool:
    identity = _identity(pod, view)
    return bool(terms) and all(term.matches(*identity) for term in terms)


def _after_node(pod: Pod, old: Node | None, new: Node, view: Listers) -> QueueingHint:
    """Source: isSchedulableAfterNodeChange."""
    terms = _required(pod)
    after = new.metadata.labels
    if old is None:
        return _queue_if(bool(terms.required_anti) or any(term.topology_key in after for term in terms.required))
    before = old.metadata.labels
    for term in terms.required:
        value = after.get(term.topology_key)
        if value is not None and value != before.get(term.topology_key):
            return QueueingHint.QUEUE
    for term in terms.required_anti:
        value = before.get(term.topology_key)
        if value is not None and value != after.get(term.topology_key):
            return QueueingHint.QUEUE
    return QueueingHint.SKIP


def _after_namespace(pod: Pod, old: Namespace | None, new: Namespace | None, view: Listers) -> QueueingHint:
    """Ours: a namespace that begins or ceases to be selected may help, and so may new labels of the pod's own."""
    changed = new or old
    assert changed is not None
    before = old.metadata.labels if old is not None else None
    after = new.metadata.labels if new is not None else None
    if changed.name == pod.namespace and (before or {}) != (after or {}):
        return QueueingHint.QUEUE
    terms = _required(pod)
    for term in (*terms.required, *terms.required_anti):
        selector = term.namespace_selector
        was_selected = before is not None and selector.matches(before)
        if was_selected != (after is not None and selector.matches(after)):
            return QueueingHint.QUEUE
    return QueueingHint.SKIP


def _queue_if(helps: bool) -> QueueingHint:
    return QueueingHint.QUEUE if helps else QueueingHint.SKIP
