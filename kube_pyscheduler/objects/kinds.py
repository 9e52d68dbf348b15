"""The table of kinds the scheduler reads: where they are served, and how they decode."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from kube_pyscheduler.objects.decode import ObjectDecoder
from kube_pyscheduler.objects.group import (
    Namespace,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from kube_pyscheduler.objects.meta import Object
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.objects.resource import DeviceClass, ResourceClaim, ResourceSlice
from kube_pyscheduler.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)

T = TypeVar("T", bound=Object)


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """One kind. ``name`` as in ``kind:``; ``plural`` as in the URL; ``group`` is "" for the core group."""

    name: str
    group: str
    version: str
    plural: str
    namespaced: bool
    cls: type[T]
    decoder: ObjectDecoder = field(compare=False)

    @property
    def path(self) -> str:
        """The URL path of all objects of the kind, in all namespaces."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        return f"{root}/{self.plural}"


def _kind(cls: type[T], group: str, plural: str, namespaced: bool) -> Kind[T]:
    return Kind(cls.__name__, group, "v1", plural, namespaced, cls, ObjectDecoder(cls))


POD = _kind(Pod, "", "pods", True)
NODE = _kind(Node, "", "nodes", False)
NAMESPACE = _kind(Namespace, "", "namespaces", False)
PERSISTENT_VOLUME = _kind(PersistentVolume, "", "persistentvolumes", False)
PERSISTENT_VOLUME_CLAIM = _kind(PersistentVolumeClaim, "", "persistentvolumeclaims", True)
SERVICE = _kind(Service, "", "services", True)
REPLICATION_CONTROLLER = _kind(ReplicationController, "", "replicationcontrollers", True)
REPLICA_SET = _kind(ReplicaSet, "apps", "replicasets", True)
STATEFUL_SET = _kind(StatefulSet, "apps", "statefulsets", True)
STORAGE_CLASS = _kind(StorageClass, "storage.k8s.io", "storageclasses", False)
CSI_NODE = _kind(CSINode, "storage.k8s.io", "csinodes", False)
CSI_DRIVER = _kind(CSIDriver, "storage.k8s.io", "csidrivers", False)
CSI_STORAGE_CAPACITY = _kind(CSIStorageCapacity, "storage.k8s.io", "csistoragecapacities", True)
VOLUME_ATTACHMENT = _kind(VolumeAttachment, "storage.k8s.io", "volumeattachments", False)
RESOURCE_CLAIM = _kind(ResourceClaim, "resource.k8s.io", "resourceclaims", True)
RESOURCE_SLICE = _kind(ResourceSlice, "resource.k8s.io", "resourceslices", False)
DEVICE_CLASS = _kind(DeviceClass, "resource.k8s.io", "deviceclasses", False)
POD_DISRUPTION_BUDGET = _kind(PodDisruptionBudget, "policy", "poddisruptionbudgets", True)

KINDS: tuple[Kind[Object], ...] = (
    NODE,
    NAMESPACE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    CSI_NODE,
    CSI_DRIVER,
    CSI_STORAGE_CAPACITY,
    VOLUME_ATTACHMENT,
    DEVICE_CLASS,
    RESOURCE_SLICE,
    RESOURCE_CLAIM,
    SERVICE,
    REPLICATION_CONTROLLER,
    REPLICA_SET,
    STATEFUL_SET,
    POD_DISRUPTION_BUDGET,
    POD,
)  # type: ignore[assignment]
"""Every kind with an informer, in the order in which their first lists are handed out: pods come last."""
