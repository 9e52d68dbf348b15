"""One long-lived cluster that all cases pass through, as a daemon's informers would tell of it."""

from __future__ import annotations

import random
from typing import Any

import msgspec

from kube_pyscheduler.objects import kinds
from kube_pyscheduler.objects.kinds import Kind

KINDS: dict[str, Kind[Any]] = {
    "nodes": kinds.NODE,
    "pods": kinds.POD,
    "namespaces": kinds.NAMESPACE,
    "services": kinds.SERVICE,
    "replicaSets": kinds.REPLICA_SET,
    "statefulSets": kinds.STATEFUL_SET,
    "replicationControllers": kinds.REPLICATION_CONTROLLER,
    "pdbs": kinds.POD_DISRUPTION_BUDGET,
    "pvs": kinds.PERSISTENT_VOLUME,
    "pvcs": kinds.PERSISTENT_VOLUME_CLAIM,
    "storageClasses": kinds.STORAGE_CLASS,
    "csiNodes": kinds.CSI_NODE,
    "csiDrivers": kinds.CSI_DRIVER,
    "csiStorageCapacities": kinds.CSI_STORAGE_CAPACITY,
    "volumeAttachments": kinds.VOLUME_ATTACHMENT,
    "resourceSlices": kinds.RESOURCE_SLICE,
    "deviceClasses": kinds.DEVICE_CLASS,
    "resourceClaims": kinds.RESOURCE_CLAIM,
}
"""Key of ``cluster`` → kind. Objects of kinds that are not here cannot be told of, so cases that need them fail."""


def decoded(cluster: dict[str, list[Any]]) -> list[tuple[Kind[Any], Any]]:
    """The objects of a case."""
    return [
        (KINDS[name], KINDS[name].decoder.decode(msgspec.json.encode(item)))
        for name, items in cluster.items()
        if name in KINDS
        for item in items
    ]


def in_random_order(objects: list[tuple[Kind[Any], Any]], rng: random.Random) -> list[tuple[Kind[Any], Any]]:
    """A shuffled copy. Nodes that give one image different sizes keep their order among each other: the first one's
    size counts, so their order is part of the case."""
    shuffled = list(objects)
    rng.shuffle(shuffled)
    nodes = [item for kind, item in objects if kind is kinds.NODE]
    if not _sizes_differ(nodes):
        return shuffled
    in_order = iter(nodes)
    return [(kind, next(in_order) if kind is kinds.NODE else item) for kind, item in shuffled]


def _sizes_differ(nodes: list[Any]) -> bool:
    sizes: dict[str, int] = {}
    for node in nodes:
        for image in node.status.images:
            for name in image.names:
                if sizes.setdefault(name, image.size_bytes) != image.size_bytes:
                    return True
    return False
