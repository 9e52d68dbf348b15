"""What counts as a change of a pod."""

from __future__ import annotations

import msgspec
import pytest

from kube_pyscheduler.framework.cluster_event import Action
from kube_pyscheduler.objects.pod import (
    ContainerStatus,
    ExtendedResourceClaimStatus,
    Pod,
    PodCondition,
    PodResourceClaimStatus,
    Resources,
)
from kube_pyscheduler.scheduling_queue.pod_changes import ASSIGNED_POD_UPDATE, UNSCHEDULABLE_POD_UPDATE, pod_changes
from tests.unit.scheduling_queue.builders import changed, make_pod, relabelled, tolerating, with_status

POD = make_pod(gates=["a", "b"], cpu="200m")


def resized(pod: Pod, cpu: str) -> Pod:
    container = msgspec.structs.replace(pod.spec.containers[0], resources=Resources(requests={"cpu": cpu}))
    return changed(pod, containers=(container,))


def annotated(pod: Pod) -> Pod:
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, annotations={"a": "b"}))


@pytest.mark.parametrize(
    ("new", "actions"),
    [
        (relabelled(POD, a="b"), [Action.UPDATE_POD_LABEL]),
        (resized(POD, "100m"), [Action.UPDATE_POD_SCALE_DOWN]),
        (resized(POD, "300m"), [Action.UPDATE_POD_OTHER]),
        (tolerating(POD), [Action.UPDATE_POD_TOLERATION]),
        (changed(POD, scheduling_gates=()), [Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED]),
        (changed(POD, scheduling_gates=POD.spec.scheduling_gates[:1]), [Action.UPDATE_POD_OTHER]),
        (
            with_status(POD, resource_claim_statuses=(PodResourceClaimStatus(name="c"),)),
            [Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM],
        ),
        (
            with_status(POD, extended_resource_claim_status=ExtendedResourceClaimStatus(resource_claim_name="c")),
            [Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM],
        ),
        (annotated(POD), [Action.UPDATE_POD_OTHER]),
        (make_pod(gates=["a", "b"], cpu="200m", deletion="2026-01-01T00:00:00Z"), [Action.UPDATE_POD_OTHER]),
        (relabelled(tolerating(POD), a="b"), [Action.UPDATE_POD_LABEL, Action.UPDATE_POD_TOLERATION]),
        (with_status(POD, conditions=(PodCondition(type="PodScheduled"),), nominated_node_name="n1"), []),
        (with_status(POD, phase="Running"), []),
    ],
)
def test_changes(new: Pod, actions: list[Action]) -> None:
    assert list(pod_changes(POD, new)) == actions


def test_a_granted_resize_counts_when_it_happened() -> None:
    def running(wish: str, actual: str) -> Pod:
        pod = make_pod(node="n1", cpu=wish)
        return with_status(
            pod, container_statuses=(ContainerStatus(name="c", resources=Resources(requests={"cpu": actual})),)
        )

    assert Action.UPDATE_POD_SCALE_DOWN not in pod_changes(running("3", "3"), running("1", "3"))
    assert list(pod_changes(running("1", "3"), running("1", "1"))) == [Action.UPDATE_POD_SCALE_DOWN]


def test_labels_tell_pods_with_and_without_a_node_apart() -> None:
    assert ASSIGNED_POD_UPDATE[Action.UPDATE_POD_LABEL].label == "AssignedPodUpdatePodLabel"
    assert UNSCHEDULABLE_POD_UPDATE[Action.UPDATE_POD_OTHER].label == "UnschedulablePodUpdate"
