"""Arguments of the plugins, one struct each, as ``pluginConfig[].args`` has them.

Source: staging/src/k8s.io/kube-scheduler/config/v1/types_pluginargs.go and types.go.
"""

from __future__ import annotations

from kube_pyscheduler.config.decode import Duration
from kube_pyscheduler.config.schema import Int32, Int64, Struct
from kube_pyscheduler.objects.pod import NodeAffinity, TopologySpreadConstraint

LEAST_ALLOCATED = "LeastAllocated"
MOST_ALLOCATED = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"
SYSTEM_DEFAULTING = "System"
LIST_DEFAULTING = "List"


class ResourceSpec(Struct, frozen=True):
    name: str = ""
    weight: Int64 = 1
    """1 to 100; an explicit 0 means 1."""


CPU_AND_MEMORY = (ResourceSpec("cpu"), ResourceSpec("memory"))
"""What is scored unless resources are named. Source: defaultResourceSpec in pkg/scheduler/apis/config/v1."""


class UtilizationShapePoint(Struct, frozen=True):
    utilization: Int32 = 0
    """0 to 100, in percent."""
    score: Int32 = 0
    """0 to 10."""


class RequestedToCapacityRatioParam(Struct, frozen=True):
    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(Struct, frozen=True):
    type: str = ""
    """LeastAllocated, MostAllocated or RequestedToCapacityRatio; must be given where a strategy is."""
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None


class NodeResourcesFitArgs(Struct, frozen=True):
    ignored_resources: tuple[str, ...] = ()
    """Extended resources that the filter does not look at."""
    ignored_resource_groups: tuple[str, ...] = ()
    """The same by the part of the name before the slash."""
    scoring_strategy: ScoringStrategy = ScoringStrategy(LEAST_ALLOCATED)


class NodeResourcesBalancedAllocationArgs(Struct, frozen=True):
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY


class NodeAffinityArgs(Struct, frozen=True):
    added_affinity: NodeAffinity | None = None
    """Holds for all pods, besides their own affinity."""


class InterPodAffinityArgs(Struct, frozen=True):
    hard_pod_affinity_weight: Int32 = 1
    """0 to 100: what a required term of an existing pod is worth when scoring."""
    ignore_preferred_terms_of_existing_pods: bool = False
    """Leave these out of the score, unless the pod has affinity terms of its own."""


class DefaultConstraint(TopologySpreadConstraint, frozen=True):
    """A constraint for pods that have none. Nothing is defaulted: what is left out is a mistake."""

    max_skew: int = 0
    when_unsatisfiable: str = ""


class PodTopologySpreadArgs(Struct, frozen=True):
    default_constraints: tuple[DefaultConstraint, ...] = ()
    defaulting_type: str = SYSTEM_DEFAULTING
    """System: soft constraints on zone and host. List: ``default_constraints``."""


class VolumeBindingArgs(Struct, frozen=True):
    bind_timeout_seconds: Int64 = 600
    """How long to wait for claims to become bound; 0 is not at all."""
    shape: tuple[UtilizationShapePoint, ...] | None = None
    """Score nodes by how full their storage will be, along this line. Absent is not to score, which is all that v1.36
    does unless its gate StorageCapacityScoring is on."""


class DefaultPreemptionArgs(Struct, frozen=True):
    min_candidate_nodes_percentage: Int32 = 10
    """0 to 100: nodes to try, in percent of all…"""
    min_candidate_nodes_absolute: Int32 = 100
    """…but at least so many."""


class DynamicResourcesArgs(Struct, frozen=True):
    filter_timeout: Duration = Duration(10)
    """How long the search for devices on one node may take; 0 is without limit."""
    binding_timeout: Duration = Duration(600)
    """How long to wait for the binding conditions of devices; at least 1 s."""


ARGS: dict[str, type[Struct]] = {
    "DefaultPreemption": DefaultPreemptionArgs,
    "DynamicResources": DynamicResourcesArgs,
    "InterPodAffinity": InterPodAffinityArgs,
    "NodeAffinity": NodeAffinityArgs,
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs,
    "NodeResourcesFit": NodeResourcesFitArgs,
    "PodTopologySpread": PodTopologySpreadArgs,
    "VolumeBinding": VolumeBindingArgs,
}
"""Plugin → type of its arguments. Plugins that are not here have none, or are not ours."""
