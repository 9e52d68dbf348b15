"""The in-tree plugins, one module or folder each; ``IN_TREE`` is the only list of them.

Plugins know nothing of each other; what two share moves down to ``columns``. Only wiring imports this package.
"""

from __future__ import annotations

from kube_pyscheduler.framework.registry import Registry
from kube_pyscheduler.plugins.classic.balanced_resources import BalancedResourceAllocation
from kube_pyscheduler.plugins.classic.equal_priority import EqualPriority
from kube_pyscheduler.plugins.classic.node_conditions import (
    CheckNodeCondition,
    CheckNodeDiskPressure,
    CheckNodeMemoryPressure,
    CheckNodePIDPressure,
)
from kube_pyscheduler.plugins.classic.node_label import NodeLabel
from kube_pyscheduler.plugins.classic.node_prefer_avoid_pods import NodePreferAvoidPods
from kube_pyscheduler.plugins.classic.resource_limits import NodeResourceLimits
from kube_pyscheduler.plugins.classic.selector_spread import SelectorSpread, ServiceSpreading
from kube_pyscheduler.plugins.classic.service_affinity import ServiceAffinity
from kube_pyscheduler.plugins.classic.volume_counts import (
    MaxAzureDiskVolumeCount,
    MaxCinderVolumeCount,
    MaxEBSVolumeCount,
    MaxGCEPDVolumeCount,
)
from kube_pyscheduler.plugins.default_binder import DefaultBinder
from kube_pyscheduler.plugins.default_preemption.plugin import DefaultPreemption
from kube_pyscheduler.plugins.dynamic_resources.plugin import DynamicResources
from kube_pyscheduler.plugins.image_locality import ImageLocality
from kube_pyscheduler.plugins.inter_pod_affinity.plugin import InterPodAffinity
from kube_pyscheduler.plugins.node_affinity import NodeAffinity
from kube_pyscheduler.plugins.node_declared_features import NodeDeclaredFeatures
from kube_pyscheduler.plugins.node_name import NodeName
from kube_pyscheduler.plugins.node_ports import NodePorts
from kube_pyscheduler.plugins.node_resources.balanced import NodeResourcesBalancedAllocation
from kube_pyscheduler.plugins.node_resources.fit import NodeResourcesFit
from kube_pyscheduler.plugins.node_resources.strategies import NodeResourcesMostAllocated, RequestedToCapacityRatio
from kube_pyscheduler.plugins.node_unschedulable import NodeUnschedulable
from kube_pyscheduler.plugins.node_volume_limits.plugin import NodeVolumeLimits
from kube_pyscheduler.plugins.pod_topology_spread.plugin import PodTopologySpread
from kube_pyscheduler.plugins.priority_sort import PrioritySort
from kube_pyscheduler.plugins.scheduling_gates import SchedulingGates
from kube_pyscheduler.plugins.taint_toleration import TaintToleration
from kube_pyscheduler.plugins.volume_binding.plugin import VolumeBinding
from kube_pyscheduler.plugins.volume_restrictions.plugin import VolumeRestrictions
from kube_pyscheduler.plugins.volume_zone.plugin import VolumeZone

IN_TREE: Registry = {
    "SchedulingGates": lambda _args: SchedulingGates(),
    "PrioritySort": lambda _args: PrioritySort(),
    "NodeUnschedulable": lambda _args: NodeUnschedulable(),
    "NodeName": lambda _args: NodeName(),
    "TaintToleration": lambda _args: TaintToleration(),
    "NodeAffinity": NodeAffinity,
    "NodePorts": lambda _args: NodePorts(),
    "NodeResourcesFit": NodeResourcesFit,
    "PodTopologySpread": PodTopologySpread,
    "InterPodAffinity": InterPodAffinity,
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocation,
    "VolumeRestrictions": lambda _args: VolumeRestrictions(),
    "NodeVolumeLimits": lambda _args: NodeVolumeLimits(),
    "VolumeBinding": VolumeBinding,
    "VolumeZone": lambda _args: VolumeZone(),
    "ImageLocality": lambda _args: ImageLocality(),
    "NodeDeclaredFeatures": lambda _args: NodeDeclaredFeatures(),
    "DynamicResources": DynamicResources,
    "DefaultPreemption": DefaultPreemption,
    "DefaultBinder": lambda _args: DefaultBinder(),
    # Off unless a configuration names them.
    "SelectorSpread": lambda _args: SelectorSpread(),
    "ServiceSpreading": lambda _args: ServiceSpreading(),
    "ServiceAffinity": ServiceAffinity,
    "NodeLabel": NodeLabel,
    "NodePreferAvoidPods": lambda _args: NodePreferAvoidPods(),
    "EqualPriority": lambda _args: EqualPriority(),
    "NodeResourcesMostAllocated": NodeResourcesMostAllocated,
    "RequestedToCapacityRatio": RequestedToCapacityRatio,
    "BalancedResourceAllocation": lambda _args: BalancedResourceAllocation(),
    "NodeResourceLimits": lambda _args: NodeResourceLimits(),
    "CheckNodeCondition": lambda _args: CheckNodeCondition(),
    "CheckNodeMemoryPressure": lambda _args: CheckNodeMemoryPressure(),
    "CheckNodeDiskPressure": lambda _args: CheckNodeDiskPressure(),
    "CheckNodePIDPressure": lambda _args: CheckNodePIDPressure(),
    "MaxEBSVolumeCount": lambda _args: MaxEBSVolumeCount(),
    "MaxGCEPDVolumeCount": lambda _args: MaxGCEPDVolumeCount(),
    "MaxAzureDiskVolumeCount": lambda _args: MaxAzureDiskVolumeCount(),
    "MaxCinderVolumeCount": lambda _args: MaxCinderVolumeCount(),
}
"""Plugin name → factory."""
