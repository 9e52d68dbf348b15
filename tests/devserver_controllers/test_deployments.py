from __future__ import annotations

from typing import Any

import pytest

from kube_pyscheduler.devserver.controllers.deployments import REVISION
from kube_pyscheduler.devserver.controllers.rollout import Size, max_surge, max_unavailable, plan
from tests.devserver_controllers.cluster import Cluster, condition, workload

NEW_IMAGE = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "registry.example/app:2"}]}}}}
OLD_IMAGE = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "registry.example/app:1"}]}}}}


async def test_a_deployment_gets_a_replica_set_and_pods(cluster: Cluster) -> None:
    await cluster.create(workload("Deployment", "web", replicas=3))
    (replica_set,) = await cluster.all("ReplicaSet")
    suffix = replica_set["metadata"]["labels"]["pod-template-hash"]
    assert replica_set["metadata"]["name"] == f"web-{suffix}"
    assert replica_set["spec"]["selector"]["matchLabels"] == {"app": "web", "pod-template-hash": suffix}
    assert replica_set["metadata"]["annotations"] == {
        REVISION: "1",
        "deployment.kubernetes.io/desired-replicas": "3",
        "deployment.kubernetes.io/max-replicas": "4",
    }
    assert len(await cluster.all("Pod", f"pod-template-hash={suffix}")) == 3
    assert (await cluster.have("Deployment", "web"))["metadata"]["annotations"][REVISION] == "1"
    assert await cluster.events("ScalingReplicaSet") == [f"Scaled up replica set web-{suffix} from 0 to 3"]


async def test_status_follows_the_pods(cluster: Cluster) -> None:
    await cluster.create(workload("Deployment", "web", replicas=2))
    found = await cluster.have("Deployment", "web")
    assert found["status"]["unavailableReplicas"] == 2
    assert condition(found, "Available")["status"] == "False"
    assert condition(found, "Progressing")["reason"] == "ReplicaSetUpdated"
    await cluster.bind_all()
    found = await cluster.have("Deployment", "web")
    status = {k: v for k, v in found["status"].items() if k != "conditions"}
    assert status == {
        "observedGeneration": 1,
        "replicas": 2,
        "updatedReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
    }
    assert condition(found, "Available")["status"] == "True"
    assert condition(found, "Progressing")["reason"] == "NewReplicaSetAvailable"


async def test_a_rolling_update_keeps_enough_pods_and_ends_with_new_ones_only(cluster: Cluster) -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    await cluster.create(workload("Deployment", "web", replicas=3, strategy=rolling))
    await cluster.bind_all()
    await cluster.patch("Deployment", "web", NEW_IMAGE)
    bound = []
    while True:
        live = [p for p in await cluster.all("Pod") if "deletionTimestamp" not in p["metadata"]]
        assert len(live) <= 4
        assert sum(p["status"]["phase"] == "Running" for p in live) >= 3
        now_bound = await cluster.bind_all()
        if not now_bound:
            break
        bound.append(len(now_bound))
    assert bound == [1, 1, 1]
    cluster.pass_time(30)
    assert {p["spec"]["containers"][0]["image"] for p in await cluster.all("Pod")} == {"registry.example/app:2"}
    found = await cluster.have("Deployment", "web")
    assert found["metadata"]["annotations"][REVISION] == "2"
    assert found["status"]["updatedReplicas"] == found["status"]["replicas"] == 3
    assert sorted(s["spec"]["replicas"] for s in await cluster.all("ReplicaSet")) == [0, 3]


async def test_going_back_makes_the_old_template_the_newest_revision(cluster: Cluster) -> None:
    await cluster.create(workload("Deployment", "web", replicas=1))
    await cluster.bind_until_quiet()
    await cluster.patch("Deployment", "web", NEW_IMAGE)
    await cluster.bind_until_quiet()
    await cluster.patch("Deployment", "web", OLD_IMAGE)
    await cluster.bind_until_quiet()
    revisions = {
        s["spec"]["template"]["spec"]["containers"][0]["image"]: s["metadata"]["annotations"][REVISION]
        for s in await cluster.all("ReplicaSet")
    }
    assert revisions == {"registry.example/app:1": "3", "registry.example/app:2": "2"}
    assert (await cluster.have("Deployment", "web"))["metadata"]["annotations"][REVISION] == "3"


