from __future__ import annotations

from typing import Any

from tests.devserver_controllers.cluster import Cluster, pod

FINALIZER = "resource.kubernetes.io/delete-protection"
SPEC = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example"}}]}}


def template(name: str = "gpu") -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"metadata": {"labels": {"made": "yes"}}, "spec": SPEC},
    }


def user(name: str = "train", **spec: Any) -> dict[str, Any]:
    claims = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    return pod(name, resourceClaims=claims, **spec)


async def allocate(cluster: Cluster, claim: str, *pods: str) -> None:
    """What the scheduler writes: a finalizer, then the allocation and who it is for."""
    await cluster.patch("ResourceClaim", claim, {"metadata": {"finalizers": [FINALIZER]}})
    reserved = []
    for name in pods:
        uid = (await cluster.have("Pod", name))["metadata"]["uid"]
        reserved.append({"resource": "pods", "name": name, "uid": uid})
    result = {"request": "gpu", "driver": "gpu.example", "pool": "p", "device": "d"}
    status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": reserved}
    await cluster.patch("ResourceClaim", claim, {"status": status}, subresource="status")


async def test_a_claim_is_made_from_the_template_and_noted_in_the_pod(cluster: Cluster) -> None:
    await cluster.create(template())
    created = await cluster.create(user())
    (claim,) = await cluster.all("ResourceClaim")
    assert claim["metadata"]["name"].startswith("train-gpu-")
    assert claim["metadata"]["annotations"] == {"resource.kubernetes.io/pod-claim-name": "gpu"}
    assert claim["metadata"]["labels"] == {"made": "yes"}
    assert claim["metadata"]["ownerReferences"][0]["uid"] == created["metadata"]["uid"]
    assert claim["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] == "gpu.example"
    statuses = (await cluster.have("Pod", "train"))["status"]["resourceClaimStatuses"]
    assert statuses == [{"name": "gpu", "resourceClaimName": claim["metadata"]["name"]}]


async def test_long_names_are_cut(cluster: Cluster) -> None:
    await cluster.create(template())
    await cluster.create(user("t" * 60))
    (claim,) = await cluster.all("ResourceClaim")
    assert len(claim["metadata"]["name"]) <= 63


async def test_a_template_that_comes_late(cluster: Cluster) -> None:
    await cluster.create(user())
    assert await cluster.all("ResourceClaim") == []
    assert len(await cluster.events("FailedResourceClaimCreation")) == 1
    await cluster.create(template())
    assert len(await cluster.all("ResourceClaim")) == 1


async def test_a_claim_deleted_too_early_is_made_again(cluster: Cluster) -> None:
    await cluster.create(template())
    await cluster.create(user())
    (first,) = await cluster.names("ResourceClaim")
    await cluster.delete("ResourceClaim", first)
    (second,) = await cluster.names("ResourceClaim")
    statuses = (await cluster.have("Pod", "train"))["status"]["resourceClaimStatuses"]
    assert first != second
    assert statuses == [{"name": "gpu", "resourceClaimName": second}]


async def test_a_generated_claim_goes_when_its_pod_has_ended(cluster: Cluster) -> None:
    await cluster.create(template())
    await cluster.create(user(restartPolicy="Never"))
    (claim,) = await cluster.names("ResourceClaim")
    await allocate(cluster, claim, "train")
    await cluster.bind("train", "node-1")
    cluster.pass_time(9)
    assert await cluster.names("ResourceClaim") == [claim]
    cluster.pass_time(1)
    assert (await cluster.have("Pod", "train"))["status"]["phase"] == "Succeeded"
    assert await cluster.names("ResourceClaim") == []


async def test_a_generated_claim_goes_with_its_pod(cluster: Cluster) -> None:
    await cluster.create(template())
    await cluster.create(user())
    (claim,) = await cluster.names("ResourceClaim")
    await allocate(cluster, claim, "train")
    await cluster.bind("train", "node-1")
    await cluster.delete("Pod", "train", gracePeriodSeconds=0)
    assert await cluster.names("ResourceClaim") == []


async def test_a_shared_claim_is_deallocated_with_its_last_user(cluster: Cluster) -> None:
    shared = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "shared"}}
    await cluster.create({**shared, "spec": SPEC})
    names = ("a", "b")
    for name in names:
        await cluster.create(pod(name, resourceClaims=[{"name": "gpu", "resourceClaimName": "shared"}]))
    await allocate(cluster, "shared", *names)
    await cluster.delete("Pod", "a")
    claim = await cluster.have("ResourceClaim", "shared")
    assert [entry["name"] for entry in claim["status"]["reservedFor"]] == ["b"]
    assert claim["status"]["allocation"]
    await cluster.delete("Pod", "b")
    claim = await cluster.have("ResourceClaim", "shared")
    assert claim.get("status", {}) == {}
    assert not claim["metadata"].get("finalizers")


async def test_a_deleted_claim_that_is_in_use_stays_until_it_is_not(cluster: Cluster) -> None:
    body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "shared"}, "spec": SPEC}
    await cluster.create(body)
    await cluster.create(pod("a", resourceClaims=[{"name": "gpu", "resourceClaimName": "shared"}]))
    await allocate(cluster, "shared", "a")
    await cluster.delete("ResourceClaim", "shared")
    assert "deletionTimestamp" in (await cluster.have("ResourceClaim", "shared"))["metadata"]
    await cluster.delete("Pod", "a")
    assert await cluster.get("ResourceClaim", "shared") is None


async def test_a_pod_bound_by_hand_reserves_its_allocated_claims(cluster: Cluster) -> None:
    body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "shared"}, "spec": SPEC}
    await cluster.create(body)
    await allocate(cluster, "shared")
    await cluster.create(pod("a", resourceClaims=[{"name": "gpu", "resourceClaimName": "shared"}]))
    await cluster.bind("a", "node-1")
    claim = await cluster.have("ResourceClaim", "shared")
    assert [entry["name"] for entry in claim["status"]["reservedFor"]] == ["a"]
