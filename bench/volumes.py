"""Storage for a measurement: a limit of volumes on every node, and three kinds of claims.

The claim of a template is, by its number modulo 3: bound to a volume that half of the zones reach; unbound, and to be
provisioned where one of as many capacity objects as there are nodes says that there is room; unbound, and to be bound
to one of as many local volumes as there are nodes.
"""

from __future__ import annotations

from typing import Any

import msgspec

from bench.labels import HOSTNAME, ZONE
from kube_pyscheduler.cache.cache import Cache
from kube_pyscheduler.framework.listers import Lister
from kube_pyscheduler.objects import kinds
from kube_pyscheduler.objects.kinds import Kind

Document = dict[str, Any]

DRIVER = "csi.example"
LIMIT = 40
CLAIMS = 1000
"""As many templates find their claim."""


def volume_spec(number: int) -> Document:
    """What the pods of a template have in their spec."""
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": f"claim-{number}"}}]}


def add_storage(cache: Cache) -> None:
    """Everything that the pods of ``volume_spec`` need. The nodes must be there."""
    listers = cache.listers
    _put(listers.csi_drivers, kinds.CSI_DRIVER, {"metadata": {"name": DRIVER}, "spec": {"storageCapacity": True}})
    for name, provisioner in (("bound", DRIVER), ("dynamic", DRIVER), ("local", "kubernetes.io/no-provisioner")):
        zones = {"key": ZONE, "values": [f"zone-{zone}" for zone in range(8)]}
        document: Document = {
            "metadata": {"name": name},
            "provisioner": provisioner,
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": [{"matchLabelExpressions": [zones]}],
        }
        _put(listers.storage_classes, kinds.STORAGE_CLASS, document)
    for position, node in enumerate(cache.table.names):
        driver = {"name": DRIVER, "nodeID": node, "allocatable": {"count": LIMIT}}
        _put(listers.csi_nodes, kinds.CSI_NODE, {"metadata": {"name": node}, "spec": {"drivers": [driver]}})
        capacity = {
            "metadata": {"name": node, "namespace": "storage"},
            "storageClassName": "dynamic",
            "nodeTopology": {"matchLabels": {HOSTNAME: node}},
            "capacity": f"{position % 20}Gi",
        }
        _put(listers.csi_storage_capacities, kinds.CSI_STORAGE_CAPACITY, capacity)
        local = {"local": {"path": "/disk"}, **_reached_from(HOSTNAME, [node])}
        _put(listers.persistent_volumes, kinds.PERSISTENT_VOLUME, _volume(f"local-{node}", "local", position, local))
    for number in range(CLAIMS):
        _add_claim(cache, number)


def _add_claim(cache: Cache, number: int) -> None:
    name, storage_class = f"claim-{number}", ("bound", "dynamic", "local")[number % 3]
    volume = f"pv-{number}" if storage_class == "bound" else ""
    claim = {
        "metadata": {
            "name": name,
            "namespace": "bench",
            "uid": name,
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"} if volume else {},
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "volumeName": volume,
            "resources": {"requests": {"storage": f"{1 + number % 10}Gi"}},
        },
        "status": {"phase": "Bound" if volume else "Pending"},
    }
    _put(cache.listers.persistent_volume_claims, kinds.PERSISTENT_VOLUME_CLAIM, claim)
    if volume:
        zones = [f"zone-{zone}" for zone in range(10) if (zone + number) % 2]
        more = {
            "csi": {"driver": DRIVER, "volumeHandle": volume},
            "claimRef": {"namespace": "bench", "name": name, "uid": name},
            **_reached_from(ZONE, zones),
        }
        document = _volume(volume, storage_class, number, more)
        document["metadata"]["labels"] = {ZONE: "__".join(zones)}
        _put(cache.listers.persistent_volumes, kinds.PERSISTENT_VOLUME, document)


def _volume(name: str, storage_class: str, number: int, more: Document) -> Document:
    spec = {
        "capacity": {"storage": f"{10 + number % 7}Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        **more,
    }
    phase = "Bound" if "claimRef" in more else "Available"
    return {"metadata": {"name": name, "uid": name}, "spec": spec, "status": {"phase": phase}}


def _reached_from(key: str, values: list[str]) -> Document:
    here = {"key": key, "operator": "In", "values": values}
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}}


def _put(lister: Lister[Any], kind: Kind[Any], document: Document) -> None:
    lister.put(kind.decoder.decode(msgspec.json.encode(document)))
