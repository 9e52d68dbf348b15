"""The predicates and priorities of kube-scheduler 1.9 to 1.22, and the plugins that serve them.

Source: register_predicates.go and register_priorities.go in pkg/scheduler/algorithmprovider/defaults up to 1.16,
pkg/scheduler/framework/plugins/legacy_registry.go from 1.17 to 1.22.
"""

from __future__ import annotations

NODE_LABEL = "NodeLabel"
SERVICE_AFFINITY = "ServiceAffinity"
REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"

PREDICATES: dict[str, tuple[str, ...]] = {
    "CheckNodeCondition": ("CheckNodeCondition",),
    "CheckNodeUnschedulable": ("NodeUnschedulable",),
    "GeneralPredicates": ("NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity"),
    "HostName": ("NodeName",),
    "PodFitsHost": ("NodeName",),
    "PodFitsHostPorts": ("NodePorts",),
    "PodFitsPorts": ("NodePorts",),
    "MatchNodeSelector": ("NodeAffinity",),
    "PodMatchNodeSelector": ("NodeAffinity",),
    "PodFitsResources": ("NodeResourcesFit",),
    "NoDiskConflict": ("VolumeRestrictions",),
    "PodToleratesNodeTaints": ("TaintToleration",),
    "PodToleratesNodeNoExecuteTaints": ("TaintToleration",),
    "CheckNodeLabelPresence": (NODE_LABEL,),
    "CheckServiceAffinity": (SERVICE_AFFINITY,),
    "MaxEBSVolumeCount": ("MaxEBSVolumeCount",),
    "MaxGCEPDVolumeCount": ("MaxGCEPDVolumeCount",),
    "MaxCSIVolumeCountPred": ("NodeVolumeLimits",),
    "MaxCSIVolumeCount": ("NodeVolumeLimits",),
    "MaxAzureDiskVolumeCount": ("MaxAzureDiskVolumeCount",),
    "MaxCinderVolumeCount": ("MaxCinderVolumeCount",),
    "CheckVolumeBinding": ("VolumeBinding",),
    "NoVolumeNodeConflict": ("VolumeBinding",),
    "NoVolumeZoneConflict": ("VolumeZone",),
    "CheckNodeMemoryPressure": ("CheckNodeMemoryPressure",),
    "CheckNodePIDPressure": ("CheckNodePIDPressure",),
    "CheckNodeDiskPressure": ("CheckNodeDiskPressure",),
    "EvenPodsSpread": ("PodTopologySpread",),
    "MatchInterPodAffinity": ("InterPodAffinity",),
}
"""Predicate → plugins, in the order in which predicates ran. Source: predicatesOrdering."""

PRIORITIES: dict[str, str] = {
    "SelectorSpreadPriority": "SelectorSpread",
    "ServiceSpreadingPriority": "ServiceSpreading",
    "InterPodAffinityPriority": "InterPodAffinity",
    "LeastRequestedPriority": "NodeResourcesFit",
    "MostRequestedPriority": "NodeResourcesMostAllocated",
    "RequestedToCapacityRatioPriority": REQUESTED_TO_CAPACITY_RATIO,
    "BalancedResourceAllocation": "BalancedResourceAllocation",
    "NodePreferAvoidPodsPriority": "NodePreferAvoidPods",
    "NodeAffinityPriority": "NodeAffinity",
    "TaintTolerationPriority": "TaintToleration",
    "ImageLocalityPriority": "ImageLocality",
    "ResourceLimitsPriority": "NodeResourceLimits",
    "EvenPodsSpreadPriority": "PodTopologySpread",
    "EqualPriority": "EqualPriority",
}
"""Priority → plugin."""

MANDATORY_PREDICATES = ("CheckNodeUnschedulable", "PodToleratesNodeTaints")
"""They run whether a file names them or not: what a node reports reaches pods as taints."""

DEFAULT_PREDICATES = (
    "NoVolumeZoneConflict",
    "MaxEBSVolumeCount",
    "MaxGCEPDVolumeCount",
    "MaxAzureDiskVolumeCount",
    "MaxCSIVolumeCountPred",
    "MatchInterPodAffinity",
    "NoDiskConflict",
    "GeneralPredicates",
    "PodToleratesNodeTaints",
    "CheckVolumeBinding",
    "CheckNodeUnschedulable",
    "EvenPodsSpread",
)
"""What a file without ``predicates`` means; an empty list means the mandatory ones alone."""

DEFAULT_PRIORITIES: dict[str, int] = {
    "SelectorSpreadPriority": 1,
    "InterPodAffinityPriority": 1,
    "LeastRequestedPriority": 1,
    "BalancedResourceAllocation": 1,
    "NodePreferAvoidPodsPriority": 10000,
    "NodeAffinityPriority": 1,
    "TaintTolerationPriority": 1,
    "ImageLocalityPriority": 1,
    "EvenPodsSpreadPriority": 2,
}
"""What a file without ``priorities`` means: priority → weight."""

_PRE_FILTER = ("pre_filter", "filter")
FILTER_POINTS: dict[str, tuple[str, ...]] = {
    "InterPodAffinity": _PRE_FILTER,
    "NodeAffinity": _PRE_FILTER,
    "NodePorts": _PRE_FILTER,
    "NodeResourcesFit": _PRE_FILTER,
    "NodeVolumeLimits": _PRE_FILTER,
    "PodTopologySpread": _PRE_FILTER,
    "VolumeBinding": (*_PRE_FILTER, "reserve", "pre_bind"),
    "VolumeRestrictions": _PRE_FILTER,
    "VolumeZone": _PRE_FILTER,
}
"""Where a plugin is enabled for a predicate, if not at ``filter`` alone."""

_PRE_SCORE = ("pre_score", "score")
SCORE_POINTS: dict[str, tuple[str, ...]] = {
    "InterPodAffinity": _PRE_SCORE,
    "NodeAffinity": _PRE_SCORE,
    "NodeResourcesFit": _PRE_SCORE,
    "PodTopologySpread": _PRE_SCORE,
    "SelectorSpread": _PRE_SCORE,
    SERVICE_AFFINITY: _PRE_SCORE,
    "ServiceSpreading": _PRE_SCORE,
    "TaintToleration": _PRE_SCORE,
}
"""Where a plugin is enabled for a priority, if not at ``score`` alone."""
