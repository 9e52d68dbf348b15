"""Storage on the stage: the class "disks", claims and volumes of it."""

from __future__ import annotations

from typing import Any

from kube_pyscheduler.devserver.resources import (
    CSI_NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
)
from tests.cases.stage import Stage

DRIVER = "csi.example.com"


def add_class(stage: Stage, mode: str = "WaitForFirstConsumer") -> None:
    stage.registry.create(
        STORAGE_CLASSES, {"metadata": {"name": "disks"}, "provisioner": DRIVER, "volumeBindingMode": mode}
    )


def add_claim(stage: Stage, name: str, *, mode: str = "ReadWriteOnce", volume: str = "") -> None:
    spec: dict[str, Any] = {"storageClassName": "disks", "accessModes": [mode]}
    spec["resources"] = {"requests": {"storage": "1Gi"}}
    if volume:
        spec["volumeName"] = volume
    stage.registry.create(PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})


def add_volume(stage: Stage, name: str, *, mode: str = "ReadWriteOnce") -> None:
    spec: dict[str, Any] = {"storageClassName": "disks", "accessModes": [mode], "capacity": {"storage": "1Gi"}}
    spec["csi"] = {"driver": DRIVER, "volumeHandle": name}
    stage.registry.create(PERSISTENT_VOLUMES, {"metadata": {"name": name}, "spec": spec})


def using(*claims: str) -> dict[str, Any]:
    return {"volumes": [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]}


def add_csi_node(stage: Stage, node: str, count: int) -> None:
    drivers = [{"name": DRIVER, "nodeID": node, "topologyKeys": [], "allocatable": {"count": count}}]
    stage.registry.create(CSI_NODES, {"metadata": {"name": node}, "spec": {"drivers": drivers}})


def claim(stage: Stage, name: str) -> dict[str, Any]:
    found = stage.world.server.store.get(PERSISTENT_VOLUME_CLAIMS, "default", name)
    assert found is not None
    return found
