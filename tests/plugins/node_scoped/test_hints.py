"""Both answers of every hint of the node-scoped plugins."""

from __future__ import annotations

from typing import Any

import pytest

from kube_pyscheduler.framework.cluster_event import Action, QueueingHint, Resource
from kube_pyscheduler.framework.interfaces import Plugin
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.plugins import IN_TREE
from tests.builders import make_node, make_pod


def ask(plugin: str, resource: Resource, action: Action, pod: Any, old: Any, new: Any) -> QueueingHint:
    """What the plugin's registration for this event says; the registration must exist."""
    made: Plugin = IN_TREE[plugin](None)
    matching = [r for r in made.events() if r.event.resource == resource and r.event.action & action]
    assert len(matching) == 1
    hint = matching[0].hint
    return QueueingHint.QUEUE if hint is None else hint(pod, old, new, Listers())


WAITING = make_pod("waiting", requests={"cpu": "2"})
TOLERANT = make_pod("waiting", tolerations=[{"key": "k", "operator": "Exists"}])
PORTED = make_pod("waiting", containers=[{"name": "c", "ports": [{"hostPort": 80}]}])
TAINTED = make_node("n", taints=[{"key": "k", "effect": "NoSchedule"}])
CORDONED = make_node("n", unschedulable=True)
SELECTIVE = make_pod("waiting", nodeSelector={"disk": "ssd"})
FEATURED = make_pod("waiting", hostNetwork=True, hostUsers=False)


def port_holder(number: int, node: str = "n") -> Any:
    return make_pod("holder", node=node, containers=[{"name": "c", "ports": [{"hostPort": number}]}])


