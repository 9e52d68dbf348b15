"""Scoring strategies of NodeResourcesFit as plugins of their own, so that several may be weighed against each other.

They were that up to kube-scheduler 1.22, and are off unless a configuration names them.
Source: most_allocated.go and requested_to_capacity_ratio.go in pkg/scheduler/framework/plugins/noderesources of 1.22.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.config.args import (
    CPU_AND_MEMORY,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    NodeResourcesFitArgs,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from kube_pyscheduler.config.decode import read_struct
from kube_pyscheduler.config.defaults import complete_args
from kube_pyscheduler.config.errors import Problems
from kube_pyscheduler.config.schema import Struct
from kube_pyscheduler.config.validate_args import validate_args
from kube_pyscheduler.framework.interfaces import CycleContext, NodeScore, Scope, ScoreKernel
from kube_pyscheduler.framework.status import Status
from kube_pyscheduler.plugins.node_resources.allocation import strategy_kernel

ARGS = "args"
"""What problems are said to be in."""

LEAST_REQUESTED = (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))
"""The shape where none is given. Source: defaultFunctionShape in requested_to_capacity_ratio.go of 1.11 to 1.16."""


class NodeResourcesMostAllocatedArgs(Struct, frozen=True):
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY


class RequestedToCapacityRatioArgs(Struct, frozen=True):
    shape: tuple[UtilizationShapePoint, ...] = LEAST_REQUESTED
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY


class _Strategy(NodeScore):
    scope = Scope.NODE

    def __init__(self, strategy: ScoringStrategy) -> None:
        """Raises ConfigError."""
        fit = complete_args(NodeResourcesFitArgs(scoring_strategy=strategy))
        problems = Problems()
        validate_args(fit, ARGS, problems)
        problems.raise_if_any()
        assert isinstance(fit, NodeResourcesFitArgs)
        self._strategy = fit.scoring_strategy

    def fragment(self, pod: PodInfo) -> Hashable:
        return pod.demand.scored_request

    def score_kernel(self, ctx: CycleContext, pod: PodInfo) -> ScoreKernel | Status:
        return strategy_kernel(ctx, self._strategy, pod)


class NodeResourcesMostAllocated(_Strategy):
    """The fuller the node, the better."""

    name = "NodeResourcesMostAllocated"

    def __init__(self, args: Any = None) -> None:
        read = read_struct(NodeResourcesMostAllocatedArgs, args, ARGS)
        super().__init__(ScoringStrategy(MOST_ALLOCATED, read.resources))


class RequestedToCapacityRatio(_Strategy):
    """As a broken line from utilisation to score says."""

    name = "RequestedToCapacityRatio"

    def __init__(self, args: Any = None) -> None:
        read = read_struct(RequestedToCapacityRatioArgs, args, ARGS)
        ratio = RequestedToCapacityRatioParam(read.shape)
        super().__init__(ScoringStrategy(REQUESTED_TO_CAPACITY_RATIO, read.resources, ratio))
