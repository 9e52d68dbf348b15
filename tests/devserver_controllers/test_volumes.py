from __future__ import annotations

from typing import Any

import pytest

from kube_pyscheduler.devserver.controllers.environment import Settings
from kube_pyscheduler.devserver.controllers.provisioner import FAIL_ANNOTATION
from tests.devserver_controllers.cluster import Cluster, pod, running_cluster

SELECTED_NODE = "volume.kubernetes.io/selected-node"


def volume(name: str, *, size: str = "1Gi", storage_class: str = "", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": {"name": name}},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/data"},
            "storageClassName": storage_class,
            **spec,
        },
    }


def claim(name: str = "data", *, size: str = "1Gi", storage_class: str = "", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
            "storageClassName": storage_class,
            **spec,
        },
    }


def storage_class(name: str = "fast", *, delayed: bool = False, **fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "csi.example",
        "volumeBindingMode": "WaitForFirstConsumer" if delayed else "Immediate",
        **fields,
    }


async def phase(cluster: Cluster, kind: str, name: str) -> str:
    return str((await cluster.have(kind, name))["status"]["phase"])


async def select_node(cluster: Cluster, name: str, node: str) -> None:
    await cluster.patch("PersistentVolumeClaim", name, {"metadata": {"annotations": {SELECTED_NODE: node}}})


