from __future__ import annotations

from kube_pyscheduler.devserver.controllers.environment import Settings
from kube_pyscheduler.devserver.controllers.replica_sets import BATCH
from tests.devserver_controllers.cluster import Cluster, condition, running_cluster, workload


async def test_makes_owned_pods_of_the_template(cluster: Cluster) -> None:
    created = await cluster.create(workload("ReplicaSet", "web", replicas=3))
    found = await cluster.all("Pod", "app=web")
    assert len(found) == 3
    for pod in found:
        assert pod["metadata"]["name"].startswith("web-")
        (owner,) = pod["metadata"]["ownerReferences"]
        assert owner == {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": "web",
            "uid": created["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }


async def test_more_pods_than_one_batch(cluster: Cluster) -> None:
    await cluster.create(workload("ReplicaSet", "web", replicas=2 * BATCH + 1))
    assert len(await cluster.all("Pod")) == 2 * BATCH + 1
    await cluster.patch("ReplicaSet", "web", {"spec": {"replicas": 0}})
    assert await cluster.all("Pod") == []


async def test_reports_what_is_ready(cluster: Cluster) -> None:
    await cluster.create(workload("ReplicaSet", "web", replicas=2))
    status = (await cluster.have("ReplicaSet", "web"))["status"]
    assert status == {"replicas": 2, "fullyLabeledReplicas": 2, "observedGeneration": 1}
    await cluster.bind_all()
    status = (await cluster.have("ReplicaSet", "web"))["status"]
    assert (status["readyReplicas"], status["availableReplicas"]) == (2, 2)


async def test_is_available_only_after_min_ready_seconds(cluster: Cluster) -> None:
    await cluster.create(workload("ReplicaSet", "web", replicas=1, minReadySeconds=10))
    await cluster.bind_all()
    cluster.pass_time(9)
    assert "availableReplicas" not in (await cluster.have("ReplicaSet", "web"))["status"]
    cluster.pass_time(1)
    assert (await cluster.have("ReplicaSet", "web"))["status"]["availableReplicas"] == 1


async def test_replaces_deleted_and_failed_pods(cluster: Cluster) -> None:
    await cluster.create(workload("ReplicaSet", "web", replicas=2))
    first, second = await cluster.bind_all()
    await cluster.delete("Pod", first)
    await cluster.patch("Pod", second, {"status": {"phase": "Failed"}}, subresource="status")
    active = [
        p
        for p in await cluster.all("Pod")
        if "deletionTimestamp" not in p["metadata"] and p["status"]["phase"] != "Failed"
    ]
    assert len(active) == 2


async def test_scaling_down_takes_pods_without_a_node_first_then_the_cheap_ones(cluster: Cluster) -> None:
    await cluster.create(workload("ReplicaSet", "web", replicas=2))
    running = await cluster.bind_all()
    await cluster.patch("ReplicaSet", "web", {"spec": {"replicas": 3}})
    await cluster.patch("ReplicaSet", "web", {"spec": {"replicas": 2}})
    assert await cluster.names("Pod") == sorted(running)
    cheap = {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-1"}}}
    await cluster.patch("Pod", running[0], cheap)
    await cluster.patch("ReplicaSet", "web", {"spec": {"replicas": 1}})
    cluster.pass_time(30)
    assert await cluster.names("Pod") == [running[1]]


async def test_scaling_down_spreads_what_is_left_over_nodes(cluster: Cluster) -> None:
    await cluster.create(workload("ReplicaSet", "web", replicas=3))
    first, second, third = await cluster.names("Pod")
    await cluster.bind(first, "node-1")
    await cluster.bind(second, "node-2")
    await cluster.bind(third, "node-2")
    await cluster.patch("ReplicaSet", "web", {"spec": {"replicas": 2}})
    cluster.pass_time(30)
    assert {p["spec"]["nodeName"] for p in await cluster.all("Pod")} == {"node-1", "node-2"}


async def test_counts_pods_that_are_going(cluster: Cluster) -> None:
    await cluster.create(workload("ReplicaSet", "web", replicas=1))
    await cluster.bind_all()
    await cluster.patch("ReplicaSet", "web", {"spec": {"replicas": 0}})
    status = (await cluster.have("ReplicaSet", "web"))["status"]
    assert (status["replicas"], status["terminatingReplicas"]) == (0, 1)
    cluster.pass_time(30)
    assert (await cluster.have("ReplicaSet", "web"))["status"] == {"replicas": 0, "observedGeneration": 2}


async def test_a_refused_pod_is_reported_and_tried_again(cluster: Cluster) -> None:
    spec = {"priorityClassName": "urgent", "containers": [{"name": "main", "image": "registry.example/app:1"}]}
    body = workload("ReplicaSet", "web", replicas=1)
    body["spec"]["template"]["spec"] = spec
    await cluster.create(body)
    failure = condition(await cluster.have("ReplicaSet", "web"), "ReplicaFailure")
    assert failure["reason"] == "FailedCreate"
    assert "no PriorityClass with name urgent was found" in failure["message"]
    await cluster.create(
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 5}
    )
    cluster.pass_time(1, step=0.1)
    assert len(await cluster.all("Pod")) == 1
    assert "conditions" not in (await cluster.have("ReplicaSet", "web"))["status"]


async def test_pods_go_with_their_replica_set(cluster: Cluster) -> None:
    await cluster.create(workload("ReplicaSet", "web", replicas=2))
    await cluster.delete("ReplicaSet", "web")
    assert await cluster.all("Pod") == []


async def test_controllers_that_come_later_find_what_is_there() -> None:
    from kube_pyscheduler.devserver.controllers.controllers import Controllers

    async with running_cluster(Settings(workloads=False, kubelet=False)) as cluster:
        await cluster.create(workload("Deployment", "web", replicas=2))
        await cluster.create(workload("DaemonSet", "agent"))
        assert await cluster.all("Pod") == []
        late = Controllers(cluster.server.registry, Settings(nodes=False, kubelet=False))
        late.run_due()
        assert len(await cluster.all("Pod")) == 4
        late.close()
        await cluster.patch("Deployment", "web", {"spec": {"replicas": 5}})
        assert len(await cluster.all("Pod")) == 4
