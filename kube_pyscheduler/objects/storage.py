"""Volumes, claims, storage classes and what CSI drivers tell about themselves."""

from __future__ import annotations

import msgspec

from kube_pyscheduler.objects.meta import Object, Struct
from kube_pyscheduler.objects.pod import VolumeClaimSpec, VolumeSources
from kube_pyscheduler.objects.quantity import RawQuantity, parse_list, parse_milli
from kube_pyscheduler.objects.selectors import LabelSelector, NodeSelector


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
    count: int | None = None


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
