"""Volumes, claims, storage classes and what CSI drivers tell about themselves."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from kube_pyscheduler.objects.meta import Int32, Object, Struct
from kube_pyscheduler.objects.pod import Pod, Volume, VolumeClaimSpec, VolumeSources
from kube_pyscheduler.objects.quantity import RawQuantity, parse_list, parse_milli
from kube_pyscheduler.objects.selectors import LabelSelector, NodeSelector

WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
"""``volumeBindingMode`` of classes whose claims are bound when a pod that uses them is placed."""

BETA_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
"""Annotation of old claims and volumes; wins over the field."""


class ObjectReference(Struct, frozen=True):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class VolumeNodeAffinity(Struct, frozen=True):
    required: NodeSelector | None = None


class PersistentVolumeSpec(VolumeSources, frozen=True):
    capacity: dict[str, RawQuantity] = {}
    access_modes: tuple[str, ...] = ()
    claim_ref: ObjectReference | None = None
    storage_class_name: str = ""
    volume_attributes_class_name: str = ""
    volume_mode: str = ""
    node_affinity: VolumeNodeAffinity | None = None


class PersistentVolumeStatus(Struct, frozen=True):
    phase: str = ""


class PersistentVolume(Object, frozen=True):
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()

    def check(self) -> None:
        parse_list(self.spec.capacity)


class PersistentVolumeClaimStatus(Struct, frozen=True):
    phase: str = ""


class PersistentVolumeClaim(Object, frozen=True):
    spec: VolumeClaimSpec = VolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()

    def check(self) -> None:
        parse_list(self.spec.resources.requests)


def volume_class(volume: PersistentVolume) -> str:
    """Name of the storage class, "" for none. Source: GetPersistentVolumeClass."""
    return volume.metadata.annotations.get(BETA_STORAGE_CLASS, volume.spec.storage_class_name)


def claim_class(claim: PersistentVolumeClaim) -> str:
    """Name of the storage class, "" for none. Source: GetPersistentVolumeClaimClass."""
    return claim.metadata.annotations.get(BETA_STORAGE_CLASS, claim.spec.storage_class_name or "")


class ClaimUse(NamedTuple):
    """A claim that a pod's volume stands for, in the pod's namespace. ``is_ephemeral``: made for the pod."""

    name: str
    is_ephemeral: bool


def claim_use(pod: Pod, volume: Volume) -> ClaimUse | None:
    """The claim behind one of the pod's volumes, if it is of that kind."""
    if volume.persistent_volume_claim is not None:
        return ClaimUse(volume.persistent_volume_claim.claim_name, False)
    if volume.ephemeral is not None:
        return ClaimUse(f"{pod.name}-{volume.name}", True)
    return None


def claim_uses(pod: Pod) -> tuple[ClaimUse, ...]:
    """The claims of the pod, one a volume."""
    uses = [claim_use(pod, volume) for volume in pod.spec.volumes]
    return tuple([use for use in uses if use is not None])


def ownership_problem(claim: PersistentVolumeClaim, pod_key: str, pod_uid: str) -> str:
    """Why the claim is not the one that was made for an ephemeral volume of this pod, or "". Source: VolumeIsForPod."""
    owner = claim.metadata.controller()
    if owner is not None and owner.uid == pod_uid:
        return ""
    return f"PVC {claim.key} was not created for pod {pod_key} (pod is not owner)"


class TopologySelectorLabelRequirement(Struct, frozen=True):
    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(Struct, frozen=True):
    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()


class StorageClass(Object, frozen=True):
    provisioner: str = ""
    volume_binding_mode: str = ""
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


class CSINodeAllocatable(Struct, frozen=True):
    count: Int32 | None = None


class CSINodeDriver(Struct, frozen=True):
    name: str = ""
    node_id: str = msgspec.field(name="nodeID", default="")
    topology_keys: tuple[str, ...] = ()
    allocatable: CSINodeAllocatable | None = None


class CSINodeSpec(Struct, frozen=True):
    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(Object, frozen=True):
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Struct, frozen=True):
    storage_capacity: bool = False
    attach_required: bool = True
    prevent_pod_scheduling_if_missing: bool = False


class CSIDriver(Object, frozen=True):
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(Object, frozen=True):
    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: RawQuantity | None = None
    maximum_volume_size: RawQuantity | None = None

    def check(self) -> None:
        for amount in (self.capacity, self.maximum_volume_size):
            if amount is not None:
                parse_milli(amount)


class VolumeAttachmentSource(Struct, frozen=True):
    persistent_volume_name: str = ""


class VolumeAttachmentSpec(Struct, frozen=True):
    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachment(Object, frozen=True):
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