async def test_a_claim_takes_the_smallest_volume_that_suits_it(cluster: Cluster) -> None:
    for name, size in (("big", "10Gi"), ("right", "2Gi"), ("small", "500Mi")):
        await cluster.create(volume(name, size=size))
        assert await phase(cluster, "PersistentVolume", name) == "Available"
    await cluster.create(claim())
    found = await cluster.have("PersistentVolumeClaim", "data")
    assert found["spec"]["volumeName"] == "right"
    assert found["status"] == {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"}}
    assert found["metadata"]["annotations"] == {
        "pv.kubernetes.io/bind-completed": "yes",
        "pv.kubernetes.io/bound-by-controller": "yes",
    }
    bound = await cluster.have("PersistentVolume", "right")
    assert bound["status"]["phase"] == "Bound"
    assert bound["spec"]["claimRef"]["uid"] == found["metadata"]["uid"]
    assert await phase(cluster, "PersistentVolume", "big") == "Available"


@pytest.mark.parametrize(
    "spec",
    [
        {"accessModes": ["ReadWriteMany"]},
        {"volumeMode": "Block"},
        {"storageClassName": "other"},
        {"selector": {"matchLabels": {"name": "nobody"}}},
        {"resources": {"requests": {"storage": "3Gi"}}},
    ],
)
async def test_a_claim_waits_for_a_volume_that_suits_it(cluster: Cluster, spec: dict[str, Any]) -> None:
    await cluster.create(volume("only", size="2Gi"))
    await cluster.create(claim(**spec))
    assert await phase(cluster, "PersistentVolumeClaim", "data") == "Pending"
    fitting = {key: spec[key] for key in ("accessModes", "volumeMode", "storageClassName") if key in spec}
    body = volume("late", size="3Gi", **fitting)
    body["metadata"]["labels"] = {"name": "nobody"}
    await cluster.create(body)
    found = await cluster.have("PersistentVolumeClaim", "data")
    assert found["spec"]["volumeName"] == "late"


async def test_a_volume_reserved_for_a_claim_is_its_volume(cluster: Cluster) -> None:
    reserved = {"namespace": "default", "name": "data"}
    await cluster.create(volume("free"))
    await cluster.create(volume("mine", size="5Gi", claimRef=reserved))
    assert await phase(cluster, "PersistentVolume", "mine") == "Available"
    await cluster.create(claim("other"))
    await cluster.create(claim())
    assert (await cluster.have("PersistentVolumeClaim", "data"))["spec"]["volumeName"] == "mine"
    assert (await cluster.have("PersistentVolumeClaim", "other"))["spec"]["volumeName"] == "free"


async def test_a_claim_may_name_its_volume(cluster: Cluster) -> None:
    await cluster.create(volume("first"))
    await cluster.create(volume("second"))
    await cluster.create(claim(volumeName="second"))
    assert await phase(cluster, "PersistentVolumeClaim", "data") == "Bound"
    annotations = (await cluster.have("PersistentVolumeClaim", "data"))["metadata"]["annotations"]
    assert annotations == {"pv.kubernetes.io/bind-completed": "yes"}
    await cluster.create(claim("late", volumeName="second"))
    assert await phase(cluster, "PersistentVolumeClaim", "late") == "Pending"
    assert await cluster.events("FailedBinding") == ['volume "second" already bound to a different claim.']


async def test_a_claim_that_names_too_small_a_volume_waits(cluster: Cluster) -> None:
    await cluster.create(volume("tiny", size="1Mi"))
    await cluster.create(claim(volumeName="tiny"))
    assert await phase(cluster, "PersistentVolumeClaim", "data") == "Pending"
    assert await cluster.events("VolumeMismatch") == [
        'Cannot bind to requested volume "tiny": requested PV is too small'
    ]


async def test_a_claim_without_its_volume_is_lost_and_found(cluster: Cluster) -> None:
    await cluster.create(volume("only"))
    await cluster.create(claim())
    uid = (await cluster.have("PersistentVolumeClaim", "data"))["metadata"]["uid"]
    await cluster.delete("PersistentVolume", "only")
    assert await phase(cluster, "PersistentVolumeClaim", "data") == "Lost"
    assert len(await cluster.events("ClaimLost")) == 1
    await cluster.create(volume("only", claimRef={"namespace": "default", "name": "data", "uid": uid}))
    assert await phase(cluster, "PersistentVolumeClaim", "data") == "Bound"


async def test_a_volume_outlives_its_claim_as_released(cluster: Cluster) -> None:
    await cluster.create(volume("only"))
    await cluster.create(claim())
    await cluster.delete("PersistentVolumeClaim", "data")
    assert await phase(cluster, "PersistentVolume", "only") == "Released"
    await cluster.create(claim("next"))
    assert await phase(cluster, "PersistentVolumeClaim", "next") == "Pending"


async def test_an_immediate_class_provisions_at_once(cluster: Cluster) -> None:
    await cluster.create(storage_class(mountOptions=["noatime"]))
    await cluster.create(claim(storage_class="fast", size="3Gi"))
    found = await cluster.have("PersistentVolumeClaim", "data")
    name = f"pvc-{found['metadata']['uid']}"
    assert (found["status"]["phase"], found["spec"]["volumeName"]) == ("Bound", name)
    assert found["metadata"]["annotations"]["volume.kubernetes.io/storage-provisioner"] == "csi.example"
    made = await cluster.have("PersistentVolume", name)
    assert made["metadata"]["annotations"] == {"pv.kubernetes.io/provisioned-by": "csi.example"}
    assert made["spec"]["capacity"] == {"storage": "3Gi"}
    assert made["spec"]["persistentVolumeReclaimPolicy"] == "Delete"
    assert made["spec"]["mountOptions"] == ["noatime"]
    assert made["spec"]["csi"] == {"driver": "csi.example", "volumeHandle": name}
    assert "nodeAffinity" not in made["spec"]
    assert made["status"]["phase"] == "Bound"


async def test_a_provisioned_volume_goes_with_its_claim_unless_it_is_retained(cluster: Cluster) -> None:
    await cluster.create(storage_class())
    await cluster.create(storage_class("kept", reclaimPolicy="Retain"))
    await cluster.create(claim("a", storage_class="fast"))
    await cluster.create(claim("b", storage_class="kept"))
    for name in ("a", "b"):
        await cluster.delete("PersistentVolumeClaim", name)
    (left,) = await cluster.all("PersistentVolume")
    assert (left["spec"]["storageClassName"], left["status"]["phase"]) == ("kept", "Released")


async def test_a_class_that_comes_late(cluster: Cluster) -> None:
    await cluster.create(claim(storage_class="fast"))
    assert await cluster.events("ProvisioningFailed") == ['storageclass.storage.k8s.io "fast" not found']
    await cluster.create(storage_class())
    assert await phase(cluster, "PersistentVolumeClaim", "data") == "Bound"


async def test_a_delayed_class_waits_for_the_scheduler_to_name_a_node(cluster: Cluster) -> None:
    await cluster.create(storage_class(delayed=True))
    await cluster.create(claim(storage_class="fast"))
    cluster.pass_time(60)
    assert await cluster.all("PersistentVolume") == []
    assert await cluster.events("WaitForFirstConsumer") == ["waiting for first consumer to be created before binding"]
    await select_node(cluster, "data", "node-2")
    assert await phase(cluster, "PersistentVolumeClaim", "data") == "Bound"
    (made,) = await cluster.all("PersistentVolume")
    expression = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["b"]}
    assert made["spec"]["nodeAffinity"] == {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


async def test_the_topology_is_that_of_the_driver_on_the_node(cluster: Cluster) -> None:
    driver = {"name": "csi.example", "nodeID": "n", "topologyKeys": ["kubernetes.io/hostname"]}
    await cluster.create(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {"name": "node-2"},
            "spec": {"drivers": [driver]},
        }
    )
    await cluster.create(storage_class(delayed=True))
    await cluster.create(storage_class("now"))
    await cluster.create(claim("a", storage_class="fast"))
    await select_node(cluster, "a", "node-2")
    await cluster.create(claim("b", storage_class="now"))
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-2"]}
    for made in await cluster.all("PersistentVolume"):
        (term,) = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
        assert term == {"matchExpressions": [expression]}