@pytest.mark.parametrize(
    ("plugin", "resource", "action", "pod", "old", "new", "queues"),
    [
        ("NodeName", Resource.NODE, Action.ADD, WAITING, None, make_node(), True),
        ("NodeUnschedulable", Resource.NODE, Action.ADD, WAITING, None, make_node(), True),
        ("NodeUnschedulable", Resource.NODE, Action.ADD, WAITING, None, CORDONED, False),
        ("NodeUnschedulable", Resource.NODE, Action.UPDATE_NODE_TAINT, WAITING, CORDONED, make_node("n"), True),
        ("NodeUnschedulable", Resource.NODE, Action.UPDATE_NODE_TAINT, WAITING, make_node("n"), make_node("n"), False),
        (
            "NodeUnschedulable",
            Resource.POD,
            Action.UPDATE_POD_TOLERATION,
            WAITING,
            WAITING,
            make_pod("waiting", tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]),
            True,
        ),
        ("NodeUnschedulable", Resource.POD, Action.UPDATE_POD_TOLERATION, WAITING, WAITING, TOLERANT, False),
        ("TaintToleration", Resource.NODE, Action.ADD, TOLERANT, None, TAINTED, True),
        ("TaintToleration", Resource.NODE, Action.ADD, WAITING, None, TAINTED, False),
        ("TaintToleration", Resource.NODE, Action.UPDATE_NODE_TAINT, WAITING, TAINTED, make_node("n"), True),
        ("TaintToleration", Resource.NODE, Action.UPDATE_NODE_TAINT, TOLERANT, TAINTED, make_node("n"), False),
        ("TaintToleration", Resource.POD, Action.UPDATE_POD_TOLERATION, WAITING, WAITING, TOLERANT, True),
        ("TaintToleration", Resource.POD, Action.UPDATE_POD_TOLERATION, WAITING, None, make_pod("other"), False),
        ("NodeAffinity", Resource.NODE, Action.ADD, SELECTIVE, None, make_node(labels={"disk": "ssd"}), True),
        ("NodeAffinity", Resource.NODE, Action.ADD, SELECTIVE, None, make_node(), False),
        (
            "NodeAffinity",
            Resource.NODE,
            Action.UPDATE_NODE_LABEL,
            SELECTIVE,
            make_node(),
            make_node(labels={"disk": "ssd"}),
            True,
        ),
        (
            "NodeAffinity",
            Resource.NODE,
            Action.UPDATE_NODE_LABEL,
            SELECTIVE,
            make_node(labels={"disk": "ssd"}),
            make_node(labels={"disk": "ssd", "x": "y"}),
            False,
        ),
        ("NodePorts", Resource.NODE, Action.ADD, PORTED, None, make_node(), True),
        ("NodePorts", Resource.POD, Action.DELETE, PORTED, port_holder(80), None, True),
        ("NodePorts", Resource.POD, Action.DELETE, PORTED, port_holder(81), None, False),
        ("NodePorts", Resource.POD, Action.DELETE, PORTED, port_holder(80, node=""), None, False),
        ("NodeResourcesFit", Resource.POD, Action.DELETE, WAITING, make_pod("r", node="n"), None, True),
        ("NodeResourcesFit", Resource.POD, Action.DELETE, WAITING, make_pod("r"), None, False),
        (
            "NodeResourcesFit",
            Resource.POD,
            Action.UPDATE_POD_SCALE_DOWN,
            WAITING,
            make_pod("r", node="n", requests={"cpu": "2"}),
            make_pod("r", node="n", requests={"cpu": "1"}),
            True,
        ),
        (
            "NodeResourcesFit",
            Resource.POD,
            Action.UPDATE_POD_SCALE_DOWN,
            WAITING,
            make_pod("r", node="n", requests={"cpu": "2", "example.com/gpu": "2"}),
            make_pod("r", node="n", requests={"cpu": "2", "example.com/gpu": "1"}),
            False,
        ),
        ("NodeResourcesFit", Resource.POD, Action.UPDATE_POD_SCALE_DOWN, WAITING, WAITING, WAITING, True),
        (
            "NodeResourcesFit",
            Resource.POD,
            Action.UPDATE_POD_SCALE_DOWN,
            WAITING,
            make_pod("r"),
            make_pod("r", requests={}),
            False,
        ),
        ("NodeResourcesFit", Resource.NODE, Action.ADD, WAITING, None, make_node(), True),
        ("NodeResourcesFit", Resource.NODE, Action.ADD, WAITING, None, make_node(allocatable={"cpu": "1"}), False),
        ("NodeResourcesFit", Resource.NODE, Action.ADD, WAITING, None, make_node(allocatable={"pods": "0"}), False),
        (
            "NodeResourcesFit",
            Resource.NODE,
            Action.UPDATE_NODE_ALLOCATABLE,
            WAITING,
            make_node(allocatable={"cpu": "1"}),
            make_node(),
            True,
        ),
        (
            "NodeResourcesFit",
            Resource.NODE,
            Action.UPDATE_NODE_ALLOCATABLE,
            WAITING,
            make_node(),
            make_node(allocatable={"example.com/gpu": "1"}),
            False,
        ),
        (
            "NodeDeclaredFeatures",
            Resource.NODE,
            Action.UPDATE_NODE_DECLARED_FEATURE,
            FEATURED,
            make_node(),
            make_node(features=["UserNamespacesHostNetworkSupport"]),
            True,
        ),
        (
            "NodeDeclaredFeatures",
            Resource.NODE,
            Action.UPDATE_NODE_DECLARED_FEATURE,
            FEATURED,
            make_node(),
            make_node(),
            False,
        ),
        ("NodeDeclaredFeatures", Resource.POD, Action.UPDATE_POD_OTHER, FEATURED, FEATURED, make_pod("waiting"), True),
        ("NodeDeclaredFeatures", Resource.POD, Action.UPDATE_POD_OTHER, FEATURED, FEATURED, FEATURED, False),
        (
            "SchedulingGates",
            Resource.POD,
            Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
            WAITING,
            make_pod("waiting", schedulingGates=[{"name": "x"}]),
            WAITING,
            True,
        ),
        (
            "SchedulingGates",
            Resource.POD,
            Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
            WAITING,
            None,
            make_pod("o"),
            False,
        ),
    ],
)
def test_hints(plugin: str, resource: Resource, action: Action, pod: Any, old: Any, new: Any, queues: bool) -> None:
    expected = QueueingHint.QUEUE if queues else QueueingHint.SKIP
    assert ask(plugin, resource, action, pod, old, new) is expected
