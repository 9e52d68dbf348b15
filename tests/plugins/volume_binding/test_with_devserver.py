"""The daemon, an API server and its volume controllers, all real, over sockets."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from kube_pyscheduler.devserver.app import DevServer, serve
from kube_pyscheduler.devserver.controllers.environment import Settings
from kube_pyscheduler.devserver.options import DeleteOptions
from kube_pyscheduler.devserver.resources import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
)
from kube_pyscheduler.devserver.seed import seed_nodes
from kube_pyscheduler.transport.credentials import Credentials, Source
from kube_pyscheduler.transport.session import Session
from tests.storage import SELECTED_NODE
from tests.unit.daemon.cluster import Cluster, eventually
from tests.unit.daemon.running import options, running

WAIT = "WaitForFirstConsumer"
SCHEDULER = "kube-pyscheduler"


@contextlib.asynccontextmanager
async def scheduled_cluster(nodes: int) -> AsyncIterator[DevServer]:
    server = await serve(controllers=Settings(run_seconds=None))
    seed_nodes(server.registry, nodes)
    try:
        credentials = await Credentials.read(Source(master=server.url))
        async with Session(credentials, user_agent="test") as session, running(options(Cluster(server, session))):
            yield server
    finally:
        await server.stop()


def add_class(server: DevServer, name: str, **more: Any) -> None:
    document = {"metadata": {"name": name}, "provisioner": "csi.example", "volumeBindingMode": WAIT, **more}
    server.registry.create(STORAGE_CLASSES, document)


def claim_spec(storage_class: str, mode: str = "ReadWriteOnce") -> dict[str, Any]:
    return {
        "accessModes": [mode],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": "1Gi"}},
    }


def add_claim(server: DevServer, name: str, storage_class: str, mode: str = "ReadWriteOnce") -> None:
    metadata = {"name": name, "namespace": "default"}
    server.registry.create(PERSISTENT_VOLUME_CLAIMS, {"metadata": metadata, "spec": claim_spec(storage_class, mode)})


def pod_spec(*claims: str) -> dict[str, Any]:
    return {
        "schedulerName": SCHEDULER,
        "containers": [{"name": "c", "image": "x"}],
        "volumes": [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims],
    }


def add_pod(server: DevServer, name: str, *claims: str) -> None:
    server.registry.create(PODS, {"metadata": {"name": name, "namespace": "default"}, "spec": pod_spec(*claims)})


def pods(server: DevServer) -> dict[str, str]:
    """Pod → node, "" where it has none."""
    return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in server.store.list_objects(PODS)}


def claim(server: DevServer, name: str) -> dict[str, Any]:
    found = server.store.get(PERSISTENT_VOLUME_CLAIMS, "default", name)
    assert found is not None
    return found


async def test_pods_of_a_stateful_set_get_volumes_where_they_run() -> None:
    async with scheduled_cluster(nodes=3) as server:
        add_class(server, "fast")
        labels = {"app": "db"}
        template = {"metadata": {"labels": labels}, "spec": pod_spec()}
        spec = {
            "replicas": 3,
            "serviceName": "db",
            "selector": {"matchLabels": labels},
            "podManagementPolicy": "Parallel",
            "template": template,
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim_spec("fast")}],
        }
        server.registry.create(STATEFUL_SETS, {"metadata": {"name": "db", "namespace": "default"}, "spec": spec})
        names = [f"db-{number}" for number in range(3)]
        await eventually(lambda: all(pods(server).get(name) for name in names))
        for name, node in pods(server).items():
            bound = claim(server, f"data-{name}")
            assert bound["metadata"]["annotations"][SELECTED_NODE] == node
            assert bound["status"]["phase"] == "Bound"


async def test_a_claim_whose_provisioning_fails_is_tried_elsewhere() -> None:
    async with scheduled_cluster(nodes=2) as server:
        names = sorted(node["metadata"]["name"] for node in server.store.list_objects(NODES))
        fails = {"devserver.kube-pyscheduler/fail-on-nodes": names[0]}
        server.registry.create(
            STORAGE_CLASSES,
            {
                "metadata": {"name": "fast", "annotations": fails},
                "provisioner": "csi.example",
                "volumeBindingMode": WAIT,
            },
        )
        add_claim(server, "c", "fast")
        add_pod(server, "p", "c")
        await eventually(lambda: bool(pods(server)["p"]))
        assert pods(server)["p"] == names[1]


async def test_a_static_volume_is_bound_where_it_is() -> None:
    async with scheduled_cluster(nodes=3) as server:
        add_class(server, "local", provisioner="kubernetes.io/no-provisioner")
        node = sorted(found["metadata"]["name"] for found in server.store.list_objects(NODES))[1]
        here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
        spec = {
            "capacity": {"storage": "2Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "local": {"path": "/disk"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        }
        server.registry.create(PERSISTENT_VOLUMES, {"metadata": {"name": "disk"}, "spec": spec})
        add_claim(server, "c", "local")
        add_pod(server, "p", "c")
        await eventually(lambda: bool(pods(server)["p"]))
        assert pods(server)["p"] == node
        assert claim(server, "c")["spec"]["volumeName"] == "disk"


async def test_a_claim_for_one_pod_serves_one_pod_after_the_other() -> None:
    async with scheduled_cluster(nodes=2) as server:
        add_class(server, "fast")
        add_claim(server, "c", "fast", "ReadWriteOncePod")
        for name in ("a", "b"):
            add_pod(server, name, "c")
        await eventually(lambda: any(pods(server).values()))
        first = next(name for name, node in pods(server).items() if node)
        other = "b" if first == "a" else "a"
        assert not pods(server)[other]
        server.registry.delete(PODS, "default", first, DeleteOptions(grace_seconds=0))
        await eventually(lambda: bool(pods(server)[other]))
