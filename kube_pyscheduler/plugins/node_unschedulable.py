"""NodeUnschedulable: cordoned nodes take no pods but those that tolerate it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from kube_pyscheduler.columns.arrays import Codes, Rows
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
from kube_pyscheduler.objects.tolerations import UNSCHEDULABLE_TAINT, tolerated


class NodeUnschedulableKernel(FilterKernel):
    reads_usage = False
    statuses = (unresolvable("node(s) were unschedulable"),)

    def codes(self, table: NodeTable, rows: Rows) -> Codes:
        return table.unschedulable[rows].astype(np.uint8)


class NodeUnschedulable(NodeFilter):
    """Source: pkg/scheduler/framework/plugins/nodeunschedulable."""

    name = "NodeUnschedulable"
    scope = Scope.NODE

    def fragment(self, pod: PodInfo) -> Hashable:
        return _tolerates(pod.pod)

    def filter_kernel(self, ctx: CycleContext, pod: PodInfo) -> FilterKernel | None:
        return None if _tolerates(pod.pod) else NodeUnschedulableKernel()

    def events(self) -> Sequence[EventRegistration]:
        return (
            EventRegistration(
                ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT), _node_opened, _tolerates
            ),
            EventRegistration(ClusterEvent(Resource.POD, Action.UPDATE_POD_TOLERATION), _pod_tolerates, _tolerates),
        )


def _tolerates(pod: Pod) -> bool:
    return tolerated(pod.spec.tolerations, UNSCHEDULABLE_TAINT)


def _node_opened(pod: Pod, old: Node | None, new: Node, view: Listers) -> QueueingHint:
    return queue_if(not new.spec.unschedulable and (old is None or old.spec.unschedulable))


def _pod_tolerates(pod: Pod, old: Pod, new: Pod, view: Listers) -> QueueingHint:
    return queue_if(new.uid == pod.uid and _tolerates(new))
