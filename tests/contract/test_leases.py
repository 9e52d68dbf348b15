import json
from typing import Any

from kube_pyscheduler.kit.timestamps import rfc3339_micro
from kube_pyscheduler.leader.election import Timing
from kube_pyscheduler.leader.elector import Elector
from kube_pyscheduler.transport import requests
from kube_pyscheduler.transport.errors import AlreadyExists, Conflict, NotFound
from tests.contract.cluster import Cluster, refused


def candidate(cluster: Cluster, identity: str) -> Elector:
    timing = Timing(lease_duration=3.0, renew_deadline=2.0, retry_period=0.2)
    return Elector(cluster.client, namespace=cluster.namespace, name="lead", identity=identity, timing=timing)


async def lease_of(cluster: Cluster) -> dict[str, Any]:
    lease: dict[str, Any] = json.loads(await cluster.client.send(requests.get_lease(cluster.namespace, "lead")))
    return lease


async def test_a_lease_is_acquired_released_and_acquired_by_another(cluster: Cluster) -> None:
    first, second = candidate(cluster, "a"), candidate(cluster, "b")
    await first.acquire()
    spec = (await lease_of(cluster))["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("a", 3, 0)
    await first.release()
    spec = (await lease_of(cluster))["spec"]
    assert (spec.get("holderIdentity", ""), spec["leaseDurationSeconds"]) == ("", 1)
    await second.acquire()
    spec = (await lease_of(cluster))["spec"]
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("b", 1)


async def test_a_stale_update_is_a_conflict(cluster: Cluster) -> None:
    await candidate(cluster, "a").acquire()
    lease = await lease_of(cluster)
    lease["spec"]["renewTime"] = rfc3339_micro(1_800_000_000.0)
    update = requests.update_lease(cluster.namespace, "lead", lease)
    await cluster.client.send(update)
    error = await refused(cluster.client.send(update))
    assert isinstance(error, Conflict)
    assert (error.code, error.reason) == (409, "Conflict")
    assert "the object has been modified" in error.message


async def test_a_lease_is_created_once(cluster: Cluster) -> None:
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "lead", "namespace": cluster.namespace},
        "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15},
    }
    assert isinstance(await refused(cluster.client.send(requests.get_lease(cluster.namespace, "lead"))), NotFound)
    create = requests.create_lease(cluster.namespace, lease)
    await cluster.client.send(create)
    assert isinstance(await refused(cluster.client.send(create)), AlreadyExists)


async def test_times_keep_their_microseconds(cluster: Cluster) -> None:
    await candidate(cluster, "a").acquire()
    lease = await lease_of(cluster)
    lease["spec"]["renewTime"] = "2026-01-01T00:00:00.123456Z"
    await cluster.client.send(requests.update_lease(cluster.namespace, "lead", lease))
    assert (await lease_of(cluster))["spec"]["renewTime"] == "2026-01-01T00:00:00.123456Z"
