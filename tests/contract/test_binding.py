import json
from typing import Any

import pytest

from kube_pyscheduler.transport import requests
from kube_pyscheduler.transport.binding import Fate, bind_pod
from kube_pyscheduler.transport.errors import Conflict, NotFound
from tests.contract.cluster import Cluster, refused

OTHER_UID = "00000000-0000-0000-0000-000000000000"


async def bind(cluster: Cluster, pod: dict[str, Any], node: str) -> Fate:
    metadata = pod["metadata"]
    return await bind_pod(
        cluster.client, namespace=cluster.namespace, name=metadata["name"], uid=metadata["uid"], node=node
    )


async def test_a_binding_sets_the_node_and_says_so_in_the_status(
    cluster: Cluster, node: str, pod: dict[str, Any]
) -> None:
    assert await bind(cluster, pod, node) is Fate.BOUND
    bound = await cluster.get_pod("p")
    assert bound["spec"]["nodeName"] == node
    (condition,) = [item for item in bound["status"]["conditions"] if item["type"] == "PodScheduled"]
    assert condition["status"] == "True"


async def test_a_bound_pod_is_not_bound_again(cluster: Cluster, node: str, pod: dict[str, Any]) -> None:
    await bind(cluster, pod, node)
    again = requests.bind_pod(cluster.namespace, "p", pod["metadata"]["uid"], "elsewhere")
    error = await refused(cluster.client.send(again))
    assert isinstance(error, Conflict)
    assert "already assigned to node" in error.message
    assert await bind(cluster, pod, "elsewhere") is Fate.ELSEWHERE
    assert await bind(cluster, pod, node) is Fate.BOUND


async def test_bc13_a_binding_is_for_one_uid(cluster: Cluster, node: str, pod: dict[str, Any]) -> None:
    error = await refused(cluster.client.send(requests.bind_pod(cluster.namespace, "p", OTHER_UID, node)))
    assert isinstance(error, Conflict)
    impostor = {"metadata": {"name": "p", "uid": OTHER_UID}}
    assert await bind(cluster, impostor, node) is Fate.GONE
    assert "nodeName" not in (await cluster.get_pod("p"))["spec"]


async def test_a_pod_that_does_not_exist(cluster: Cluster, node: str) -> None:
    error = await refused(cluster.client.send(requests.bind_pod(cluster.namespace, "none", OTHER_UID, node)))
    assert isinstance(error, NotFound)
    assert await bind(cluster, {"metadata": {"name": "none", "uid": OTHER_UID}}, node) is Fate.GONE


async def test_a_gated_pod(cluster: Cluster, node: str) -> None:
    gated = await cluster.create_pod("gated", schedulingGates=[{"name": "example.com/hold"}])
    error = await refused(
        cluster.client.send(requests.bind_pod(cluster.namespace, "gated", gated["metadata"]["uid"], node))
    )
    assert isinstance(error, Conflict)
    assert await bind(cluster, gated, node) is Fate.GATED


async def test_a_pod_that_is_being_deleted(cluster: Cluster, node: str) -> None:
    pod = await cluster.create_pod("p")
    metadata = pod["metadata"]
    body = {"metadata": {"uid": metadata["uid"], "finalizers": ["example.com/hold"]}}
    await cluster.client.send(_merge(f"{cluster.pods}/p", body))
    await cluster.client.send(requests.delete_pod(cluster.namespace, "p", metadata["uid"]))
    try:
        error = await refused(cluster.client.send(requests.bind_pod(cluster.namespace, "p", metadata["uid"], node)))
        assert isinstance(error, Conflict)
        assert await bind(cluster, pod, node) is Fate.GONE
    finally:
        await cluster.client.send(_merge(f"{cluster.pods}/p", {"metadata": {"finalizers": None}}))


@pytest.mark.parametrize("zone_label", ["topology.kubernetes.io/zone"])
async def test_the_nodes_zone_becomes_the_pods(
    cluster: Cluster, node: str, pod: dict[str, Any], zone_label: str
) -> None:
    await bind(cluster, pod, node)
    assert (await cluster.get_pod("p"))["metadata"]["labels"][zone_label] == "z1"


def _merge(path: str, body: dict[str, Any]) -> requests.Request:
    return requests.Request("PATCH", path, body=json.dumps(body).encode(), content_type=requests.MERGE_PATCH)
