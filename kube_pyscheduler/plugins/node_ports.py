"""NodePorts: a host port belongs to one pod per address and protocol."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from kube_pyscheduler.columns.arrays import Codes, Rows
from kube_pyscheduler.columns.host_ports import conflicts
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_info import HostPort, PodInfo
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
    PreFilter,
    PreFilterResult,
    Scope,
)
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.framework.status import SKIP, Status, unschedulable
from kube_pyscheduler.objects.pod import Pod


class NodePortsKernel(FilterKernel):
    """Cost: the rows where one of the wanted ports is in use, not the rows asked about."""

    statuses = (unschedulable("node(s) didn't have free ports for the requested pod ports"),)

    def __init__(self, wanted: tuple[HostPort, ...]) -> None:
        self._wanted = wanted

    def codes(self, table: NodeTable, rows: Rows) -> Codes:
        taken = np.zeros(table.high, dtype=np.uint8)
        for address, protocol, port in self._wanted:
            for row, used in table.host_ports.rows_using(protocol, port).items():
                if conflicts(address, used):
                    taken[row] = 1
        return taken[rows]


class NodePorts(PreFilter, NodeFilter):
    """Source: pkg/scheduler/framework/plugins/nodeports."""

    name = "NodePorts"
    scope = Scope.NODE

    def fragment(self, pod: PodInfo) -> Hashable:
        return pod.host_ports

    def pre_filter(self, ctx: CycleContext, pod: PodInfo) -> PreFilterResult | Status | None:
        return None if pod.host_ports else SKIP

    def filter_kernel(self, ctx: CycleContext, pod: PodInfo) -> FilterKernel | None:
        return NodePortsKernel(pod.host_ports) if pod.host_ports else None

    def events(self) -> Sequence[EventRegistration]:
        return (
            EventRegistration(ClusterEvent(Resource.POD, Action.DELETE), _port_freed, _wanted_ports),
            EventRegistration(ClusterEvent(Resource.NODE, Action.ADD)),
        )


def _wanted_ports(pod: Pod) -> Hashable:
    return PodInfo(pod).host_ports


def _port_freed(pod: Pod, old: Pod, new: Pod | None, view: Listers) -> QueueingHint:
    if not old.spec.node_name and not old.status.nominated_node_name:
        return QueueingHint.SKIP
    freed = PodInfo(old).host_ports
    wanted = PodInfo(pod).host_ports
    helps = any(
        (protocol, port) == (freed_protocol, freed_port) and conflicts(address, {freed_address: 1})
        for address, protocol, port in wanted
        for freed_address, freed_protocol, freed_port in freed
    )
    return queue_if(helps)
