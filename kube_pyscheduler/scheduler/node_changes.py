"""What an update changed about a node, as far as it may let somebody be scheduled.

Source: NodeSchedulingPropertiesChange in pkg/scheduler/framework/events.go.
"""

from __future__ import annotations

from kube_pyscheduler.framework.cluster_event import Action, ClusterEvent, Resource
from kube_pyscheduler.objects.node import Node

NODE_ADD = ClusterEvent(Resource.NODE, Action.ADD)
NODE_DELETE = ClusterEvent(Resource.NODE, Action.DELETE)
NODE_UPDATE = {
    action: ClusterEvent(Resource.NODE, action)
    for action in (
        Action.UPDATE_NODE_ALLOCATABLE,
        Action.UPDATE_NODE_LABEL,
        Action.UPDATE_NODE_TAINT,
        Action.UPDATE_NODE_CONDITION,
        Action.UPDATE_NODE_ANNOTATION,
        Action.UPDATE_NODE_DECLARED_FEATURE,
    )
}


def node_changes(old: Node, new: Node) -> list[Action]:
    """One action for each kind of change. Heartbeats are none."""
    found = []
    if old.status.allocatable != new.status.allocatable:
        found.append(Action.UPDATE_NODE_ALLOCATABLE)
    if old.metadata.labels != new.metadata.labels:
        found.append(Action.UPDATE_NODE_LABEL)
    is_uncordoned = old.spec.unschedulable and not new.spec.unschedulable
    if is_uncordoned or old.spec.taints != new.spec.taints:
        found.append(Action.UPDATE_NODE_TAINT)
    if _conditions(old) != _conditions(new):
        found.append(Action.UPDATE_NODE_CONDITION)
    if old.metadata.annotations != new.metadata.annotations:
        found.append(Action.UPDATE_NODE_ANNOTATION)
    if old.status.declared_features != new.status.declared_features:
        found.append(Action.UPDATE_NODE_DECLARED_FEATURE)
    return found


def _conditions(node: Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions}
