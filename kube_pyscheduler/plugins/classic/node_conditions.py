"""CheckNodeCondition and the pressure predicates: what nodes report of themselves in ``status.conditions``.

Source: CheckNodeConditionPredicate, CheckNodeMemoryPressurePredicate, CheckNodeDiskPressurePredicate and
CheckNodePIDPressurePredicate in pkg/scheduler/algorithm/predicates of 1.9 to 1.16. Later versions look at the taints
that the node controller makes of the same conditions.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np

from kube_pyscheduler.columns.arrays import Codes, Rows
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
from kube_pyscheduler.framework.interfaces import CycleContext, FilterKernel, NodeFilter, Scope
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.framework.status import Status, unresolvable
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod, Resources
from kube_pyscheduler.objects.quantity import parse_milli
from kube_pyscheduler.plugins.classic.node_facts import NodeFacts

Conditions = tuple[tuple[str, str], ...]
"""(type, status) of each condition."""

UNSCHEDULABLE = 8
REASONS = (
    (1, "node(s) were not ready"),
    (2, "node(s) were out of disk space"),
    (4, "node(s) had unavailable network"),
    (UNSCHEDULABLE, "node(s) were unschedulable"),
)
"""Bits of the codes of CheckNodeCondition, and what they say."""

_GOOD = {"Ready": (1, "True"), "OutOfDisk": (2, "False"), "NetworkUnavailable": (4, "False")}
"""Condition → its bit, and the only status that is good; a node that does not report it is good too."""


def conditions_of(node: Node) -> Conditions:
    return tuple([(condition.type, condition.status) for condition in node.status.conditions])


class NodeConditions(NodeFacts[Conditions]):
    """Get it with ``table.attached(NodeConditions)``."""

    def __init__(self, table: NodeTable) -> None:
        super().__init__(table, conditions_of)


class ConditionKernel(FilterKernel):
    """One lookup a node: conditions are judged once per distinct list."""

    reads_usage = False
    statuses = tuple(
        unresolvable(*[reason for bit, reason in REASONS if code & bit]) for code in range(1, 2 * UNSCHEDULABLE)
    )

    def __init__(self, table: NodeTable) -> None:
        self._conditions = table.attached(NodeConditions)
        self._bad = LookupTable(self._conditions.vocabulary, bad_bits, 0, np.uint8)

    def codes(self, table: NodeTable, rows: Rows) -> Codes:
        self._conditions.sync()
        return self._bad.take(self._conditions.ids[rows]) + UNSCHEDULABLE * table.unschedulable[rows].astype(np.uint8)


def bad_bits(conditions: Conditions) -> int:
    """Bits of the conditions that keep pods away."""
    bits = 0
    for kind, status in conditions:
        bit, good = _GOOD.get(kind, (0, status))
        if status != good:
            bits |= bit
    return bits


def is_good(node: Node) -> bool:
    return not node.spec.unschedulable and not bad_bits(conditions_of(node))


class CheckNodeCondition(NodeFilter):
    """Nodes must be ready, with a network, and not cordoned; no pod tolerates anything else."""

    name = "CheckNodeCondition"
    scope = Scope.NODE

    def prepare(self, ctx: CycleContext) -> None:
        ctx.table.attached(NodeConditions).sync()

    def fragment(self, pod: PodInfo) -> Hashable:
        return None

    def filter_kernel(self, ctx: CycleContext, pod: PodInfo) -> FilterKernel | None:
        return ConditionKernel(ctx.table)

    def events(self) -> Sequence[EventRegistration]:
        action = Action.ADD | Action.UPDATE_NODE_CONDITION | Action.UPDATE_NODE_TAINT
        return (EventRegistration(ClusterEvent(Resource.NODE, action), _node_got_good, _nothing),)


class PressureKernel(FilterKernel):
    reads_usage = False

    def __init__(self, table: NodeTable, condition: str, status: Status) -> None:
        self._conditions = table.attached(NodeConditions)
        pressed = (condition, "True")
        self._refused = LookupTable(self._conditions.vocabulary, lambda found: pressed in found, False, np.uint8)
        self.statuses = (status,)

    def codes(self, table: NodeTable, rows: Rows) -> Codes:
        self._conditions.sync()
        return self._refused.take(self._conditions.ids[rows])


class _CheckNodePressure(NodeFilter):
    """Nodes must not report ``condition``."""

    scope = Scope.NODE
    condition: ClassVar[str]
    status: ClassVar[Status]

    def prepare(self, ctx: CycleContext) -> None:
        ctx.table.attached(NodeConditions).sync()

    def fragment(self, pod: PodInfo) -> Hashable:
        return None

    def filter_kernel(self, ctx: CycleContext, pod: PodInfo) -> FilterKernel | None:
        return PressureKernel(ctx.table, self.condition, self.status)

    def events(self) -> Sequence[EventRegistration]:
        event = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_CONDITION)
        return (EventRegistration(event, self._pressure_gone, _nothing),)

    def _pressure_gone(self, pod: Pod, old: Node | None, new: Node, view: Listers) -> QueueingHint:
        pressed = (self.condition, "True")
        return queue_if(pressed not in conditions_of(new) and (old is None or pressed in conditions_of(old)))


class CheckNodeMemoryPressure(_CheckNodePressure):
    """Only pods that ask for nothing are kept away."""

    name = "CheckNodeMemoryPressure"
    condition = "MemoryPressure"
    status = unresolvable("node(s) had memory pressure")

    def fragment(self, pod: PodInfo) -> Hashable:
        return pod.derived(is_best_effort)

    def filter_kernel(self, ctx: CycleContext, pod: PodInfo) -> FilterKernel | None:
        return super().filter_kernel(ctx, pod) if pod.derived(is_best_effort) else None


class CheckNodeDiskPressure(_CheckNodePressure):
    name = "CheckNodeDiskPressure"
    condition = "DiskPressure"
    status = unresolvable("node(s) had disk pressure")


class CheckNodePIDPressure(_CheckNodePressure):
    name = "CheckNodePIDPressure"
    condition = "PIDPressure"
    status = unresolvable("node(s) had pid pressure")


def is_best_effort(pod: Pod) -> bool:
    """Whether the pod asks for no CPU and no memory, and limits neither. Source: GetPodQOS."""
    spec = pod.spec
    all_resources = [container.resources for container in (*spec.init_containers, *spec.containers)]
    if spec.resources is not None:
        all_resources.append(spec.resources)
    return not any(_names_something(resources) for resources in all_resources)


def _names_something(resources: Resources) -> bool:
    return any(
        parse_milli(amounts[name]) > 0
        for amounts in (resources.requests, resources.limits)
        for name in ("cpu", "memory")
        if name in amounts
    )


def _node_got_good(pod: Pod, old: Node | None, new: Node, view: Listers) -> QueueingHint:
    return queue_if(is_good(new) and (old is None or not is_good(old)))


def _nothing(pod: Pod) -> Hashable:
    """All pods are refused alike."""
    return None
