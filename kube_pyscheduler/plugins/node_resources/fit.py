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
from kube_pyscheduler.devices.classes import is_device_resource, is_offered
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
from kube_pyscheduler.framework.listers import Lister, Listers
from kube_pyscheduler.framework.status import Code, Status
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.objects.pod_requests import pod_requests
from kube_pyscheduler.objects.quantity import parse_list, to_units
from kube_pyscheduler.objects.resource import CLASS_PREFIX, DeviceClass
from kube_pyscheduler.plugins.node_resources.allocation import FEW, strategy_kernel

REFUSED = 1


class FitKernel(FilterKernel):
    """``wanted``: (resource row, amount > 0, name). One comparison a resource and row. ``served``: resource rows that
    devices serve on nodes that do not have them, whatever there is of devices. ``classes``: where that is looked up, if
    it concerns the pod."""

    def __init__(
        self,
        wanted: Sequence[tuple[int, int, str]],
        served: frozenset[int] = frozenset(),
        classes: Lister[DeviceClass] | None = None,
    ) -> None:
        self._wanted = tuple(wanted)
        self._served = served
        self._classes = classes
        self._generation = classes.generation if classes is not None else 0

    def is_stale(self, table: NodeTable) -> bool:
        return self._classes is not None and self._classes.generation != self._generation

    def codes(self, table: NodeTable, rows: Rows) -> Codes:
        if not isinstance(rows, slice) and len(rows) <= FEW:
            return np.array([self._refuses(table, row) for row in rows.tolist()], dtype=np.uint8)
        refused = table.pod_count[rows] >= table.pod_limit[rows]
        for resource, amount, _name in self._wanted:
            refused |= self._is_short(table, rows, resource, amount)
        return refused.astype(np.uint8)

    def _is_short(self, table: NodeTable, rows: Rows, resource: int, amount: int) -> Mask:
        allocatable = table.allocatable[resource, rows]
        short: Mask = allocatable - table.requested[resource, rows] < amount
        return short & (allocatable > 0) if resource in self._served else short

    def _refuses(self, table: NodeTable, row: int) -> bool:
        if table.pod_count.item(row) >= table.pod_limit.item(row):
            return True
        return any(
            table.allocatable.item(resource, row) - table.requested.item(resource, row) < amount
            and not (resource in self._served and table.allocatable.item(resource, row) <= 0)
            for resource, amount, _name in self._wanted
        )

    def explain(self, table: NodeTable, rows: RowIndex, codes: Codes) -> list[tuple[Status, RowIndex]]:
        # One bit a reason, and one for "no pod's end can help"; rows with the same bits share a status.
        bits: Ints = (table.pod_count[rows] >= table.pod_limit[rows]).astype(np.int64)
        never = np.zeros(len(rows), dtype=np.bool_)
        for position, (resource, amount, _name) in enumerate(self._wanted, start=1):
            short = self._is_short(table, rows, resource, amount)
            bits |= short.astype(np.int64) << position
            never |= short & (amount > table.allocatable[resource, rows])
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
    """See the module. Resources that a node lacks and a device class offers are left to DynamicResources."""

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
        wanted = [
            (resource, amount, names[resource])
            for resource, amount in columns.items()
            if amount > 0 and not self._is_ignored(names[resource])
        ]
        servable = [(resource, name) for resource, _amount, name in wanted if is_device_resource(name)]
        if not servable:
            return FitKernel(wanted)
        classes = ctx.listers.device_classes
        return FitKernel(wanted, frozenset([row for row, name in servable if is_offered(name, classes)]), classes)

    def _is_ignored(self, name: str) -> bool:
        if not (self._ignored or self._ignored_groups) or not is_extended_resource(name):
            return False
        return name in self._ignored or name.partition("/")[0] in self._ignored_groups

    def pre_score(self, ctx: CycleContext, pod: PodInfo, feasible: Mask) -> Status | None:
        return None

    def score_kernel(self, ctx: CycleContext, pod: PodInfo) -> ScoreKernel | Status:
        return strategy_kernel(ctx, self._args.scoring_strategy, pod)

    def events(self) -> Sequence[EventRegistration]:
        pod_event = ClusterEvent(Resource.POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN)
        node_event = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE)
        class_event = ClusterEvent(Resource.DEVICE_CLASS, Action.ADD | Action.UPDATE)
        return (
            EventRegistration(pod_event, _pod_freed_something),
            EventRegistration(node_event, _node_gives_more),
            EventRegistration(class_event, _class_offers_more),
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
    needed = [name for name, amount in wanted.items() if amount > 0]
    by_devices = {name for name in needed if offered.get(name, 0) <= 0 and is_offered(name, view.device_classes)}
    if any(wanted[name] > offered.get(name, 0) for name in needed if name not in by_devices):
        return QueueingHint.SKIP
    if old is None or by_devices:
        return QueueingHint.QUEUE
    before = parse_list(old.status.allocatable)
    more = any(offered.get(name, 0) > before.get(name, 0) for name in ("pods", *needed))
    return QueueingHint.QUEUE if more else QueueingHint.SKIP


def _class_offers_more(pod: Pod, old: DeviceClass | None, new: DeviceClass, view: Listers) -> QueueingHint:
    """Source: isSchedulableAfterDeviceClassEvent."""
    offered = {new.spec.extended_resource_name}
    if old is None:
        offered.add(CLASS_PREFIX + new.name)
    elif old.spec.extended_resource_name == new.spec.extended_resource_name:
        return QueueingHint.SKIP
    wanted = pod_requests(pod, use_status=False)
    return QueueingHint.QUEUE if any(name in offered for name in wanted) else QueueingHint.SKIP
