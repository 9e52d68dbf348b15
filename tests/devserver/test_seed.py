"""Seed files: any YAML, dumps of clusters, and what can't be used."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from kube_pyscheduler.devserver.app import DevServer
from kube_pyscheduler.devserver.resources import CUSTOM_RESOURCE_DEFINITIONS, NODES, PODS, REPLICA_SETS, builtin
from kube_pyscheduler.devserver.seed import SeedError, seed_file, seed_nodes
from tests.devserver.api import make_pod
from tests.devserver.test_custom_resources import definition


def written(tmp_path: Path, *documents: object) -> Path:
    path = tmp_path / "seed.yaml"
    path.write_text(yaml.safe_dump_all(documents))
    return path


async def test_nodes_by_number(server: DevServer) -> None:
    seed_nodes(server.registry, 4)
    zones = [n["metadata"]["labels"]["topology.kubernetes.io/zone"] for n in server.store.list_objects(NODES)]
    assert zones == ["zone-a", "zone-b", "zone-c", "zone-a"]


async def test_documents_in_any_order_with_their_status(server: DevServer, tmp_path: Path) -> None:
    pod = make_pod("p", priorityClassName="high", serviceAccountName="robot", nodeName="n")
    pod["metadata"]["namespace"] = "elsewhere"
    pod["status"] = {"phase": "Running"}
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", **definition()}
    path = written(
        tmp_path,
        {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}},
        {"apiVersion": "v1", "kind": "List", "items": [pod]},
        None,
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9},
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "1"}}},
        kind,
    )
    assert seed_file(server.registry, path) == 5
    seeded = server.store.get(PODS, "elsewhere", "p")
    assert seeded is not None
    assert (seeded["spec"]["priority"], seeded["spec"]["nodeName"]) == (9, "n")
    assert seeded["status"]["phase"] == "Running"
    assert server.store.count(CUSTOM_RESOURCE_DEFINITIONS) == 1


async def test_references_of_a_dump_follow_the_new_uids(server: DevServer, tmp_path: Path) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": make_pod()["spec"]}
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "r", "uid": "old-uid", "resourceVersion": "77", "creationTimestamp": None},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    }
    pod = make_pod("p")
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "old-uid", "controller": True}
    pod["metadata"].update(ownerReferences=[reference], resourceVersion="78", uid="pod-uid")
    seed_file(server.registry, written(tmp_path, {"apiVersion": "v1", "kind": "PodList", "items": [pod]}, owner))
    found, dependent = server.store.get(REPLICA_SETS, "default", "r"), server.store.get(PODS, "default", "p")
    assert found is not None
    assert dependent is not None
    assert dependent["metadata"]["ownerReferences"][0]["uid"] == found["metadata"]["uid"] != "old-uid"


async def test_what_exists_is_replaced(server: DevServer, tmp_path: Path) -> None:
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}}
    seed_file(server.registry, written(tmp_path, config_map, {**config_map, "data": {"a": "2"}}))
    found = server.store.get(builtin("configmaps"), "default", "c")
    assert found is not None
    assert found["data"] == {"a": "2"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [", "seed.yaml"),
        ("just text", "document 1 is not a Kubernetes object"),
        ("kind: Pod", "document 1 is not a Kubernetes object"),
        ("{apiVersion: v1, kind: List, items: [5]}", "item 1 of document 1 is not"),
        ("{apiVersion: v1, kind: Pod, metadata: [x]}", "metadata that is not a map"),
        ("{apiVersion: v1, kind: Wonder, metadata: {name: x}}", "v1 Wonder is not a kind this server knows"),
        ("{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {}}", "Pod x: .*spec.containers: Required value"),
        ("{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: [1]}", "Pod x: .*cannot unmarshal"),
    ],
)
async def test_what_cannot_be_used(server: DevServer, tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "seed.yaml"
    path.write_text(text)
    with pytest.raises(SeedError, match=problem):
        seed_file(server.registry, path)
