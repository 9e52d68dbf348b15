"""Makes volumes for claims, as the external provisioner of a CSI driver would, for every provisioner that is named.

Source: the external-provisioner's sidecar; annotations from component-helpers/storage/volume/helpers.go.
"""

from __future__ import annotations

import zlib

from kube_pyscheduler.devserver.controllers import volume_matching as matching
from kube_pyscheduler.devserver.controllers.environment import Environment
from kube_pyscheduler.devserver.controllers.events import NORMAL, WARNING
from kube_pyscheduler.devserver.errors import StatusError
from kube_pyscheduler.devserver.resources import (
    CSI_NODES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
)
from kube_pyscheduler.devserver.store import Key, Object

NO_PROVISIONER = "kubernetes.io/no-provisioner"
FAIL_ANNOTATION = "devserver.kube-pyscheduler/fail-on-nodes"
"""Of a StorageClass: names of nodes, separated by commas, for which no volume can be made; "*" is all."""
_PROVISIONER_MARKS = ("volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner")
_ZONE = "topology.kubernetes.io/zone"
RETRY_SECONDS = 15.0
"""Until a failed attempt without a selected node is repeated."""


class Provisioner:
    """Every CSI driver's provisioner at once."""

    def __init__(self, env: Environment) -> None:
        self._env = env

    def begin(self, key: Key, claim: Object, storage_class: Object) -> bool:
        """Make a volume for the claim, after the time that it takes; False where the class has no provisioner."""
        provisioner = storage_class["provisioner"]
        if provisioner == NO_PROVISIONER:
            return False
        marks = dict.fromkeys(_PROVISIONER_MARKS, provisioner)
        annotations = claim["metadata"].get("annotations") or {}
        if not marks.items() <= annotations.items():
            metadata = {**claim["metadata"], "annotations": {**annotations, **marks}}
            # The change brings the controller back here.
            self._env.store.update(PERSISTENT_VOLUME_CLAIMS, {**claim, "metadata": metadata})
            return True
        self._env.agenda.later(self._env.settings.provision_seconds, self._provision, key)
        return True

    def _provision(self, key: Key) -> None:
        claim = self._env.store.get(PERSISTENT_VOLUME_CLAIMS, *key)
        if claim is None or claim["spec"].get("volumeName"):
            return
        storage_class = self._env.store.get(STORAGE_CLASSES, "", matching.class_of(claim))
        node = matching.annotation(claim, matching.SELECTED_NODE)
        if storage_class is None or (node is None and storage_class["volumeBindingMode"] == "WaitForFirstConsumer"):
            return
        name = f"pvc-{claim['metadata']['uid']}"
        if self._env.store.get(PERSISTENT_VOLUMES, "", name) is not None:
            return
        if _fails(storage_class, node):
            self._fail(key, claim, storage_class, node)
            return
        topology = self._topology_of(storage_class, node) if node else self._any_topology(storage_class, claim)
        volume = _volume(name, claim, storage_class, topology)
        try:
            self._env.registry.create(PERSISTENT_VOLUMES, volume)
        except StatusError as error:
            message = f"failed to save PersistentVolume: {error.message}"
            self._env.events.write(storage_class["provisioner"], claim, WARNING, "ProvisioningFailed", message)
            raise
        message = f"Successfully provisioned volume {name}"
        self._env.events.write(storage_class["provisioner"], claim, NORMAL, "ProvisioningSucceeded", message)

    def _fail(self, key: Key, claim: Object, storage_class: Object, node: str | None) -> None:
        """Tell, and give the choice of the node back to the scheduler."""
        where = f"node {node} has no room" if node else "no room anywhere"
        message = (
            f'failed to provision volume with StorageClass "{storage_class["metadata"]["name"]}": '
            f"rpc error: code = ResourceExhausted desc = {where}"
        )
        self._env.events.write(storage_class["provisioner"], claim, WARNING, "ProvisioningFailed", message)
        if node is None:
            self._env.agenda.later(RETRY_SECONDS, self._provision, key)
            return
        annotations = {k: v for k, v in claim["metadata"]["annotations"].items() if k != matching.SELECTED_NODE}
        metadata = {**claim["metadata"], "annotations": annotations}
        self._env.store.update(PERSISTENT_VOLUME_CLAIMS, {**claim, "metadata": metadata})

    # -- topology ----------------------------------------------------------------------------------------------

    def _topology_of(self, storage_class: Object, node_name: str) -> dict[str, str]:
        """The labels of the node from which a volume made for it can be reached: those that its driver names, else
        its zone."""
        node = self._env.store.get(NODES, "", node_name)
        labels = (node["metadata"].get("labels") or {}) if node is not None else {}
        keys = self._topology_keys(storage_class["provisioner"], node_name)
        return {key: labels[key] for key in ((_ZONE,) if keys is None else keys) if key in labels}

    def _topology_keys(self, driver: str, node_name: str) -> list[str] | None:
        """None where the node's CSINode does not name the driver."""
        csi_node = self._env.store.get(CSI_NODES, "", node_name)
        for entry in ((csi_node or {}).get("spec") or {}).get("drivers") or ():
            if entry["name"] == driver:
                return list(entry.get("topologyKeys") or ())
        return None

    def _any_topology(self, storage_class: Object, claim: Object) -> dict[str, str]:
        """For an Immediate class: one of the allowed topologies, else one that the driver's nodes have."""
        for term in storage_class.get("allowedTopologies") or ():
            return {e["key"]: e["values"][0] for e in term.get("matchLabelExpressions") or ()}
        choices: dict[tuple[tuple[str, str], ...], None] = {}
        for csi_node in self._env.store.list_objects(CSI_NODES):
            name = csi_node["metadata"]["name"]
            if self._topology_keys(storage_class["provisioner"], name):
                choices[tuple(sorted(self._topology_of(storage_class, name).items()))] = None
        if not choices:
            return {}
        number = zlib.crc32(claim["metadata"]["name"].encode())
        return dict(sorted(choices)[number % len(choices)])


def _fails(storage_class: Object, node: str | None) -> bool:
    names = (matching.annotation(storage_class, FAIL_ANNOTATION) or "").split(",")
    return "*" in names or (node is not None and node in (name.strip() for name in names))


def _volume(name: str, claim: Object, storage_class: Object, topology: dict[str, str]) -> Object:
    metadata, spec = claim["metadata"], claim["spec"]
    volume: Object = {
        "metadata": {"name": name, "annotations": {matching.PROVISIONED_BY: storage_class["provisioner"]}},
        "spec": {
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "accessModes": spec["accessModes"],
            "volumeMode": spec.get("volumeMode", "Filesystem"),
            "persistentVolumeReclaimPolicy": storage_class["reclaimPolicy"],
            "storageClassName": storage_class["metadata"]["name"],
            "csi": {"driver": storage_class["provisioner"], "volumeHandle": name},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": metadata["namespace"],
                "name": metadata["name"],
                "uid": metadata["uid"],
                "resourceVersion": metadata["resourceVersion"],
            },
        },
    }
    if storage_class.get("mountOptions"):
        volume["spec"]["mountOptions"] = storage_class["mountOptions"]
    if spec.get("volumeAttributesClassName"):
        volume["spec"]["volumeAttributesClassName"] = spec["volumeAttributesClassName"]
    if topology:
        expressions = [{"key": k, "operator": "In", "values": [v]} for k, v in sorted(topology.items())]
        volume["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}
    return volume
