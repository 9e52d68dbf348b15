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
from kube_pyscheduler.objects.quantity import parse_list
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
            EventRegistration(pod_event, self._after_pod, _waiting_for),
            EventRegistration(node_event, self._after_node, _waiting_for),
            EventRegistration(class_event, _after_class, _waiting_for),
        )

    def _after_pod(self, pod: Pod, old: Pod, new: Pod | None, view: Listers) -> QueueingHint:
        """Upstream asks no more than whether something of a resource was freed that the pod wants, wherever it was."""
        if new is not None and new.uid == pod.uid:
            return QueueingHint.QUEUE
        node = old.spec.node_name or old.status.nominated_node_name
        if not node or (new is not None and not _gives_back(old, new, pod)):
            return QueueingHint.SKIP
        return queue_if(self._may_fit(pod, node, view))

    def _after_node(self, pod: Pod, old: Node | None, new: Node, view: Listers) -> QueueingHint:
        return queue_if((old is None or _grew(old, new, pod, view)) and self._may_fit(pod, new.name, view))

    def _may_fit(self, pod: Pod, node: str, view: Listers) -> bool:
        """Whether there is room on the node now, or would be without the pods that this one may send away."""
        table = view.nodes
        row = table.row_of.get(node)
        if row is None or not table.alive[row]:
            return False
        free: dict[int, int] = {}
        for resource, amount in column_amounts(PodInfo(pod).demand.request, table.resources).items():
            name = table.resources.values[resource]
            # Before the column is read: it may be made only now.
            place = table.resource_row(name)
            there = table.allocatable.item(place, row)
            if not amount or self._is_ignored(name) or (there <= 0 and is_offered(name, view.device_classes)):
                continue
            if amount > there:
                return False
            free[resource] = there - amount
        others = table.pods[row].values()
        staying = others if pod.spec.preemption_policy == "Never" else [o for o in others if _stays(o, pod)]
        if len(staying) >= table.pod_limit.item(row):
            return False
        for info in staying:
            for resource, amount in info.demand.columns(table.resources).items():
                if resource in free:
                    free[resource] -= amount
        return min(free.values(), default=0) >= 0


def _waiting_for(pod: Pod) -> Hashable:
    """What the hints read of a waiting pod."""
    return PodInfo(pod).demand.request_items, pod.priority, pod.spec.preemption_policy


def _stays(other: PodInfo, pod: Pod) -> bool:
    return other.pod.priority >= pod.priority


def _gives_back(old: Pod, new: Pod, pod: Pod) -> bool:
    """Whether a pod that was resized has less than before of something that this one wants."""
    before, after = pod_requests(old, use_status=True), pod_requests(new, use_status=True)
    wanted = PodInfo(pod).demand.request
    return any(amount and before.get(name, 0) > after.get(name, 0) for name, amount in wanted.items())


def _grew(old: Node, new: Node, pod: Pod, view: Listers) -> bool:
    """Whether a node has more of something that the pod wants, or leaves it to devices."""
    before, after = parse_list(old.status.allocatable), parse_list(new.status.allocatable)
    needed = [name for name, amount in PodInfo(pod).demand.request.items() if amount > 0]
    if any(after.get(name, 0) > before.get(name, 0) for name in ("pods", *needed)):
        return True
    return any(
        after.get(name, 0) <= 0 < before.get(name, 0) and is_offered(name, view.device_classes) for name in needed
    )


def _after_class(pod: Pod, old: DeviceClass | None, new: DeviceClass, view: Listers) -> QueueingHint:
    """Source: isSchedulableAfterDeviceClassEvent."""
    offered = {new.spec.extended_resource_name}
    if old is None:
        offered.add(CLASS_PREFIX + new.name)
    elif old.spec.extended_resource_name == new.spec.extended_resource_name:
        return QueueingHint.SKIP
    return queue_if(any(name in offered for name in PodInfo(pod).demand.request))
