"""TaintToleration: taints keep pods away (NoSchedule, NoExecute) or make nodes less welcome (PreferNoSchedule)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from kube_pyscheduler.columns.arrays import Codes, Mask, Rows, Scores
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.columns.vocabulary import LookupTable
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
    PreScore,
    Scope,
    ScoreKernel,
)
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.framework.status import Status, unresolvable
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod, Toleration
from kube_pyscheduler.objects.tolerations import count_untolerated_soft, has_untolerated


class TaintFilterKernel(FilterKernel):
    """One lookup a node: tolerations are matched once per distinct taint list."""

    reads_usage = False
    statuses = (unresolvable("node(s) had untolerated taint(s)"),)

    def __init__(self, table: NodeTable, tolerations: Sequence[Toleration]) -> None:
        self._refused = LookupTable(
            table.taint_sets, lambda taints: has_untolerated(tolerations, taints), False, np.uint8
        )

    def codes(self, table: NodeTable, rows: Rows) -> Codes:
        return self._refused.take(table.taint_set[rows])


class TaintScoreKernel(ScoreKernel):
    """Raw score: PreferNoSchedule taints that are not tolerated."""

    reads_usage = False
    normalize = Normalize.REVERSED
    dtype = np.int32

    def __init__(self, table: NodeTable, tolerations: Sequence[Toleration]) -> None:
        self._counts = LookupTable(
            table.taint_sets, lambda taints: count_untolerated_soft(tolerations, taints), 0, np.int64
        )

    def scores(self, table: NodeTable, rows: Rows) -> Scores:
        return self._counts.take(table.taint_set[rows])


class TaintToleration(NodeFilter, PreScore, NodeScore):
    """Source: pkg/scheduler/framework/plugins/tainttoleration."""

    name = "TaintToleration"
    scope = Scope.NODE

    def fragment(self, pod: PodInfo) -> Hashable:
        return pod.pod.spec.tolerations

    def filter_kernel(self, ctx: CycleContext, pod: PodInfo) -> FilterKernel | None:
        return TaintFilterKernel(ctx.table, pod.pod.spec.tolerations)

    def pre_score(self, ctx: CycleContext, pod: PodInfo, feasible: Mask) -> Status | None:
        return None

    def score_kernel(self, ctx: CycleContext, pod: PodInfo) -> ScoreKernel | Status:
        return TaintScoreKernel(ctx.table, pod.pod.spec.tolerations)

    def events(self) -> Sequence[EventRegistration]:
        return (
            EventRegistration(
                ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT), _node_tolerable, _tolerations
            ),
            EventRegistration(ClusterEvent(Resource.POD, Action.UPDATE_POD_TOLERATION), _pod_itself, _tolerations),
        )


def _tolerations(pod: Pod) -> Hashable:
    return pod.spec.tolerations


def _node_tolerable(pod: Pod, old: Node | None, new: Node, view: Listers) -> QueueingHint:
    tolerations = pod.spec.tolerations
    was_refused = old is None or has_untolerated(tolerations, old.spec.taints)
    return queue_if(was_refused and not has_untolerated(tolerations, new.spec.taints))


def _pod_itself(pod: Pod, old: Pod, new: Pod, view: Listers) -> QueueingHint:
    return queue_if(new.uid == pod.uid)
