"""NodeAffinity: nodeSelector, required and preferred node affinity, and what the configuration adds to them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from kube_pyscheduler.columns.arrays import Codes, Mask, Rows, Scores
from kube_pyscheduler.columns.node_selector import RequiredNodeAffinity, SelectorMatcher, weighted_terms
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.config.args import NodeAffinityArgs
from kube_pyscheduler.framework.cluster_event import (
    Action,
    ClusterEvent,
    EventRegistration,
    QueueingHint,
    Resource,
    queue_if,
)
from kube_pyscheduler.framework.interfaces import (
    CycleContext,
    FilterKernel,
    NodeFilter,
    NodeScore,
    Normalize,
    PreFilter,
    PreFilterResult,
    PreScore,
    Scope,
    ScoreKernel,
)
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.framework.status import SKIP, Status, error, unresolvable
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import NodeAffinity as PodNodeAffinity
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.objects.selectors import NodeSelector, NodeSelectorTerm

NOT_ENFORCED, NOT_MATCHED = 1, 2

Terms = list[tuple[int, NodeSelectorTerm]]
"""Preferred terms with their weights."""


def _node_affinity(pod: Pod) -> PodNodeAffinity | None:
    affinity = pod.spec.affinity
    return affinity.node_affinity if affinity is not None else None


def _required(pod: Pod) -> NodeSelector | None:
    affinity = _node_affinity(pod)
    return affinity.required if affinity is not None else None


def _preferred(affinity: PodNodeAffinity | None) -> Terms:
    if affinity is None:
        return []
    return [(term.weight, term.preference) for term in affinity.preferred]


def matches_required(pod: Pod, node: Node) -> bool:
    """Whether one node satisfies nodeSelector and required affinity; the plain form."""
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    required = _required(pod)
    return required is None or required.matches(labels, node.name)


class AffinityFilterKernel(FilterKernel):
    reads_usage = False
    statuses = (
        unresolvable("node(s) didn't match scheduler-enforced node affinity"),
        unresolvable("node(s) didn't match Pod's node affinity/selector"),
    )

    def __init__(self, table: NodeTable, pod: Pod, added: NodeSelector | None) -> None:
        self._own = RequiredNodeAffinity(table, pod.spec.node_selector, _required(pod))
        self._added = SelectorMatcher(table, added) if added is not None else None

    def codes(self, table: NodeTable, rows: Rows) -> Codes:
        codes = np.where(self._own.mask(table, rows), 0, NOT_MATCHED).astype(np.uint8)
        if self._added is not None:
            codes[~self._added.mask(table, rows)] = NOT_ENFORCED
        return codes


class AffinityScoreKernel(ScoreKernel):
    """Raw score: sum of the weights of the preferred terms that match."""

    reads_usage = False
    normalize = Normalize.DEFAULT
    dtype = np.int32

    def __init__(self, table: NodeTable, terms: Terms) -> None:
        self._terms = weighted_terms(table, terms)

    def scores(self, table: NodeTable, rows: Rows) -> Scores:
        scores = np.zeros(len(table.alive[rows]), dtype=np.int64)
        for weight, term in self._terms:
            scores += weight * term.mask(table, rows)
        return scores


class NodeAffinity(PreFilter, NodeFilter, PreScore, NodeScore):
    """Source: pkg/scheduler/framework/plugins/nodeaffinity."""

    name = "NodeAffinity"
    scope = Scope.NODE

    def __init__(self, args: NodeAffinityArgs | None = None) -> None:
        added = args.added_affinity if args is not None else None
        self._added = added.required if added is not None else None
        self._added_preferred = _preferred(added)

    def fragment(self, pod: PodInfo) -> Hashable:
        return _wishes(pod.pod)

    def pre_filter(self, ctx: CycleContext, pod: PodInfo) -> PreFilterResult | Status | None:
        required = _required(pod.pod)
        if required is None:
            return None if self._added is not None or pod.pod.spec.node_selector else SKIP
        names = _only_names(required)
        if names is None:
            return None
        return PreFilterResult(names) if names else unresolvable("pod affinity terms conflict")

    def filter_kernel(self, ctx: CycleContext, pod: PodInfo) -> FilterKernel | None:
        return AffinityFilterKernel(ctx.table, pod.pod, self._added)

    def pre_score(self, ctx: CycleContext, pod: PodInfo, feasible: Mask) -> Status | None:
        affinity = _node_affinity(pod.pod)
        problems: list[str] = []
        for index, (weight, term) in enumerate(_preferred(affinity)):
            if weight and not term.is_empty:
                problems += term.problems(f"[{index}]")
        if problems:
            distinct = list(dict.fromkeys(problems))
            return error(distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]")
        if not _preferred(affinity) and not self._added_preferred:
            return SKIP
        return None

    def score_kernel(self, ctx: CycleContext, pod: PodInfo) -> ScoreKernel | Status:
        return AffinityScoreKernel(ctx.table, [*self._added_preferred, *_preferred(_node_affinity(pod.pod))])

    def events(self) -> Sequence[EventRegistration]:
        event = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
        return (EventRegistration(event, self._node_matches_now, _wishes),)

    def _node_matches_now(self, pod: Pod, old: Node | None, new: Node, view: Listers) -> QueueingHint:
        """Upstream looks at the old labels for the pod's affinity alone, not for the added one."""
        return queue_if(self._matches(pod, new) and (old is None or not self._matches(pod, old)))

    def _matches(self, pod: Pod, node: Node) -> bool:
        if self._added is not None and not self._added.matches(node.metadata.labels, node.name):
            return False
        return matches_required(pod, node)


def _wishes(pod: Pod) -> Hashable:
    """What the pod says of labels of nodes."""
    spec = pod.spec
    if spec.affinity is None and not spec.node_selector:
        return None
    return tuple(sorted(spec.node_selector.items())), _node_affinity(pod)


def _only_names(required: NodeSelector) -> frozenset[str] | None:
    """The only node names that any of the terms can match, empty if terms contradict themselves; None if some term
    does not restrict them. Terms without a usable name requirement do not, even if they can never match."""
    if not required.node_selector_terms:
        return None
    names: set[str] = set()
    for term in required.node_selector_terms:
        own: set[str] | None = None
        for requirement in term.match_fields:
            if requirement.key == "metadata.name" and requirement.operator == "In":
                values = set(requirement.values)
                own = values if own is None else own & values
        if own is None:
            return None
        names |= own
    return frozenset(names)
