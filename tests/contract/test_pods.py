from typing import Any

from kube_pyscheduler.transport import requests
from kube_pyscheduler.transport.errors import AlreadyExists, Conflict, NotFound
from tests.contract.cluster import Cluster, refused

OTHER_UID = "00000000-0000-0000-0000-000000000000"
UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/1 nodes are available",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


async def test_conditions_are_merged_by_type(cluster: Cluster, pod: dict[str, Any]) -> None:
    uid = pod["metadata"]["uid"]
    ready = {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    for conditions in ([ready], [UNSCHEDULABLE], [{**UNSCHEDULABLE, "message": "0/2 nodes are available"}]):
        await cluster.client.send(requests.patch_pod_status(cluster.namespace, "p", uid, {"conditions": conditions}))
    status = (await cluster.get_pod("p"))["status"]
    messages = {item["type"]: item.get("message", "") for item in status["conditions"]}
    assert messages == {"Ready": "", "PodScheduled": "0/2 nodes are available"}
    assert status["phase"] == "Pending"


async def test_a_nomination_is_set_and_cleared(cluster: Cluster, pod: dict[str, Any]) -> None:
    uid = pod["metadata"]["uid"]
    for node, expected in (("n1", "n1"), (None, None)):
        patch = requests.patch_pod_status(cluster.namespace, "p", uid, {"nominatedNodeName": node})
        await cluster.client.send(patch)
        assert (await cluster.get_pod("p"))["status"].get("nominatedNodeName") == expected


async def test_a_status_patch_that_changes_nothing_writes_nothing(cluster: Cluster, pod: dict[str, Any]) -> None:
    patch = requests.patch_pod_status(cluster.namespace, "p", pod["metadata"]["uid"], {"conditions": [UNSCHEDULABLE]})
    await cluster.client.send(patch)
    before = (await cluster.get_pod("p"))["metadata"]["resourceVersion"]
    await cluster.client.send(patch)
    assert (await cluster.get_pod("p"))["metadata"]["resourceVersion"] == before


async def test_a_status_patch_is_for_one_uid(cluster: Cluster, pod: dict[str, Any]) -> None:
    patch = requests.patch_pod_status(cluster.namespace, "p", OTHER_UID, {"conditions": [UNSCHEDULABLE]})
    error = await refused(cluster.client.send(patch))
    assert isinstance(error, Conflict)
    assert OTHER_UID in error.message


async def test_a_status_patch_of_no_pod(cluster: Cluster) -> None:
    patch = requests.patch_pod_status(cluster.namespace, "none", OTHER_UID, {"nominatedNodeName": "n1"})
    assert isinstance(await refused(cluster.client.send(patch)), NotFound)


async def test_a_deletion_is_for_one_uid_and_happens_once(cluster: Cluster, pod: dict[str, Any]) -> None:
    error = await refused(cluster.client.send(requests.delete_pod(cluster.namespace, "p", OTHER_UID)))
    assert isinstance(error, Conflict)
    deletion = requests.delete_pod(cluster.namespace, "p", pod["metadata"]["uid"])
    await cluster.client.send(deletion)
    assert isinstance(await refused(cluster.client.send(deletion)), NotFound)


async def test_the_body_of_a_404(cluster: Cluster) -> None:
    error = await refused(cluster.client.send(requests.get_pod(cluster.namespace, "none")))
    assert (error.code, error.reason, error.message) == (404, "NotFound", 'pods "none" not found')


async def test_the_body_of_a_409(cluster: Cluster, pod: dict[str, Any]) -> None:
    error = await refused(cluster.create_pod("p"))
    assert isinstance(error, AlreadyExists)
    assert (error.code, error.reason, error.message) == (409, "AlreadyExists", 'pods "p" already exists')


async def test_the_body_of_a_422(cluster: Cluster) -> None:
    error = await refused(cluster.create_pod("p", containers=[]))
    assert (error.code, error.reason) == (422, "Invalid")
    assert error.message.startswith('Pod "p" is invalid: spec.containers: Required value')


async def test_defaults_that_scheduling_reads(cluster: Cluster, pod: dict[str, Any]) -> None:
    assert pod["metadata"]["uid"]
    assert pod["status"]["phase"] == "Pending"
    assert pod["spec"]["priority"] == 0
    assert pod["spec"]["preemptionPolicy"] == "PreemptLowerPriority"
    assert {item["key"] for item in pod["spec"]["tolerations"]} == {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    }
