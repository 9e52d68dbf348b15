"""What counts as a change of a node."""

from __future__ import annotations

from typing import Any

import pytest

from kube_pyscheduler.framework.cluster_event import Action
from kube_pyscheduler.scheduler.node_changes import node_changes
from tests.builders import make_node


@pytest.mark.parametrize(
    ("change", "actions"),
    [
        ({"allocatable": {"cpu": "8"}}, [Action.UPDATE_NODE_ALLOCATABLE]),
        ({"labels": {"zone": "a"}}, [Action.UPDATE_NODE_LABEL]),
        ({"taints": [{"key": "k", "effect": "NoSchedule"}]}, [Action.UPDATE_NODE_TAINT]),
        ({"metadata": {"annotations": {"a": "b"}}}, [Action.UPDATE_NODE_ANNOTATION]),
        ({"features": ["F"]}, [Action.UPDATE_NODE_DECLARED_FEATURE]),
        ({"unschedulable": True}, []),
        ({"images": [{"names": ["i"], "sizeBytes": 1}]}, []),
        (
            {"labels": {"zone": "a"}, "allocatable": {"cpu": "8"}},
            [Action.UPDATE_NODE_ALLOCATABLE, Action.UPDATE_NODE_LABEL],
        ),
        ({"metadata": {"resourceVersion": "9"}}, []),
    ],
)
def test_changes(change: dict[str, Any], actions: list[Action]) -> None:
    assert node_changes(make_node(), make_node(**change)) == actions


def test_uncordoning_counts_as_a_change_of_taints_and_once() -> None:
    cordoned = make_node(unschedulable=True, taints=[{"key": "k", "effect": "NoSchedule"}])
    assert node_changes(cordoned, make_node()) == [Action.UPDATE_NODE_TAINT]
    assert node_changes(make_node(unschedulable=True), make_node()) == [Action.UPDATE_NODE_TAINT]
