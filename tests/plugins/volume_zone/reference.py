"""The plain twin: one node and one label at a time."""

from __future__ import annotations

from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.framework.status import SKIP, Status, unresolvable
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.objects.storage import claim_class

NEW = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
LABELS = [*NEW, *NEW.values()]


def topologies(pod: Pod, listers: Listers) -> list[tuple[str, set[str]]] | Status:
    """(label, allowed values) of all the pod's volumes, or what PreFilter says."""
    found: list[tuple[str, set[str]]] = []
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is None:
            continue
        name = volume.persistent_volume_claim.claim_name
        if not name:
            return unresolvable("PersistentVolumeClaim had no name")
        claim = listers.persistent_volume_claims.get(f"{pod.namespace}/{name}")
        if claim is None:
            return unresolvable(f'persistentvolumeclaim "{name}" not found')
        bound = claim.spec.volume_name
        if not bound:
            class_name = claim_class(claim)
            storage_class = listers.storage_classes.get(class_name)
            if not class_name:
                return unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
            if storage_class is None:
                return unresolvable(f'storageclass.storage.k8s.io "{class_name}" not found')
            if not storage_class.volume_binding_mode:
                return unresolvable(f'VolumeBindingMode not set for StorageClass "{class_name}"')
            if storage_class.volume_binding_mode != "WaitForFirstConsumer":
                return unresolvable("PersistentVolume had no name")
            continue
        there = listers.persistent_volumes.get(bound)
        if there is None:
            return unresolvable(f'persistentvolume "{bound}" not found')
        for label in LABELS:
            values = {part.strip() for part in there.metadata.labels.get(label, "").split("__")}
            if "" not in values:
                found.append((label, values))
    return found or SKIP


def fits(node: Node, wanted: list[tuple[str, set[str]]]) -> bool:
    labels = node.metadata.labels
    if not any(label in labels for label in LABELS):
        return True
    for label, values in wanted:
        value = labels.get(label)
        if value is None:
            value = labels.get(NEW.get(label, label))
        if value is None or value not in values:
            return False
    return True
