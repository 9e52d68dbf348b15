"""NodeResourceLimits: a little more for nodes that are as large as the pod's limits.

Source: pkg/scheduler/framework/plugins/noderesources/resource_limits.go of 1.19, and ResourceLimitsPriorityMap before
(behind the gate ResourceLimitsPriorityFunction).
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from kube_pyscheduler.columns.arrays import Rows, Scores
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.columns.resources import CPU, MEMORY
from kube_pyscheduler.framework.interfaces import CycleContext, NodeScore, Scope, ScoreKernel
from kube_pyscheduler.framework.status import Status
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.objects.quantity import parse_milli, to_milli, to_units


class LimitsKernel(ScoreKernel):
    """1 where the CPU limit or the memory limit fits a node, else 0. ``cpu``: milli-CPU. ``memory``: bytes. 0 is no
    limit."""

    reads_usage = False
    dtype = np.int8

    def __init__(self, cpu: int, memory: int) -> None:
        self._limits = [(resource, limit) for resource, limit in ((CPU, cpu), (MEMORY, memory)) if limit]

    def scores(self, table: NodeTable, rows: Rows) -> Scores:
        fits = np.zeros(len(table.alive[rows]), dtype=np.bool_)
        for resource, limit in self._limits:
            fits |= limit <= table.allocatable[resource, rows]
        return fits.astype(np.int64)


class NodeResourceLimits(NodeScore):
    name = "NodeResourceLimits"
    scope = Scope.NODE

    def fragment(self, pod: PodInfo) -> Hashable:
        return pod.derived(limits_of)

    def score_kernel(self, ctx: CycleContext, pod: PodInfo) -> ScoreKernel | Status:
        return LimitsKernel(*pod.derived(limits_of))


def limits_of(pod: Pod) -> tuple[int, int]:
    """(milli-CPU, bytes): the sum of the containers, or the largest init container if that is more."""
    cpu, memory = (_limit(pod, name) for name in ("cpu", "memory"))
    return to_milli(cpu), to_units(memory)


def _limit(pod: Pod, name: str) -> int:
    together = sum(parse_milli(container.resources.limits.get(name, 0)) for container in pod.spec.containers)
    alone = [parse_milli(container.resources.limits.get(name, 0)) for container in pod.spec.init_containers]
    return max([together, *alone])
