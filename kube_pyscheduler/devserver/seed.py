"""Objects to start with: plain nodes in any number, and Kubernetes YAML files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from kube_pyscheduler.devserver.errors import StatusError
from kube_pyscheduler.devserver.registry import Registry
from kube_pyscheduler.devserver.resources import NAMESPACES, NODES, PODS, SERVICE_ACCOUNTS, Resource
from kube_pyscheduler.devserver.store import Object, copy_object
from kube_pyscheduler.devserver.yaml_text import load_all_yaml

ZONES = ("zone-a", "zone-b", "zone-c")
REGION = "region-1"
_CAPACITY = {"cpu": "32", "memory": "128Gi", "ephemeral-storage": "200Gi", "pods": "110"}
_FIRST = (
    "namespaces",
    "customresourcedefinitions.apiextensions.k8s.io",
    "priorityclasses.scheduling.k8s.io",
    "runtimeclasses.node.k8s.io",
    "storageclasses.storage.k8s.io",
    "serviceaccounts",
    "limitranges",
    "nodes",
    "persistentvolumeclaims",
    "deployments.apps",
    "replicasets.apps",
    "statefulsets.apps",
    "daemonsets.apps",
    "cronjobs.batch",
    "jobs.batch",
)
"""What others refer to comes before them, whatever its place in the file; the rest keeps its order."""
_SYSTEM_METADATA = ("resourceVersion", "uid", "creationTimestamp", "generation", "managedFields", "selfLink")


class SeedError(Exception):
    """A seed file can't be used; the message names the file and the document or object."""


def make_node(number: int) -> Object:
    """A ready node "node-00007", spread over three zones: 32 CPUs, 128 GiB, 110 pods."""
    name = f"node-{number:05}"
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": ZONES[number % len(ZONES)],
        "topology.kubernetes.io/region": REGION,
    }
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {
            "capacity": dict(_CAPACITY),
            "allocatable": dict(_CAPACITY),
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            "addresses": [
                {"type": "InternalIP", "address": f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"},
                {"type": "Hostname", "address": name},
            ],
            "nodeInfo": {
                "architecture": "amd64",
                "operatingSystem": "linux",
                "kubeletVersion": "v1.36.0",
                "osImage": "Hollow Linux",
                "kernelVersion": "6.12.0",
                "containerRuntimeVersion": "hollow://1.0",
            },
        },
    }


def seed_nodes(registry: Registry, count: int) -> None:
    """Create ``count`` nodes as ``make_node`` makes them."""
    for number in range(count):
        registry.create(NODES, make_node(number))


def read_file(path: Path) -> Iterator[Object]:
    """The objects of a YAML file with any number of documents; a List counts as its items. SeedError."""
    try:
        documents = list(load_all_yaml(path.read_text()))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SeedError(f"{path}: {error}") from error
    for number, document in enumerate(documents, 1):
        if document is None:
            continue
        _check(path, f"document {number}", document)
        if not (document["kind"].endswith("List") and isinstance(document.get("items"), list)):
            yield document
            continue
        for index, item in enumerate(document["items"], 1):
            _check(path, f"item {index} of document {number}", item)
            yield item


def _check(path: Path, place: str, obj: Any) -> None:
    if not isinstance(obj, dict) or not all(isinstance(obj.get(key), str) for key in ("apiVersion", "kind")):
        raise SeedError(f"{path}: {place} is not a Kubernetes object (apiVersion and kind are needed)")
    if not isinstance(obj.get("metadata") or {}, dict):
        raise SeedError(f"{path}: {place} has metadata that is not a map")


def seed_file(registry: Registry, path: Path) -> int:
    """Create or replace every object of a file, status included; the number of objects.

    Dumps of a cluster work too: UIDs are new, and references to the old ones follow. Namespaces and ServiceAccounts
    that only occur in other objects are made. SeedError says what is wrong; objects before it stay.
    """
    return _Seeding(registry, path).run(list(read_file(path)))


class _Seeding:
    def __init__(self, registry: Registry, path: Path) -> None:
        self._registry = registry
        self._path = path
        self._uids: dict[str, str] = {}

    def run(self, objects: list[Object]) -> int:
        def rank(obj: Object) -> int:
            resource = self._registry.table.by_kind(obj.get("apiVersion", ""), obj.get("kind", ""))
            return _FIRST.index(resource.key) if resource is not None and resource.key in _FIRST else len(_FIRST)

        for obj in sorted(objects, key=rank):
            try:
                self._seed(obj)
            except StatusError as error:
                name = (obj.get("metadata") or {}).get("name", "")
                raise SeedError(f"{self._path}: {obj['kind']} {name}: {error.message}") from error
        return len(objects)

    def _seed(self, given: Object) -> None:
        # Definitions earlier in the file may have added kinds by now.
        resource = self._registry.table.by_kind(given["apiVersion"], given["kind"])
        if resource is None:
            kind = f"{given['apiVersion']} {given['kind']}"
            raise SeedError(f"{self._path}: {kind} is not a kind this server knows")
        obj: Object = _renamed(copy_object(given), self._uids)
        metadata = obj["metadata"] = obj.get("metadata") or {}
        old_uid = metadata.get("uid")
        for key in _SYSTEM_METADATA:
            metadata.pop(key, None)
        if resource.namespaced:
            metadata["namespace"] = metadata.get("namespace") or "default"
            self._furnish(resource, obj)
        created = self._put(resource, obj)
        if old_uid:
            self._uids[old_uid] = created["metadata"]["uid"]
        if obj.get("status") and "status" in resource.subresources:
            self._registry.update(resource, {**created, "status": obj["status"]}, subresource="status")

    def _put(self, resource: Resource, obj: Object) -> Object:
        metadata = obj["metadata"]
        current = self._registry.store.get(resource, metadata.get("namespace", ""), metadata.get("name", ""))
        if current is None:
            return self._registry.create(resource, obj)
        version = {"resourceVersion": current["metadata"]["resourceVersion"]}
        return self._registry.update(resource, {**obj, "metadata": {**metadata, **version}})

    def _furnish(self, resource: Resource, obj: Object) -> None:
        namespace = obj["metadata"]["namespace"]
        if self._registry.store.get(NAMESPACES, "", namespace) is None:
            self._registry.create(NAMESPACES, {"metadata": {"name": namespace}})
        if resource is PODS:
            spec = obj.get("spec")
            account = (spec.get("serviceAccountName") if isinstance(spec, dict) else None) or "default"
            if self._registry.store.get(SERVICE_ACCOUNTS, namespace, account) is None:
                self._registry.create(SERVICE_ACCOUNTS, {"metadata": {"name": account, "namespace": namespace}})


def _renamed(node: Any, uids: dict[str, str]) -> Any:
    """The value with every reference to a seeded UID changed to the new one."""
    if not uids:
        return node
    if isinstance(node, dict):
        return {
            key: uids.get(value, value) if key == "uid" and isinstance(value, str) else _renamed(value, uids)
            for key, value in node.items()
        }
    return [_renamed(item, uids) for item in node] if isinstance(node, list) else node
