"""NodeResourcesBalancedAllocation: nodes whose resources will be used evenly.

Source: pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go.
"""

from __future__ import annotations

from collections.abc import Hashable

from kube_pyscheduler.columns.arrays import Mask
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.config.args import NodeResourcesBalancedAllocationArgs
from kube_pyscheduler.framework.interfaces import CycleContext, NodeScore, PreScore, Scope, ScoreKernel
from kube_pyscheduler.framework.status import SKIP, Status, error
from kube_pyscheduler.objects.quantity import to_milli, to_units
from kube_pyscheduler.plugins.node_resources.allocation import BalancedKernel, scored_resources


class NodeResourcesBalancedAllocation(PreScore, NodeScore):
    """See the module."""

    name = "NodeResourcesBalancedAllocation"
    scope = Scope.NODE

    def __init__(self, args: NodeResourcesBalancedAllocationArgs | None = None) -> None:
        self._resources = (args or NodeResourcesBalancedAllocationArgs()).resources

    def fragment(self, pod: PodInfo) -> Hashable:
        return pod.demand.charge_items

    def pre_score(self, ctx: CycleContext, pod: PodInfo, feasible: Mask) -> Status | None:
        """Pods that ask for nothing would all go to the same node."""
        amounts = pod.demand.charge
        for spec in self._resources:
            milli = amounts.get(spec.name, 0)
            if to_milli(milli) if spec.name == "cpu" else to_units(milli):
                return None
        return SKIP

    def score_kernel(self, ctx: CycleContext, pod: PodInfo) -> ScoreKernel | Status:
        if not self._resources:
            return error("resources not found")
        return BalancedKernel(scored_resources(ctx, self._resources, pod.demand.charge))
