from __future__ import annotations

from tests.devserver_controllers.cluster import Cluster, condition, node, pod


def taints(found: dict[str, object]) -> list[tuple[str, str]]:
    return [(t["key"], t["effect"]) for t in found["spec"].get("taints") or ()]  # type: ignore[attr-defined]


async def test_a_cordoned_node_is_tainted_until_it_is_uncordoned(cluster: Cluster) -> None:
    own = [{"key": "team", "value": "a", "effect": "NoSchedule"}]
    await cluster.create(node("mine", taints=own))
    await cluster.patch("Node", "mine", {"spec": {"unschedulable": True}})
    assert taints(await cluster.have("Node", "mine")) == [
        ("team", "NoSchedule"),
        ("node.kubernetes.io/unschedulable", "NoSchedule"),
    ]
    await cluster.patch("Node", "mine", {"spec": {"unschedulable": None}})
    assert taints(await cluster.have("Node", "mine")) == [("team", "NoSchedule")]


async def test_conditions_become_taints(cluster: Cluster) -> None:
    ready = condition(await cluster.have("Node", "node-1"), "Ready")
    conditions = [{**ready, "status": "False"}, {"type": "DiskPressure", "status": "True"}]
    await cluster.patch("Node", "node-1", {"status": {"conditions": conditions}}, subresource="status")
    assert taints(await cluster.have("Node", "node-1")) == [
        ("node.kubernetes.io/disk-pressure", "NoSchedule"),
        ("node.kubernetes.io/not-ready", "NoSchedule"),
    ]


async def test_pods_of_a_lost_node_are_given_up_after_a_while(cluster: Cluster) -> None:
    await cluster.create(pod("web"))
    await cluster.bind("web", "node-1")
    await cluster.delete("Node", "node-1")
    cluster.pass_time(39)
    assert (await cluster.have("Pod", "web"))["status"]["phase"] == "Running"
    cluster.pass_time(1)
    assert await cluster.get("Pod", "web") is None


async def test_a_node_that_comes_back_in_time_keeps_its_pods(cluster: Cluster) -> None:
    await cluster.create(pod("web"))
    await cluster.bind("web", "node-1")
    await cluster.delete("Node", "node-1")
    cluster.pass_time(20)
    await cluster.create(node("node-1"))
    cluster.pass_time(60)
    assert (await cluster.have("Pod", "web"))["status"]["phase"] == "Running"


async def test_a_deleted_pod_on_a_lost_node_goes_at_once(cluster: Cluster) -> None:
    await cluster.create(pod("web"))
    await cluster.bind("web", "node-1")
    await cluster.delete("Node", "node-1")
    await cluster.delete("Pod", "web")
    assert await cluster.get("Pod", "web") is None
