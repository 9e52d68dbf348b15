"""NodeResourcesFit: enough of every resource left, and how full a node will be.

Source: pkg/scheduler/framework/plugins/noderesources/fit.go.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from kube_pyscheduler.columns.arrays import Codes, Ints, Mask, RowIndex, Rows
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.columns.resources import column_amounts, is_extended_resource
from kube_pyscheduler.config.args import NodeResourcesFitArgs
from kube_pyscheduler.framework.cluster_event import Action, ClusterEvent, EventRegistration, QueueingHint, Resource
from kube_pyscheduler.framework.interfaces import (
    CycleContext,
    FilterKernel,
    NodeFilter,
    NodeScore,
    PreFilter,
    PreFilterResult,
    PreScore,
    Scope,
    ScoreKernel,
)
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.framework.status import Code, Status
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.objects.pod_requests import pod_requests
from kube_pyscheduler.objects.quantity import parse_list, to_units
from kube_pyscheduler.plugins.node_resources.allocation import FEW, strategy_kernel

REFUSED = 1


class FitKernel(FilterKernel):
    """``wanted``: (resource row, amount > 0, name). One comparison a resource and row."""

    def __init__(self, wanted: Sequence[tuple[int, int, str]]) -> None:
        self._wanted = tuple(wanted)

    def codes(self, table: NodeTable, rows: Rows) -> Codes:
        if not isinstance(rows, slice) and len(rows) <= FEW:
            return np.array([self._refuses(table, row) for row in rows.tolist()], dtype=np.uint8)
        refused = table.pod_count[rows] >= table.pod_limit[rows]
        for resource, amount, _name in self._wanted:
            refused |= table.allocatable[resource, rows] - table.requested[resource, rows] < amount
        return refused.astype(np.uint8)

    def _refuses(self, table: NodeTable, row: int) -> bool:
        if table.pod_count.item(row) >= table.pod_limit.item(row):
            return True
        return any(
            table.allocatable.item(resource, row) - table.requested.item(resource, row) < amount
            for resource, amount, _name in self._wanted
        )

    def explain(self, table: NodeTable, rows: RowIndex, codes: Codes) -> list[tuple[Status, RowIndex]]:
        # One bit a reason, and one for "no pod's end can help"; rows with the same bits share a status.
        bits: Ints = (table.pod_count[rows] >= table.pod_limit[rows]).astype(np.int64)
        never = np.zeros(len(rows), dtype=np.bool_)
        for position, (resource, amount, _name) in enumerate(self._wanted, start=1):
            allocatable = table.allocatable[resource, rows]
            short = allocatable - table.requested[resource, rows] < amount
            bits |= short.astype(np.int64) << position
            never |= short & (amount > allocatable)
        bits |= never.astype(np.int64) << (len(self._wanted) + 1)
        return [(self._status(pattern), rows[bits == pattern]) for pattern in np.unique(bits).tolist()]

    def _status(self, pattern: int) -> Status:
        reasons = ["Too many pods"] if pattern & 1 else []
        for position, (_resource, _amount, name) in enumerate(self._wanted, start=1):
            if pattern >> position & 1:
                reasons.append(f"Insufficient {name}")
        unresolvable = pattern >> (len(self._wanted) + 1) & 1
        code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if unresolvable else Code.UNSCHEDULABLE
        return Status(code, tuple(reasons))


class NodeResourcesFit(PreFilter, NodeFilter, PreScore, NodeScore):
    """See the module. Events of device classes are not asked for: resources served by them belong to
    DynamicResources."""

    name = "NodeResourcesFit"
    scope = Scope.NODE

    def __init__(self, args: NodeResourcesFitArgs | None = None) -> None:
        self._args = args or NodeResourcesFitArgs()
        self._ignored = frozenset(self._args.ignored_resources)
        self._ignored_groups = frozenset(self._args.ignored_resource_groups)

    def fragment(self, pod: PodInfo) -> Hashable:
        return pod.demand.request_items, pod.demand.scored_request

    def pre_filter(self, ctx: CycleContext, pod: PodInfo) -> PreFilterResult | Status | None:
        return None

    def filter_kernel(self, ctx: CycleContext, pod: PodInfo) -> FilterKernel | None:
        table = ctx.table
        columns = column_amounts(pod.demand.request, table.resources)
        for resource in columns:
            table.resource_row(table.resources.values[resource])
        names = table.resources.values
        return FitKernel(
            [
                (resource, amount, names[resource])
                for resource, amount in columns.items()
                if amount > 0 and not self._is_ignored(names[resource])
            ]
        )

    def _is_ignored(self, name: str) -> bool:
        if not (self._ignored or self._ignored_groups) or not is_extended_resource(name):
            return False
        return name in self._ignored or name.partition("/")[0] in self._ignored_groups

    def pre_score(self, ctx: CycleContext, pod: PodInfo, feasible: Mask) -> Status | None:
        return None

    def score_kernel(self, ctx: CycleContext, pod: PodInfo) -> ScoreKernel | Status:
        return strategy_kernel(ctx.table, self._args.scoring_strategy, pod)

    def events(self) -> Sequence[EventRegistration]:
        pod_event = ClusterEvent(Resource.POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN)
        node_event = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE)
        return (
            EventRegistration(pod_event, _pod_freed_something),
            EventRegistration(node_event, _node_gives_more),
        )


def _pod_freed_something(pod: Pod, old: Pod, new: Pod | None, view: Listers) -> QueueingHint:
    if new is None:
        freed = bool(old.spec.node_name or old.status.nominated_node_name)
        return QueueingHint.QUEUE if freed else QueueingHint.SKIP
    if new.uid == pod.uid:
        return QueueingHint.QUEUE
    if not new.spec.node_name:
        return QueueingHint.SKIP
    before, after = pod_requests(old, use_status=True), pod_requests(new, use_status=True)
    wanted = pod_requests(pod, use_status=True)
    helps = any(amount and before.get(name, 0) > after.get(name, 0) for name, amount in wanted.items())
    return QueueingHint.QUEUE if helps else QueueingHint.SKIP


def _node_gives_more(pod: Pod, old: Node | None, new: Node, view: Listers) -> QueueingHint:
    wanted = PodInfo(pod).demand.request
    offered = parse_list(new.status.allocatable)
    if to_units(offered.get("pods", 0)) < 1:
        return QueueingHint.SKIP
    if any(amount > offered.get(name, 0) for name, amount in wanted.items() if amount > 0):
        return QueueingHint.SKIP
    if old is None:
        return QueueingHint.QUEUE
    before = parse_list(old.status.allocatable)
    more = offered.get("pods", 0) > before.get("pods", 0) or any(
        amount > 0 and offered.get(name, 0) > before.get(name, 0) for name, amount in wanted.items()
    )
    return QueueingHint.QUEUE if more else QueueingHint.SKIP
