"""Storage objects for tests in one line each, and how they get into a cluster."""

from __future__ import annotations

from typing import Any

import msgspec

from kube_pyscheduler.framework.listers import Lister, Listers
from kube_pyscheduler.objects import kinds
from kube_pyscheduler.objects.kinds import Kind
from kube_pyscheduler.objects.meta import Object
from kube_pyscheduler.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
WAIT, IMMEDIATE = "WaitForFirstConsumer", "Immediate"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
SELECTED_NODE = "volume.kubernetes.io/selected-node"


def _decoded(kind: Kind[Any], document: dict[str, Any]) -> Any:
    return kind.decoder.decode(msgspec.json.encode(document))


def make_claim(
    name: str = "c",
    *,
    namespace: str = "default",
    storage_class: str | None = "slow",
    volume: str = "",
    size: str = "1Gi",
    modes: tuple[str, ...] = ("ReadWriteOnce",),
    version: str = "1",
    metadata: dict[str, Any] | None = None,
    status: dict[str, Any] | None = None,
    **spec: Any,
) -> PersistentVolumeClaim:
    """An unbound claim; with ``volume``, one that is bound for good unless ``metadata`` brings other annotations."""
    annotations = BOUND if volume else {}
    document = {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{namespace}-{name}",
            "resourceVersion": version,
            "annotations": annotations,
            **(metadata or {}),
        },
        "spec": {
            "accessModes": modes,
            "resources": {"requests": {"storage": size}},
            "volumeName": volume,
            **({} if storage_class is None else {"storageClassName": storage_class}),
            **spec,
        },
        "status": {"phase": "Bound" if volume else "Pending", **(status or {})},
    }
    claim: PersistentVolumeClaim = _decoded(kinds.PERSISTENT_VOLUME_CLAIM, document)
    return claim


def make_volume(
    name: str = "v",
    *,
    source: dict[str, Any] | None = None,
    claim: PersistentVolumeClaim | None = None,
    storage_class: str = "slow",
    size: str = "1Gi",
    modes: tuple[str, ...] = ("ReadWriteOnce",),
    labels: dict[str, str] | None = None,
    nodes: dict[str, list[str]] | None = None,
    phase: str = "",
    version: str = "1",
    metadata: dict[str, Any] | None = None,
    **spec: Any,
) -> PersistentVolume:
    """A volume of the driver ``csi.example``, or of ``source``. ``claim``: what it is bound to; else it is available.
    ``nodes``: label → values that nodes must have to reach it."""
    reference = None
    if claim is not None:
        reference = {"namespace": claim.namespace, "name": claim.name, "uid": claim.metadata.uid}
    affinity = [{"key": key, "operator": "In", "values": values} for key, values in (nodes or {}).items()]
    document = {
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "resourceVersion": version,
            "labels": labels or {},
            **(metadata or {}),
        },
        "spec": {
            "capacity": {"storage": size},
            "accessModes": modes,
            "storageClassName": storage_class,
            **(source or {"csi": {"driver": "csi.example", "volumeHandle": name}}),
            **({"claimRef": reference} if reference is not None else {}),
            **(
                {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": affinity}]}}}
                if affinity
                else {}
            ),
            **spec,
        },
        "status": {"phase": phase or ("Available" if claim is None else "Bound")},
    }
    volume: PersistentVolume = _decoded(kinds.PERSISTENT_VOLUME, document)
    return volume


def make_class(
    name: str = "slow",
    *,
    provisioner: str = "csi.example",
    mode: str = WAIT,
    topologies: list[dict[str, list[str]]] | None = None,
) -> StorageClass:
    """``topologies``: each a mapping of label → allowed values."""
    terms = [
        {"matchLabelExpressions": [{"key": key, "values": values} for key, values in term.items()]}
        for term in topologies or []
    ]
    document = {
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
        "allowedTopologies": terms,
    }
    storage_class: StorageClass = _decoded(kinds.STORAGE_CLASS, document)
    return storage_class


def make_csi_node(
    name: str = "n1", limits: dict[str, int | None] | None = None, migrated: tuple[str, ...] = ()
) -> CSINode:
    """``limits``: registered drivers with the volumes they take; None is any number."""
    drivers = [
        {"name": driver, "nodeID": name, **({} if count is None else {"allocatable": {"count": count}})}
        for driver, count in (limits or {}).items()
    ]
    document = {
        "metadata": {"name": name, "annotations": {"storage.alpha.kubernetes.io/migrated-plugins": ",".join(migrated)}},
        "spec": {"drivers": drivers},
    }
    csi_node: CSINode = _decoded(kinds.CSI_NODE, document)
    return csi_node


def make_driver(name: str = "csi.example", **spec: Any) -> CSIDriver:
    driver: CSIDriver = _decoded(kinds.CSI_DRIVER, {"metadata": {"name": name}, "spec": spec})
    return driver


def make_capacity(
    name: str = "k",
    *,
    storage_class: str = "slow",
    topology: dict[str, Any] | None = None,
    capacity: str | None = None,
    largest: str | None = None,
) -> CSIStorageCapacity:
    """``topology``: a label selector of nodes."""
    document = {
        "metadata": {"name": name, "namespace": "kube-system"},
        "storageClassName": storage_class,
        "nodeTopology": topology,
        "capacity": capacity,
        "maximumVolumeSize": largest,
    }
    found: CSIStorageCapacity = _decoded(kinds.CSI_STORAGE_CAPACITY, document)
    return found


def make_attachment(name: str, node: str, volume: str | None, attacher: str = "csi.example") -> VolumeAttachment:
    source = {} if volume is None else {"persistentVolumeName": volume}
    document = {"metadata": {"name": name}, "spec": {"attacher": attacher, "nodeName": node, "source": source}}
    attachment: VolumeAttachment = _decoded(kinds.VOLUME_ATTACHMENT, document)
    return attachment


def claim_volumes(*names: str) -> list[dict[str, Any]]:
    """The ``volumes`` of a pod that uses these claims."""
    return [{"name": f"v{number}", "persistentVolumeClaim": {"claimName": name}} for number, name in enumerate(names)]


def lister_of(listers: Listers, item: Object) -> Lister[Any]:
    """Where objects like this are kept."""
    by_type: dict[type[Object], Lister[Any]] = {
        PersistentVolume: listers.persistent_volumes,
        PersistentVolumeClaim: listers.persistent_volume_claims,
        StorageClass: listers.storage_classes,
        CSINode: listers.csi_nodes,
        CSIDriver: listers.csi_drivers,
        CSIStorageCapacity: listers.csi_storage_capacities,
        VolumeAttachment: listers.volume_attachments,
    }
    return by_type[type(item)]


def put(listers: Listers, *items: Object) -> None:
    """The watch tells of these."""
    for item in items:
        lister_of(listers, item).put(item)


def remove(listers: Listers, *items: Object) -> None:
    """The watch tells that these are gone."""
    for item in items:
        lister_of(listers, item).remove(item)
