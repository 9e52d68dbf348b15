"""Why a waiting pod is looked at again: a resource, what happened to it, and what each plugin thinks of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import Enum, IntFlag, StrEnum, auto
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kube_pyscheduler.framework.listers import Listers
    from kube_pyscheduler.objects.pod import Pod


class Resource(StrEnum):
    """Source: EventResource in kube-scheduler/framework/types.go."""

    POD = "Pod"
    NODE = "Node"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    CSI_NODE = "storage.k8s.io/CSINode"
    CSI_DRIVER = "storage.k8s.io/CSIDriver"
    VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
    CSI_STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
    STORAGE_CLASS = "storage.k8s.io/StorageClass"
    RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
    RESOURCE_SLICE = "resource.k8s.io/ResourceSlice"
    DEVICE_CLASS = "resource.k8s.io/DeviceClass"
    POD_GROUP = "scheduling.k8s.io/PodGroup"
    NAMESPACE = "Namespace"
    """Ours: upstream matches namespaceSelectors anew only when something else happens."""
    SERVICE = "Service"
    """Ours since upstream has no ServiceAffinity any more."""
    WILDCARD = "*"


class Action(IntFlag):
    """What happened; several may be combined. Source: ActionType in kube-scheduler/framework/types.go."""

    ADD = auto()
    DELETE = auto()
    UPDATE_NODE_ALLOCATABLE = auto()
    UPDATE_NODE_LABEL = auto()
    UPDATE_NODE_TAINT = auto()
    UPDATE_NODE_CONDITION = auto()
    UPDATE_NODE_ANNOTATION = auto()
    UPDATE_NODE_DECLARED_FEATURE = auto()
    UPDATE_POD_LABEL = auto()
    UPDATE_POD_SCALE_DOWN = auto()
    UPDATE_POD_TOLERATION = auto()
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = auto()
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = auto()
    UPDATE_POD_OTHER = auto()
    """A change of a pod that none of the finer bits names."""
    UPDATE = (
        UPDATE_NODE_ALLOCATABLE
        | UPDATE_NODE_LABEL
        | UPDATE_NODE_TAINT
        | UPDATE_NODE_CONDITION
        | UPDATE_NODE_ANNOTATION
        | UPDATE_NODE_DECLARED_FEATURE
        | UPDATE_POD_LABEL
        | UPDATE_POD_SCALE_DOWN
        | UPDATE_POD_TOLERATION
        | UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        | UPDATE_POD_GENERATED_RESOURCE_CLAIM
        | UPDATE_POD_OTHER
    )
    ALL = ADD | DELETE | UPDATE


_ACTION_LABELS = {
    Action.ADD: "Add",
    Action.DELETE: "Delete",
    Action.UPDATE_NODE_ALLOCATABLE: "UpdateNodeAllocatable",
    Action.UPDATE_NODE_LABEL: "UpdateNodeLabel",
    Action.UPDATE_NODE_TAINT: "UpdateNodeTaint",
    Action.UPDATE_NODE_CONDITION: "UpdateNodeCondition",
    Action.UPDATE_NODE_ANNOTATION: "UpdateNodeAnnotation",
    Action.UPDATE_NODE_DECLARED_FEATURE: "UpdateNodeDeclaredFeature",
    Action.UPDATE_POD_LABEL: "UpdatePodLabel",
    Action.UPDATE_POD_SCALE_DOWN: "UpdatePodScaleDown",
    Action.UPDATE_POD_TOLERATION: "UpdatePodToleration",
    Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED: "UpdatePodSchedulingGatesEliminated",
    Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM: "UpdatePodGeneratedResourceClaim",
    Action.UPDATE_POD_OTHER: "Update",
    Action.UPDATE: "Update",
    Action.ALL: "All",
}


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """One reason to look again. ``custom`` replaces the label of events that come from the scheduler itself."""

    resource: Resource
    action: Action
    custom: str = ""

    @property
    def label(self) -> str:
        """As in ``scheduler_queue_incoming_pods_total{event=…}``, e.g. ``NodeAdd`` or ``AssignedPodDelete``."""
        return self.custom or f"{self.resource}{_ACTION_LABELS.get(self.action, 'Update')}"

    def matches(self, happened: ClusterEvent) -> bool:
        """Whether an event that ``happened`` is one that this registration asks for."""
        if self.resource == Resource.WILDCARD:
            return bool(self.action & happened.action)
        return (self.resource == happened.resource or happened.resource == Resource.WILDCARD) and bool(
            self.action & happened.action
        )


class QueueingHint(Enum):
    """What a plugin that refused a pod says of an event."""

    QUEUE = "Queue"
    SKIP = "QueueSkip"


def queue_if(helps: bool) -> QueueingHint:
    """The answer of a hint."""
    return QueueingHint.QUEUE if helps else QueueingHint.SKIP


Hint = Callable[["Pod", Any, Any, "Listers"], QueueingHint]
"""``hint(pod, old, new, view)``: pure; old is None for an add, new is None for a delete; ``view`` already holds the
event's outcome, and what happened after it where a pod in flight is asked about. So a hint may say SKIP where the pod
is refused for sure as things are now: what changes that is an event too. If it raises, the pod is queued."""


@dataclass(frozen=True, slots=True)
class EventRegistration:
    """An event that may help pods refused by a plugin. Without a hint it always may.

    ``fragment``: what of a waiting pod the hint reads. Where it is given, pods with equal fragments get equal answers,
    so each event is judged once for all of them; without it the hint is asked for every pod.
    """

    event: ClusterEvent
    hint: Hint | None = None
    fragment: Callable[[Pod], Hashable] | None = None


# Events with a name of their own. Source: pkg/scheduler/framework/events.go.
EVENT_UNSCHEDULED_POD_ADD = ClusterEvent(Resource.POD, Action.ADD, "UnschedulablePodAdd")
EVENT_ASSIGNED_POD_ADD = ClusterEvent(Resource.POD, Action.ADD, "AssignedPodAdd")
EVENT_ASSIGNED_POD_DELETE = ClusterEvent(Resource.POD, Action.DELETE, "AssignedPodDelete")
EVENT_FORCE_ACTIVATE = ClusterEvent(Resource.WILDCARD, Action.ALL, "ForceActivate")
EVENT_SCHEDULE_ATTEMPT_FAILURE = ClusterEvent(Resource.WILDCARD, Action.ALL, "ScheduleAttemptFailure")
EVENT_BACKOFF_COMPLETE = ClusterEvent(Resource.WILDCARD, Action.ALL, "BackoffComplete")
EVENT_UNSCHEDULABLE_TIMEOUT = ClusterEvent(Resource.WILDCARD, Action.ALL, "UnschedulableTimeout")
