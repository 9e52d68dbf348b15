from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kube_pyscheduler.columns.arrays import Codes, Rows
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.framework.interfaces import CycleContext, FilterKernel, NodeFilter
from tests.builders import make_node, make_pod
from tests.clusters import Cluster


class Kernel(FilterKernel):
    def __init__(self, last_resort: Sequence[int]) -> None:
        self.last_resort = last_resort

    def codes(self, table: NodeTable, rows: Rows) -> Codes:
        return np.zeros(len(table.alive[rows]), dtype=np.uint8)


class Reluctant(NodeFilter):
    """Takes some nodes only if it must."""

    name = "Reluctant"

    def __init__(self, *nodes: str) -> None:
        self.nodes = nodes
        self.prepared: list[int] = []

    def prepare(self, ctx: CycleContext) -> None:
        self.prepared.append(ctx.table.node_count)

    def filter_kernel(self, ctx: CycleContext, pod: PodInfo) -> FilterKernel | None:
        return Kernel([ctx.table.row_of[node] for node in self.nodes])


def test_plugins_are_prepared_with_everything_there() -> None:
    cluster = Cluster([make_node("n1"), make_node("n2")])
    plugin = Reluctant()
    cluster.add_filter(plugin)
    cluster.engine.prepare([cluster.profile])
    assert plugin.prepared == [2]


def test_a_last_resort_is_taken_when_nothing_else_fits() -> None:
    cluster = Cluster([make_node("n1"), make_node("n2"), make_node("n3", unschedulable=True)])
    cluster.add_filter(Reluctant("n1"))
    assert cluster.fit(make_pod()) == {"n2"}
    assert {cluster.schedule(make_pod(), seed).node for seed in range(8)} == {"n2"}
    cluster.cache.set_node(make_node("n2", unschedulable=True))
    assert cluster.fit(make_pod()) == {"n1"}
    assert cluster.schedule(make_pod()).node == "n1"
