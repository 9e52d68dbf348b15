from __future__ import annotations

import pytest

from kube_pyscheduler.devserver.controllers.environment import Settings
from kube_pyscheduler.devserver.controllers.kubelet import EXIT_CODE_ANNOTATION, RUN_SECONDS_ANNOTATION
from tests.devserver_controllers.cluster import Cluster, condition, node, pod, running_cluster


async def test_a_bound_pod_runs(cluster: Cluster) -> None:
    await cluster.create(pod("web"))
    await cluster.bind("web", "node-1")
    found = await cluster.have("Pod", "web")
    status = found["status"]
    assert status["phase"] == "Running"
    assert {c["type"]: c["status"] for c in status["conditions"]} == {
        "PodScheduled": "True",
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "Ready": "True",
        "ContainersReady": "True",
    }
    (container,) = status["containerStatuses"]
    assert (container["name"], container["ready"], container["restartCount"]) == ("main", True, 0)
    assert container["state"] == {"running": {"startedAt": status["startTime"]}}
    assert status["podIP"]
    assert status["podIPs"] == [{"ip": status["podIP"]}]
    assert status["qosClass"] == "Burstable"


async def test_init_containers_have_completed_and_sidecars_run(cluster: Cluster) -> None:
    init = [
        {"name": "prepare", "image": "registry.example/init:1"},
        {"name": "proxy", "image": "registry.example/proxy:1", "restartPolicy": "Always"},
    ]
    await cluster.create(pod("web", initContainers=init))
    await cluster.bind("web", "node-1")
    status = (await cluster.have("Pod", "web"))["status"]
    states = {entry["name"]: set(entry["state"]) for entry in status["initContainerStatuses"]}
    assert states == {"prepare": {"terminated"}, "proxy": {"running"}}


async def test_pods_get_different_addresses(cluster: Cluster) -> None:
    for name in ("a", "b"):
        await cluster.create(pod(name))
        await cluster.bind(name, "node-1")
    first, second = [p["status"]["podIP"] for p in await cluster.all("Pod")]
    assert first != second


async def test_an_unbound_pod_stays_pending(cluster: Cluster) -> None:
    await cluster.create(pod("web"))
    cluster.pass_time(60)
    assert (await cluster.have("Pod", "web"))["status"]["phase"] == "Pending"


async def test_a_pod_starts_after_the_delay() -> None:
    async with running_cluster(Settings(start_seconds=3.0)) as cluster:
        await cluster.create(pod("web"))
        await cluster.bind("web", "node-1")
        cluster.pass_time(2.9)
        assert (await cluster.have("Pod", "web"))["status"]["phase"] == "Pending"
        cluster.pass_time(0.1)
        assert (await cluster.have("Pod", "web"))["status"]["phase"] == "Running"


async def test_a_pod_bound_before_its_node_exists_starts_when_the_node_comes(cluster: Cluster) -> None:
    await cluster.create(pod("early", nodeName="node-9"))
    assert (await cluster.have("Pod", "early"))["status"]["phase"] == "Pending"
    await cluster.create(node("node-9"))
    assert (await cluster.have("Pod", "early"))["status"]["phase"] == "Running"


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
async def test_a_pod_that_is_not_to_restart_ends_by_itself(cluster: Cluster, policy: str) -> None:
    await cluster.create(pod("task", restartPolicy=policy))
    await cluster.bind("task", "node-1")
    cluster.pass_time(9)
    assert (await cluster.have("Pod", "task"))["status"]["phase"] == "Running"
    cluster.pass_time(1)
    found = await cluster.have("Pod", "task")
    assert found["status"]["phase"] == "Succeeded"
    assert condition(found, "Ready")["status"] == "False"
    assert condition(found, "Ready")["reason"] == "PodCompleted"
    (container,) = found["status"]["containerStatuses"]
    assert container["state"]["terminated"]["reason"] == "Completed"


