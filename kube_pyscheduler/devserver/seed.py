"""Objects to start with: plain nodes in any number, and Kubernetes YAML files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml

from kube_pyscheduler.devserver.registry import Registry
from kube_pyscheduler.devserver.resources import NODES, ResourceTable
from kube_pyscheduler.devserver.store import Object
from kube_pyscheduler.devserver.yaml_text import load_all_yaml

ZONES = ("zone-a", "zone-b", "zone-c")
REGION = "region-1"
_CAPACITY = {"cpu": "32", "memory": "128Gi", "ephemeral-storage": "200Gi", "pods": "110"}


class SeedError(Exception):
    """A seed file can't be used; the message names the file and the document."""


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
    """The objects of a YAML file with any number of documents; a List counts as its items."""
    try:
        documents = list(load_all_yaml(path.read_text()))
    except (OSError, yaml.YAMLError) as error:
        raise SeedError(f"{path}: {error}") from error
    for number, document in enumerate(documents, 1):
        if document is None:
            continue
        if not isinstance(document, dict) or not document.get("kind") or not document.get("apiVersion"):
            raise SeedError(f"{path}: document {number} is not a Kubernetes object (kind and apiVersion are needed)")
        if document["kind"].endswith("List") and isinstance(document.get("items"), list):
            yield from document["items"]
        else:
            yield document


def seed_file(registry: Registry, table: ResourceTable, path: Path) -> int:
    """Create every object of a file, status included; the number of objects. SeedError says what is wrong."""
    count = 0
    for obj in read_file(path):
        resource = table.by_kind(obj["apiVersion"], obj["kind"])
        if resource is None:
            raise SeedError(f"{path}: {obj['apiVersion']} {obj['kind']} is not a kind this server knows")
        if resource.namespaced:
            metadata = obj.get("metadata") or {}
            obj = {**obj, "metadata": {**metadata, "namespace": metadata.get("namespace") or "default"}}
        created = registry.create(resource, obj)
        if obj.get("status") and "status" in resource.subresources:
            registry.update(resource, {**created, "status": obj["status"]}, subresource="status")
        count += 1
    return count
