"""EqualPriority: the same score for every node, so that only what else is scored decides.

Source: EqualPriorityMap in pkg/scheduler/core/generic_scheduler.go of 1.9 to 1.16.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from kube_pyscheduler.columns.arrays import Rows, Scores
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.framework.interfaces import CycleContext, NodeScore, Scope, ScoreKernel
from kube_pyscheduler.framework.status import Status


class EqualKernel(ScoreKernel):
    reads_usage = False
    dtype = np.int8

    def scores(self, table: NodeTable, rows: Rows) -> Scores:
        return np.ones(len(table.alive[rows]), dtype=np.int64)


class EqualPriority(NodeScore):
    name = "EqualPriority"
    scope = Scope.NODE

    def fragment(self, pod: PodInfo) -> Hashable:
        return None

    def score_kernel(self, ctx: CycleContext, pod: PodInfo) -> ScoreKernel | Status:
        return EqualKernel()
