"""What an update changed about a pod, as far as it may let somebody be scheduled.

Source: PodSchedulingPropertiesChange in pkg/scheduler/framework/events.go.
"""

from __future__ import annotations

from kube_pyscheduler.framework.cluster_event import Action, ClusterEvent, Resource
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.objects.pod_requests import pod_requests


def _events(prefix: str) -> dict[Action, ClusterEvent]:
    """Pod updates under the name that metrics and logs use for pods with, or without, a node."""
    labels = {
        Action.UPDATE_POD_LABEL: "UpdatePodLabel",
        Action.UPDATE_POD_SCALE_DOWN: "UpdatePodScaleDown",
        Action.UPDATE_POD_TOLERATION: "UpdatePodToleration",
        Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED: "UpdatePodSchedulingGatesEliminated",
        Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM: "UpdatePodGeneratedResourceClaim",
        Action.UPDATE_POD_OTHER: "Update",
    }
    return {action: ClusterEvent(Resource.POD, action, prefix + label) for action, label in labels.items()}


ASSIGNED_POD_UPDATE = _events("AssignedPod")
"""Events of pods that have a node."""

UNSCHEDULABLE_POD_UPDATE = _events("UnschedulablePod")
"""Events of pods that wait."""


def pod_changes(old: Pod, new: Pod) -> tuple[Action, ...]:
    """One action for each kind of change; ``UPDATE_POD_OTHER`` alone where there is none of the finer ones.

    Empty where nothing but status, version or bookkeeping changed.
    """
    before, after = old.spec, new.spec
    found = []
    if old.metadata.labels != new.metadata.labels:
        found.append(Action.UPDATE_POD_LABEL)
    if _is_scaled_down(old, new):
        found.append(Action.UPDATE_POD_SCALE_DOWN)
    if before.scheduling_gates and not after.scheduling_gates:
        found.append(Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    if len(before.tolerations) != len(after.tolerations):
        # Tolerations can only be added.
        found.append(Action.UPDATE_POD_TOLERATION)
    if (
        old.status.resource_claim_statuses != new.status.resource_claim_statuses
        or old.status.extended_resource_claim_status != new.status.extended_resource_claim_status
    ):
        found.append(Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    if found:
        return tuple(found)
    return (Action.UPDATE_POD_OTHER,) if _is_changed(old, new) else ()


def _is_scaled_down(old: Pod, new: Pod) -> bool:
    """Whether some request became smaller or vanished; what a resize has granted counts."""
    if _sizes(old) == _sizes(new):
        return False
    before = pod_requests(old, use_status=True)
    after = pod_requests(new, use_status=True)
    return any(name not in after or amount > after[name] for name, amount in before.items())


def _sizes(pod: Pod) -> tuple[object, ...]:
    """All that requests are computed from."""
    spec, status = pod.spec, pod.status
    return (
        spec.containers,
        spec.init_containers,
        spec.resources,
        spec.overhead,
        status.container_statuses,
        status.init_container_statuses,
        status.resources,
        status.allocated_resources,
        status.conditions if status.container_statuses or status.resources is not None else (),
    )


def _is_changed(old: Pod, new: Pod) -> bool:
    """Source: isPodUpdated in pkg/scheduler/backend/queue/scheduling_queue.go."""
    before, after = old.metadata, new.metadata
    return (
        before.deletion_timestamp != after.deletion_timestamp
        or before.annotations != after.annotations
        or before.owner_references != after.owner_references
        or old.spec != new.spec
    )