async def test_annotations_say_how_long_and_how_a_pod_ends(cluster: Cluster) -> None:
    body = pod("task", restartPolicy="Never")
    body["metadata"]["annotations"] = {RUN_SECONDS_ANNOTATION: "2.5", EXIT_CODE_ANNOTATION: "3"}
    await cluster.create(body)
    await cluster.bind("task", "node-1")
    cluster.pass_time(2.4)
    assert (await cluster.have("Pod", "task"))["status"]["phase"] == "Running"
    cluster.pass_time(0.1)
    found = await cluster.have("Pod", "task")
    assert found["status"]["phase"] == "Failed"
    assert found["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3


async def test_an_annotation_can_keep_a_pod_running(cluster: Cluster) -> None:
    body = pod("task", restartPolicy="Never")
    body["metadata"]["annotations"] = {RUN_SECONDS_ANNOTATION: "inf"}
    await cluster.create(body)
    await cluster.bind("task", "node-1")
    cluster.pass_time(1000, step=100)
    assert (await cluster.have("Pod", "task"))["status"]["phase"] == "Running"


async def test_an_unreadable_annotation_is_told_and_the_default_holds(cluster: Cluster) -> None:
    body = pod("task", restartPolicy="Never")
    body["metadata"]["annotations"] = {RUN_SECONDS_ANNOTATION: "soon"}
    await cluster.create(body)
    await cluster.bind("task", "node-1")
    assert await cluster.events("InvalidAnnotation") == [
        f"annotation {RUN_SECONDS_ANNOTATION} must be a number, not 'soon'"
    ]
    cluster.pass_time(10)
    assert (await cluster.have("Pod", "task"))["status"]["phase"] == "Succeeded"


async def test_a_deleted_pod_goes_at_the_end_of_its_grace(cluster: Cluster) -> None:
    await cluster.create(pod("web", terminationGracePeriodSeconds=5))
    await cluster.bind("web", "node-1")
    await cluster.delete("Pod", "web")
    cluster.pass_time(4)
    assert "deletionTimestamp" in (await cluster.have("Pod", "web"))["metadata"]
    cluster.pass_time(1)
    assert await cluster.get("Pod", "web") is None


async def test_a_second_deletion_shortens_the_grace(cluster: Cluster) -> None:
    await cluster.create(pod("web"))
    await cluster.bind("web", "node-1")
    await cluster.delete("Pod", "web")
    await cluster.delete("Pod", "web", gracePeriodSeconds=2)
    cluster.pass_time(2)
    assert await cluster.get("Pod", "web") is None


async def test_containers_may_stop_before_the_grace_is_over() -> None:
    async with running_cluster(Settings(stop_seconds=1.0)) as cluster:
        await cluster.create(pod("web"))
        await cluster.bind("web", "node-1")
        await cluster.delete("Pod", "web")
        cluster.pass_time(1)
        assert await cluster.get("Pod", "web") is None


async def test_a_deleted_pod_that_has_not_started_goes_at_once() -> None:
    async with running_cluster(Settings(start_seconds=60.0)) as cluster:
        await cluster.create(pod("web"))
        await cluster.bind("web", "node-1")
        await cluster.delete("Pod", "web")
        assert await cluster.get("Pod", "web") is None


async def test_a_node_refuses_a_pod_that_it_has_no_room_for(cluster: Cluster) -> None:
    await cluster.create(pod("big", cpu="6"))
    await cluster.bind("big", "node-1")
    await cluster.create(pod("more", cpu="3"))
    await cluster.bind("more", "node-1")
    status = (await cluster.have("Pod", "more"))["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "OutOfcpu")
    assert status["message"] == (
        "Pod was rejected: Node didn't have enough resource: cpu, requested: 3000, used: 6000, capacity: 8000"
    )


async def test_room_is_free_again_when_a_pod_has_ended(cluster: Cluster) -> None:
    await cluster.create(pod("task", cpu="6", restartPolicy="Never"))
    await cluster.bind("task", "node-1")
    cluster.pass_time(10)
    await cluster.create(pod("more", cpu="8"))
    await cluster.bind("more", "node-1")
    assert (await cluster.have("Pod", "more"))["status"]["phase"] == "Running"


async def test_a_terminating_pod_still_takes_its_room(cluster: Cluster) -> None:
    await cluster.create(pod("old", cpu="6"))
    await cluster.bind("old", "node-1")
    await cluster.delete("Pod", "old")
    await cluster.create(pod("new", cpu="6"))
    await cluster.bind("new", "node-1")
    assert (await cluster.have("Pod", "new"))["status"]["reason"] == "OutOfcpu"


async def test_a_resize_changes_what_is_taken(cluster: Cluster) -> None:
    await cluster.create(pod("web", cpu="6"))
    await cluster.bind("web", "node-1")
    smaller = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}}
    await cluster.patch("Pod", "web", smaller, subresource="resize")
    await cluster.create(pod("more", cpu="7"))
    await cluster.bind("more", "node-1")
    assert (await cluster.have("Pod", "more"))["status"]["phase"] == "Running"


async def test_too_many_pods(cluster: Cluster) -> None:
    small = node("small")
    small["status"]["allocatable"] = {**small["status"]["allocatable"], "pods": "1"}
    await cluster.create(small)
    for name in ("one", "two"):
        await cluster.create(pod(name))
        await cluster.bind(name, "small")
    status = (await cluster.have("Pod", "two"))["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "OutOfpods")
    assert status["message"].endswith("pods, requested: 1, used: 1, capacity: 1")


async def test_a_node_becomes_ready_and_gets_an_address(cluster: Cluster) -> None:
    found = await cluster.have("Node", "node-1")
    assert condition(found, "Ready")["status"] == "True"
    assert {entry["type"] for entry in found["status"]["addresses"]} == {"InternalIP", "Hostname"}


async def test_without_a_test_clock_the_event_loop_drives_everything() -> None:
    import aiohttp

    from kube_pyscheduler.devserver.app import serve
    from kube_pyscheduler.kit.clock import FakeClock

    server = await serve(controllers=Settings(start_seconds=0.01, run_seconds=0.01))
    try:
        async with aiohttp.ClientSession() as http:
            # Only the requests go through this helper; the server's own clock is the machine's.
            cluster = Cluster(server, http, FakeClock())
            await cluster.create(node("node-1"))
            await cluster.create(pod("task", restartPolicy="Never", nodeName="node-1"))
            found = await cluster.watch_until("Pod", lambda p: p["status"].get("phase") == "Succeeded")
            assert found["metadata"]["name"] == "task"
    finally:
        await server.stop()