async def test_an_immediate_class_keeps_to_its_allowed_topologies(cluster: Cluster) -> None:
    allowed = [{"matchLabelExpressions": [{"key": "topology.kubernetes.io/zone", "values": ["b"]}]}]
    await cluster.create(storage_class(allowedTopologies=allowed))
    await cluster.create(claim(storage_class="fast"))
    (made,) = await cluster.all("PersistentVolume")
    (term,) = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["b"]


async def test_a_node_for_which_nothing_can_be_made_is_given_back(cluster: Cluster) -> None:
    body = storage_class(delayed=True)
    body["metadata"]["annotations"] = {FAIL_ANNOTATION: "node-1"}
    await cluster.create(body)
    await cluster.create(claim(storage_class="fast"))
    await select_node(cluster, "data", "node-1")
    found = await cluster.have("PersistentVolumeClaim", "data")
    assert SELECTED_NODE not in found["metadata"]["annotations"]
    assert found["status"]["phase"] == "Pending"
    assert await cluster.events("ProvisioningFailed") == [
        'failed to provision volume with StorageClass "fast": rpc error: code = ResourceExhausted '
        "desc = node node-1 has no room"
    ]
    await select_node(cluster, "data", "node-2")
    assert await phase(cluster, "PersistentVolumeClaim", "data") == "Bound"


async def test_a_failing_immediate_class_is_tried_again(cluster: Cluster) -> None:
    body = storage_class()
    body["metadata"]["annotations"] = {FAIL_ANNOTATION: "*"}
    await cluster.create(body)
    await cluster.create(claim(storage_class="fast"))
    assert await phase(cluster, "PersistentVolumeClaim", "data") == "Pending"
    await cluster.patch("StorageClass", "fast", {"metadata": {"annotations": {FAIL_ANNOTATION: None}}})
    cluster.pass_time(15)
    assert await phase(cluster, "PersistentVolumeClaim", "data") == "Bound"


async def test_a_volume_takes_its_time() -> None:
    async with running_cluster(Settings(provision_seconds=4.0)) as cluster:
        await cluster.create(storage_class())
        await cluster.create(claim(storage_class="fast"))
        cluster.pass_time(3)
        assert await phase(cluster, "PersistentVolumeClaim", "data") == "Pending"
        cluster.pass_time(1)
        assert await phase(cluster, "PersistentVolumeClaim", "data") == "Bound"


async def test_a_delayed_claim_is_bound_to_the_volume_that_the_scheduler_reserved(cluster: Cluster) -> None:
    await cluster.create(storage_class("local", delayed=True, provisioner="kubernetes.io/no-provisioner"))
    await cluster.create(volume("disk", storage_class="local"))
    await cluster.create(claim(storage_class="local"))
    assert await phase(cluster, "PersistentVolumeClaim", "data") == "Pending"
    uid = (await cluster.have("PersistentVolumeClaim", "data"))["metadata"]["uid"]
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "default", "name": "data"}
    mark = {"pv.kubernetes.io/bound-by-controller": "yes"}
    patch = {"metadata": {"annotations": mark}, "spec": {"claimRef": {**reference, "uid": uid}}}
    await cluster.patch("PersistentVolume", "disk", patch)
    assert await phase(cluster, "PersistentVolumeClaim", "data") == "Bound"
    assert await phase(cluster, "PersistentVolume", "disk") == "Bound"


async def test_ephemeral_volumes_get_claims_that_go_with_the_pod(cluster: Cluster) -> None:
    await cluster.create(storage_class())
    template = {"metadata": {"labels": {"use": "scratch"}}, "spec": claim(storage_class="fast")["spec"]}
    scratch = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}
    created = await cluster.create(pod("web", volumes=[scratch]))
    made = await cluster.have("PersistentVolumeClaim", "web-scratch")
    assert made["metadata"]["labels"] == {"use": "scratch"}
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Pod", created["metadata"]["uid"], True)
    assert made["status"]["phase"] == "Bound"
    await cluster.delete("Pod", "web")
    assert await cluster.all("PersistentVolumeClaim") == []
    assert await cluster.all("PersistentVolume") == []


async def test_a_foreign_claim_of_that_name_is_not_taken_for_the_pods(cluster: Cluster) -> None:
    await cluster.create(claim("web-scratch"))
    scratch = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": claim()["spec"]}}}
    await cluster.create(pod("web", volumes=[scratch]))
    assert any("was not created for pod" in message for message in await cluster.events("FailedBinding"))