async def test_recreate_waits_until_the_old_pods_are_gone(cluster: Cluster) -> None:
    await cluster.create(workload("Deployment", "web", replicas=2, strategy={"type": "Recreate"}))
    await cluster.bind_until_quiet()
    await cluster.patch("Deployment", "web", NEW_IMAGE)
    assert len(await cluster.all("ReplicaSet")) == 1
    assert all("deletionTimestamp" in p["metadata"] for p in await cluster.all("Pod"))
    cluster.pass_time(30)
    assert {p["spec"]["containers"][0]["image"] for p in await cluster.all("Pod")} == {"registry.example/app:2"}


async def test_a_paused_deployment_scales_but_does_not_roll(cluster: Cluster) -> None:
    await cluster.create(workload("Deployment", "web", replicas=1))
    await cluster.patch("Deployment", "web", {"spec": {"paused": True, **NEW_IMAGE["spec"]}})
    await cluster.patch("Deployment", "web", {"spec": {"replicas": 3}})
    assert len(await cluster.all("ReplicaSet")) == 1
    assert len(await cluster.all("Pod")) == 3
    assert condition(await cluster.have("Deployment", "web"), "Progressing")["reason"] == "DeploymentPaused"
    await cluster.patch("Deployment", "web", {"spec": {"paused": False}})
    assert len(await cluster.all("ReplicaSet")) == 2


async def test_old_revisions_beyond_the_limit_are_deleted(cluster: Cluster) -> None:
    await cluster.create(workload("Deployment", "web", replicas=1, revisionHistoryLimit=1))
    await cluster.bind_until_quiet()
    for tag in ("2", "3"):
        image = {"name": "main", "image": f"registry.example/app:{tag}"}
        await cluster.patch("Deployment", "web", {"spec": {"template": {"spec": {"containers": [image]}}}})
        await cluster.bind_until_quiet()
    cluster.pass_time(30)
    images = [s["spec"]["template"]["spec"]["containers"][0]["image"] for s in await cluster.all("ReplicaSet")]
    assert sorted(images) == ["registry.example/app:2", "registry.example/app:3"]


async def test_everything_goes_with_a_deployment(cluster: Cluster) -> None:
    await cluster.create(workload("Deployment", "web", replicas=2))
    await cluster.delete("Deployment", "web")
    assert await cluster.all("ReplicaSet") == []
    assert await cluster.all("Pod") == []


def deployment(replicas: int, **rolling: Any) -> dict[str, Any]:
    return {"spec": {"replicas": replicas, "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}}


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        (10, "25%", "25%", (3, 2)),
        (3, "25%", "25%", (1, 0)),
        (1, 0, "25%", (0, 1)),
        (4, 0, 0, (0, 1)),
        (2, 5, 9, (5, 2)),
    ],
)
def test_percentages_round_up_for_surge_and_down_for_unavailable(
    replicas: int, surge: Any, unavailable: Any, expected: tuple[int, int]
) -> None:
    subject = deployment(replicas, maxSurge=surge, maxUnavailable=unavailable)
    assert (max_surge(subject), max_unavailable(subject)) == expected


def test_the_new_set_grows_as_far_as_the_surge_allows() -> None:
    assert plan(deployment(10, maxSurge=3, maxUnavailable=2), Size(0, 0), [Size(10, 10)]) == (3, [10])


def test_unhealthy_old_pods_go_first() -> None:
    subject = deployment(10, maxSurge=3, maxUnavailable=2)
    assert plan(subject, Size(3, 0), [Size(4, 2), Size(6, 6)]) == (None, [2, 6])


def test_nothing_shrinks_while_that_would_leave_too_few() -> None:
    subject = deployment(10, maxSurge=3, maxUnavailable=2)
    assert plan(subject, Size(5, 0), [Size(8, 8)]) == (None, [8])


def test_a_smaller_deployment_shrinks_its_new_set() -> None:
    assert plan(deployment(2, maxSurge=1, maxUnavailable=1), Size(5, 5), []) == (2, [])
