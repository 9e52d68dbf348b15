"""Which pods that go, and which nodes, make room."""

from __future__ import annotations

from typing import Any

import pytest

from kube_pyscheduler.config.args import NodeAffinityArgs, NodeResourcesFitArgs
from kube_pyscheduler.framework.cluster_event import Action, Resource
from kube_pyscheduler.objects.meta import Object
from kube_pyscheduler.objects.pod import NodeAffinity, Pod
from kube_pyscheduler.objects.selectors import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from tests.builders import make_node, make_pod
from tests.plugins.hints import Case, answer

NODE = make_node()
GPU = "example.com/gpu"
WAITING = make_pod("waiting", requests={"cpu": "2"}, priority=5)


def holder(name: str = "gone", cpu: str = "1", priority: int = 5, **more: Any) -> Pod:
    return make_pod(name, node="n1", requests={"cpu": cpu}, priority=priority, **more)


@pytest.mark.parametrize(
    ("pod", "gone", "known", "helps"),
    [
        (WAITING, holder(), (NODE,), True),
        # There is not enough without it, either.
        (WAITING, holder(), (NODE, holder("stays", "3")), False),
        # What stays is less important, so that it could be sent away now; but not by pods that send nobody away.
        (WAITING, holder(), (NODE, holder("stays", "3", 4)), True),
        (
            make_pod("waiting", requests={"cpu": "2"}, priority=5, preemptionPolicy="Never"),
            holder(),
            (NODE, holder("stays", "3", 4)),
            False,
        ),
        # The node is not there (any more), or is too small for the pod alone.
        (WAITING, holder(), (), False),
        (WAITING, holder(), (make_node(allocatable={"cpu": "1"}),), False),
        # The number of pods.
        (WAITING, holder(cpu="0"), (make_node(allocatable={"pods": "1"}), holder("stays", "0")), False),
        (WAITING, holder(cpu="0"), (make_node(allocatable={"pods": "1"}),), True),
        # A promise that is given up counts; a pod that only waited does not.
        (WAITING, make_pod("gone", status={"nominatedNodeName": "n1"}), (NODE,), True),
        (WAITING, make_pod("gone"), (NODE,), False),
    ],
)
def test_a_pod_went(pod: Pod, gone: Pod, known: tuple[Object, ...], helps: bool) -> None:
    assert answer(Case("NodeResourcesFit", Resource.POD, Action.DELETE, pod, gone, None, helps, known)) is helps


@pytest.mark.parametrize(
    ("before", "after", "helps"),
    [
        (holder(), holder(cpu="500m"), True),
        (
            make_pod("r", node="n1", requests={"cpu": "2", GPU: "2"}),
            make_pod("r", node="n1", requests={"cpu": "2", GPU: "1"}),
            False,
        ),
        (make_pod("r"), make_pod("r", requests={}), False),
        # The pod itself.
        (make_pod("waiting", requests={"cpu": "9"}), WAITING, True),
    ],
)
def test_a_pod_was_resized(before: Pod, after: Pod, helps: bool) -> None:
    case = Case("NodeResourcesFit", Resource.POD, Action.UPDATE_POD_SCALE_DOWN, WAITING, before, after, helps, (NODE,))
    assert answer(case) is helps


@pytest.mark.parametrize(
    ("before", "after", "known", "helps"),
    [
        ({"cpu": "1"}, {"cpu": "4"}, (), True),
        ({"cpu": "1"}, {"cpu": "4"}, (holder("stays", "3"),), False),
        ({"cpu": "4"}, {"cpu": "4", GPU: "1"}, (), False),
        ({"pods": "0"}, {"pods": "1"}, (), True),
        ({"memory": "1Gi"}, {"memory": "2Gi"}, (), False),
    ],
)
def test_a_node_changed(before: dict[str, str], after: dict[str, str], known: tuple[Object, ...], helps: bool) -> None:
    old, new = make_node(allocatable=before), make_node(allocatable=after)
    action = Action.UPDATE_NODE_ALLOCATABLE
    assert answer(Case("NodeResourcesFit", Resource.NODE, action, WAITING, old, new, helps, known)) is helps


def test_resources_that_are_ignored_are_not_missed_on_new_nodes() -> None:
    pod = make_pod("waiting", requests={GPU: "1"})
    for args, helps in ((None, False), (NodeResourcesFitArgs(ignored_resources=(GPU,)), True)):
        assert answer(Case("NodeResourcesFit", Resource.NODE, Action.ADD, pod, None, NODE, helps, (), args)) is helps


def test_nodes_that_were_not_meant_by_the_configuration_may_be_now() -> None:
    pool = NodeSelectorTerm((NodeSelectorRequirement("pool", "Exists"),))
    added = NodeAffinityArgs(NodeAffinity(NodeSelector((pool,))))
    new = make_node(labels={"pool": "a"})
    assert answer(Case("NodeAffinity", Resource.NODE, Action.UPDATE_NODE_LABEL, WAITING, NODE, new, True, (), added))
