"""Plugins that do nothing, with the names and extension points of v1.36."""

from __future__ import annotations

from typing import Any

from kube_pyscheduler.framework.interfaces import (
    Bind,
    NodeFilter,
    NodeScore,
    Permit,
    Plugin,
    PostBind,
    PostFilter,
    PreBind,
    PreEnqueue,
    PreFilter,
    PreScore,
    QueueSort,
    Reserve,
)
from kube_pyscheduler.framework.registry import Registry

POINTS: dict[str, tuple[type[Plugin], ...]] = {
    "SchedulingGates": (PreEnqueue,),
    "PrioritySort": (QueueSort,),
    "NodeUnschedulable": (NodeFilter,),
    "NodeName": (NodeFilter,),
    "TaintToleration": (NodeFilter, PreScore, NodeScore),
    "NodeAffinity": (PreFilter, NodeFilter, PreScore, NodeScore),
    "NodePorts": (PreFilter, NodeFilter),
    "NodeResourcesFit": (PreFilter, NodeFilter, PreScore, NodeScore),
    "VolumeRestrictions": (PreFilter, NodeFilter),
    "NodeVolumeLimits": (PreFilter, NodeFilter),
    "VolumeBinding": (PreFilter, NodeFilter, PreScore, NodeScore, Reserve, PreBind),
    "VolumeZone": (PreFilter, NodeFilter),
    "PodTopologySpread": (PreFilter, NodeFilter, PreScore, NodeScore),
    "InterPodAffinity": (PreFilter, NodeFilter, PreScore, NodeScore),
    "DynamicResources": (PreEnqueue, PreFilter, NodeFilter, PostFilter, NodeScore, Reserve, PreBind),
    "DefaultPreemption": (PreEnqueue, PostFilter),
    "NodeResourcesBalancedAllocation": (PreScore, NodeScore),
    "ImageLocality": (NodeScore,),
    "DefaultBinder": (Bind,),
    "NodeDeclaredFeatures": (PreFilter, NodeFilter),
    "Everything": (
        PreEnqueue,
        PreFilter,
        NodeFilter,
        PostFilter,
        PreScore,
        NodeScore,
        Reserve,
        Permit,
        PreBind,
        PostBind,
    ),
    "AnotherSort": (QueueSort,),
}


def stub(name: str, *points: type[Plugin]) -> type[Plugin]:
    """A class of that name whose methods are all there and never called; its instances remember their ``args``."""

    def initialize(self: Any, args: Any) -> None:
        self.args = args

    abstract = {method for point in points for method in getattr(point, "__abstractmethods__", ())}
    body: dict[str, Any] = {"name": name, "__init__": initialize}
    body.update({method: lambda *_args: None for method in abstract})
    return type(name, points, body)


REGISTRY: Registry = {name: stub(name, *points) for name, points in POINTS.items()}
