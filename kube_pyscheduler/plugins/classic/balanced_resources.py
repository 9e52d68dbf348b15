"""BalancedResourceAllocation as it was: nodes whose CPU and memory would be used evenly.

NodeResourcesBalancedAllocation of today scores how much a pod changes the balance instead.

Source: balancedResourceScorer in pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go of 1.21, and
balanced_resource_allocation.go in pkg/scheduler/algorithm/priorities before.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from kube_pyscheduler.columns.arrays import Floats, Rows, Scores
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.columns.resources import CPU, MEMORY
from kube_pyscheduler.framework.interfaces import MAX_NODE_SCORE, CycleContext, NodeScore, Scope, ScoreKernel
from kube_pyscheduler.framework.status import Status


class BalanceKernel(ScoreKernel):
    """100 × (1 − |share of CPU − share of memory|); 0 where one of them would be used up. ``cpu``: milli-CPU.
    ``memory``: bytes."""

    dtype = np.int8

    def __init__(self, cpu: int, memory: int) -> None:
        self._requests = (CPU, cpu), (MEMORY, memory)

    def scores(self, table: NodeTable, rows: Rows) -> Scores:
        cpu, memory = [self._share(table, rows, resource, request) for resource, request in self._requests]
        scores = ((1 - np.abs(cpu - memory)) * float(MAX_NODE_SCORE)).astype(np.int64)
        return np.where((cpu >= 1) | (memory >= 1), 0, scores)

    @staticmethod
    def _share(table: NodeTable, rows: Rows, resource: int, request: int) -> Floats:
        """float64[len(rows)]; 1 on nodes that do not have the resource."""
        capacity = table.allocatable[resource, rows]
        taken = (table.nonzero_requested[resource, rows] + request).astype(np.float64)
        return np.where(capacity == 0, 1.0, taken / np.where(capacity == 0, 1, capacity))


class BalancedResourceAllocation(NodeScore):
    name = "BalancedResourceAllocation"
    scope = Scope.NODE

    def fragment(self, pod: PodInfo) -> Hashable:
        return pod.demand.non_zero

    def score_kernel(self, ctx: CycleContext, pod: PodInfo) -> ScoreKernel | Status:
        return BalanceKernel(*pod.demand.non_zero)
