"""NodeName: a pod that names its node goes nowhere else."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from kube_pyscheduler.columns.arrays import Codes, Mask, Rows
from kube_pyscheduler.columns.node_selector import row_numbers
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_info import PodInfo
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
from kube_pyscheduler.framework.status import unresolvable
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod


class NodeNameKernel(FilterKernel):
    reads_usage = False
    statuses = (unresolvable("node(s) didn't match the requested node name"),)

    def __init__(self, node: str) -> None:
        self._node = node

    def codes(self, table: NodeTable, rows: Rows) -> Codes:
        named = table.row_of.get(self._node, -1)
        elsewhere: Mask = row_numbers(table, rows) != named
        return elsewhere.astype(np.uint8)


class NodeName(NodeFilter):
    """Source: pkg/scheduler/framework/plugins/nodename."""

    name = "NodeName"
    scope = Scope.NODE

    def fragment(self, pod: PodInfo) -> Hashable:
        return pod.pod.spec.node_name

    def filter_kernel(self, ctx: CycleContext, pod: PodInfo) -> FilterKernel | None:
        node = pod.pod.spec.node_name
        return NodeNameKernel(node) if node else None

    def events(self) -> Sequence[EventRegistration]:
        return (EventRegistration(ClusterEvent(Resource.NODE, Action.ADD), _node_came, _wanted_node),)


def _wanted_node(pod: Pod) -> Hashable:
    return pod.spec.node_name


def _node_came(pod: Pod, old: None, new: Node, view: Listers) -> QueueingHint:
    return queue_if(new.name == pod.spec.node_name)
