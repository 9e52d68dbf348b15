from __future__ import annotations

from tests.devserver_controllers.cluster import Cluster, node, template, workload

NEW_IMAGE = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "registry.example/app:2"}]}}}}


def meant_for(pod: dict[str, object]) -> str:
    affinity = pod["spec"]["affinity"]["nodeAffinity"]  # type: ignore[index]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    (field,) = term["matchFields"]
    assert (field["key"], field["operator"]) == ("metadata.name", "In")
    return str(field["values"][0])


async def bind_each(cluster: Cluster) -> None:
    for pod in await cluster.all("Pod"):
        if not pod["spec"].get("nodeName"):
            await cluster.bind(pod["metadata"]["name"], meant_for(pod))


async def test_one_pod_a_node_that_only_fits_there(cluster: Cluster) -> None:
    await cluster.create(workload("DaemonSet", "agent"))
    pods = await cluster.all("Pod")
    assert sorted(meant_for(pod) for pod in pods) == ["node-1", "node-2"]
    tolerated = {(t["key"], t["effect"]) for t in pods[0]["spec"]["tolerations"]}
    assert ("node.kubernetes.io/unschedulable", "NoSchedule") in tolerated
    assert ("node.kubernetes.io/not-ready", "NoExecute") in tolerated


async def test_status(cluster: Cluster) -> None:
    await cluster.create(workload("DaemonSet", "agent"))
    status = (await cluster.have("DaemonSet", "agent"))["status"]
    assert (status["desiredNumberScheduled"], status["currentNumberScheduled"], status["numberReady"]) == (2, 2, 0)
    assert status["numberUnavailable"] == 2
    await bind_each(cluster)
    assert (await cluster.have("DaemonSet", "agent"))["status"] == {
        "currentNumberScheduled": 2,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 2,
        "numberReady": 2,
        "numberAvailable": 2,
        "updatedNumberScheduled": 2,
        "observedGeneration": 1,
    }


async def test_new_nodes_get_a_pod_and_lost_nodes_lose_theirs(cluster: Cluster) -> None:
    await cluster.create(workload("DaemonSet", "agent"))
    await cluster.create(node("node-3"))
    assert sorted(meant_for(pod) for pod in await cluster.all("Pod")) == ["node-1", "node-2", "node-3"]
    await cluster.delete("Node", "node-1")
    assert sorted(meant_for(pod) for pod in await cluster.all("Pod")) == ["node-2", "node-3"]
    assert (await cluster.have("DaemonSet", "agent"))["status"]["desiredNumberScheduled"] == 2


async def test_node_selector_and_taints_decide(cluster: Cluster) -> None:
    await cluster.create(node("gpu-1", labels={"pool": "gpu"}))
    await cluster.create(node("gpu-2", labels={"pool": "gpu"}, taints=[{"key": "maintenance", "effect": "NoSchedule"}]))
    body = workload("DaemonSet", "agent")
    body["spec"]["template"] = template("agent", nodeSelector={"pool": "gpu"})
    await cluster.create(body)
    assert [meant_for(pod) for pod in await cluster.all("Pod")] == ["gpu-1"]


async def test_required_node_affinity_decides(cluster: Cluster) -> None:
    term = {"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "NotIn", "values": ["a"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    body = workload("DaemonSet", "agent")
    body["spec"]["template"] = template("agent", affinity={"nodeAffinity": required})
    await cluster.create(body)
    assert [meant_for(pod) for pod in await cluster.all("Pod")] == ["node-2"]


async def test_a_label_brings_a_pod_and_its_loss_takes_it(cluster: Cluster) -> None:
    body = workload("DaemonSet", "agent")
    body["spec"]["template"] = template("agent", nodeSelector={"disk": "ssd"})
    await cluster.create(body)
    assert await cluster.all("Pod") == []
    await cluster.patch("Node", "node-1", {"metadata": {"labels": {"disk": "ssd"}}})
    assert [meant_for(pod) for pod in await cluster.all("Pod")] == ["node-1"]
    await cluster.patch("Node", "node-1", {"metadata": {"labels": {"disk": None}}})
    assert await cluster.all("Pod") == []


async def test_a_taint_against_scheduling_lets_running_pods_stay(cluster: Cluster) -> None:
    await cluster.create(workload("DaemonSet", "agent"))
    await bind_each(cluster)
    await cluster.patch("Node", "node-1", {"spec": {"taints": [{"key": "full", "effect": "NoSchedule"}]}})
    assert len(await cluster.all("Pod")) == 2
    status = (await cluster.have("DaemonSet", "agent"))["status"]
    assert (status["desiredNumberScheduled"], status["numberMisscheduled"]) == (1, 1)
    await cluster.patch("Node", "node-1", {"spec": {"taints": [{"key": "broken", "effect": "NoExecute"}]}})
    cluster.pass_time(30)
    assert [meant_for(pod) for pod in await cluster.all("Pod")] == ["node-2"]


async def test_a_deleted_pod_comes_again_when_it_is_gone(cluster: Cluster) -> None:
    await cluster.create(workload("DaemonSet", "agent"))
    await bind_each(cluster)
    (first, *_) = await cluster.names("Pod")
    await cluster.delete("Pod", first)
    assert len(await cluster.all("Pod")) == 2
    cluster.pass_time(30)
    names = await cluster.names("Pod")
    assert len(names) == 2
    assert first not in names


async def test_a_rolling_update_takes_one_node_at_a_time(cluster: Cluster) -> None:
    await cluster.create(workload("DaemonSet", "agent"))
    await bind_each(cluster)
    await cluster.patch("DaemonSet", "agent", NEW_IMAGE)
    going = [p for p in await cluster.all("Pod") if "deletionTimestamp" in p["metadata"]]
    assert len(going) == 1
    for _ in range(2):
        cluster.pass_time(30)
        await bind_each(cluster)
    assert {p["spec"]["containers"][0]["image"] for p in await cluster.all("Pod")} == {"registry.example/app:2"}
    status = (await cluster.have("DaemonSet", "agent"))["status"]
    assert status["updatedNumberScheduled"] == status["numberAvailable"] == 2
