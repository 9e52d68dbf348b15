import json
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from kube_pyscheduler.objects.kinds import POD
from kube_pyscheduler.transport import requests
from kube_pyscheduler.transport.client import Client
from kube_pyscheduler.transport.errors import APIError, Gone, TooManyRequests
from kube_pyscheduler.transport.requests import Request
from kube_pyscheduler.transport.watch import WatchStream
from tests.contract.cluster import Cluster, eventually

LIVE = "status.phase!=Succeeded,status.phase!=Failed"


class PodWatch:
    """A watch on all pods that looks at those of one namespace."""

    def __init__(self, stream: WatchStream, namespace: str) -> None:
        self._stream = stream
        self._namespace = namespace
        self._pending: list[tuple[str, dict[str, Any]]] = []

    async def next(self) -> tuple[str, dict[str, Any]]:
        """Type and object of the next event in our namespace."""
        while not self._pending:
            events = await self._stream.read()
            assert events, "the watch ended"
            for event in events:
                obj = msgspec.json.decode(event.object)
                if obj["metadata"].get("namespace") == self._namespace:
                    self._pending.append((event.type, obj))
        return self._pending.pop(0)


@pytest.fixture
async def watch(cluster: Cluster) -> AsyncIterator[PodWatch]:
    listed = json.loads(await cluster.client.send(requests.list_page(POD, limit=1)))
    version = listed["metadata"]["resourceVersion"]
    request = requests.watch(POD, version=version, timeout=300, field_selector=LIVE)
    stream = await cluster.client.open_watch(request, idle=60.0)
    yield PodWatch(stream, cluster.namespace)
    stream.close()


async def test_changes_after_the_list_come_in_order_with_rising_versions(cluster: Cluster, watch: PodWatch) -> None:
    pod = await cluster.create_pod("p")
    await cluster.client.send(
        requests.patch_pod_status(cluster.namespace, "p", pod["metadata"]["uid"], {"nominatedNodeName": "x"})
    )
    await cluster.call(
        "DELETE", f"{cluster.pods}/p", {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
    )
    events = [await watch.next() for _ in range(3)]
    if events[-1][0] == "MODIFIED":
        assert events[-1][1]["metadata"]["deletionTimestamp"], "only a deletion may show as a change first"
        events[-1] = await watch.next()
    assert [kind for kind, _ in events] == ["ADDED", "MODIFIED", "DELETED"]
    versions = [int(obj["metadata"]["resourceVersion"]) for _, obj in events]
    assert versions == sorted(set(versions))
    assert {obj["metadata"]["uid"] for _, obj in events} == {pod["metadata"]["uid"]}


async def test_a_binding_shows_as_a_change_of_the_pod(cluster: Cluster, node: str, watch: PodWatch) -> None:
    pod = await cluster.create_pod("p")
    await cluster.client.send(requests.bind_pod(cluster.namespace, "p", pod["metadata"]["uid"], node))
    await watch.next()
    kind, bound = await watch.next()
    assert kind == "MODIFIED"
    assert bound["spec"]["nodeName"] == node


async def test_a_pod_that_finishes_leaves_as_deleted(cluster: Cluster, watch: PodWatch) -> None:
    await cluster.create_pod("p")
    body = json.dumps({"status": {"phase": "Failed"}}).encode()
    await cluster.client.send(
        Request("PATCH", f"{cluster.pods}/p/status", body=body, content_type=requests.MERGE_PATCH)
    )
    assert [(await watch.next())[0] for _ in range(2)] == ["ADDED", "DELETED"]


async def test_a_watch_ends_in_time_and_brings_a_bookmark_before(cluster: Cluster) -> None:
    """Also where all that happened was not for this watch. The bookmark's version can be resumed from."""
    pod = await cluster.create_pod("p")
    version = pod["metadata"]["resourceVersion"]
    nothing = "metadata.name=no-such-pod"
    stream = await cluster.client.open_watch(
        requests.watch(POD, version=version, timeout=4, field_selector=nothing), idle=30.0
    )
    other = await cluster.create_pod("q")
    seen: list[tuple[str, Any]] = []
    try:
        while events := await stream.read():
            seen += [(event.type, msgspec.json.decode(event.object)["metadata"]) for event in events]
    finally:
        stream.close()
    assert {kind for kind, _ in seen} == {"BOOKMARK"}
    bookmark = seen[-1][1]
    assert not bookmark.get("name")
    assert int(bookmark["resourceVersion"]) >= int(other["metadata"]["resourceVersion"])
    resumed = await cluster.client.open_watch(
        requests.watch(POD, version=bookmark["resourceVersion"], timeout=300), idle=60.0
    )
    try:
        await cluster.create_pod("r")
        kind, obj = await PodWatch(resumed, cluster.namespace).next()
    finally:
        resumed.close()
    assert (kind, obj["metadata"]["name"]) == ("ADDED", "r")


async def test_a_watch_from_a_forgotten_version_is_gone(cluster: Cluster) -> None:
    """A kind that did not exist yet at version 1 has no history from there on, however young the cluster is."""
    group = f"{cluster.namespace}.example.com"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
    await cluster.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition, f"things.{group}")

    async def refusal() -> APIError | None:
        try:
            await _read_watch(cluster.client, f"/apis/{group}/v1/things")
        except APIError as error:
            # Until the server has got its storage ready.
            return None if error.code == 404 or isinstance(error, TooManyRequests) else error
        raise AssertionError("a watch from version 1 was served")

    error = await eventually(refusal)
    assert isinstance(error, Gone)
    assert error.code == 410


async def _read_watch(client: Client, path: str) -> None:
    query = "watch=1&resourceVersion=1&timeoutSeconds=2"
    stream = await client.open_watch(Request("GET", path, query), idle=30.0)
    try:
        await stream.read()
    finally:
        stream.close()
