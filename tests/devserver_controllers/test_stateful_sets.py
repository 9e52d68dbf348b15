from __future__ import annotations

from tests.devserver_controllers.cluster import Cluster, workload

NEW_IMAGE = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "registry.example/app:2"}]}}}}


def images(pods: list[dict[str, object]]) -> dict[str, str]:
    return {p["metadata"]["name"]: p["spec"]["containers"][0]["image"][-1] for p in pods}  # type: ignore[index]


async def test_pods_come_in_order_each_when_the_one_before_is_ready(cluster: Cluster) -> None:
    await cluster.create(workload("StatefulSet", "db", replicas=3, serviceName="db"))
    assert await cluster.names("Pod") == ["db-0"]
    await cluster.bind_all()
    assert await cluster.names("Pod") == ["db-0", "db-1"]
    await cluster.bind_until_quiet()
    assert await cluster.names("Pod") == ["db-0", "db-1", "db-2"]
    first = await cluster.have("Pod", "db-0")
    assert first["spec"]["hostname"] == "db-0"
    assert first["spec"]["subdomain"] == "db"
    labels = first["metadata"]["labels"]
    assert labels["statefulset.kubernetes.io/pod-name"] == "db-0"
    assert labels["apps.kubernetes.io/pod-index"] == "0"


async def test_parallel_pods_come_all_at_once_and_go_so(cluster: Cluster) -> None:
    await cluster.create(workload("StatefulSet", "db", replicas=3, podManagementPolicy="Parallel"))
    assert await cluster.names("Pod") == ["db-0", "db-1", "db-2"]
    await cluster.patch("StatefulSet", "db", {"spec": {"replicas": 0}})
    assert await cluster.names("Pod") == []


async def test_scaling_down_takes_the_last_one_first(cluster: Cluster) -> None:
    await cluster.create(workload("StatefulSet", "db", replicas=3))
    await cluster.bind_until_quiet()
    await cluster.patch("StatefulSet", "db", {"spec": {"replicas": 1}})
    going = [p["metadata"]["name"] for p in await cluster.all("Pod") if "deletionTimestamp" in p["metadata"]]
    assert going == ["db-2"]
    cluster.pass_time(60)
    assert await cluster.names("Pod") == ["db-0"]


async def test_claims_are_made_from_templates_and_outlive_the_pods(cluster: Cluster) -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    body = workload("StatefulSet", "db", replicas=1, volumeClaimTemplates=[claim])
    body["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    await cluster.create(body)
    pod = await cluster.have("Pod", "db-0")
    assert pod["spec"]["volumes"][0] == {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}
    assert (await cluster.have("PersistentVolumeClaim", "data-db-0"))["metadata"]["labels"] == {"app": "db"}
    await cluster.delete("StatefulSet", "db")
    assert await cluster.names("Pod") == []
    assert await cluster.names("PersistentVolumeClaim") == ["data-db-0"]


async def test_numbers_may_start_later(cluster: Cluster) -> None:
    await cluster.create(workload("StatefulSet", "db", replicas=2, ordinals={"start": 5}))
    await cluster.bind_until_quiet()
    assert await cluster.names("Pod") == ["db-5", "db-6"]


async def test_a_failed_pod_is_made_again_under_its_name(cluster: Cluster) -> None:
    await cluster.create(workload("StatefulSet", "db", replicas=1))
    await cluster.bind_all()
    before = await cluster.have("Pod", "db-0")
    await cluster.patch("Pod", "db-0", {"status": {"phase": "Failed"}}, subresource="status")
    after = await cluster.have("Pod", "db-0")
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert after["status"]["phase"] == "Pending"


async def test_an_update_replaces_the_last_one_first_one_at_a_time(cluster: Cluster) -> None:
    await cluster.create(workload("StatefulSet", "db", replicas=2))
    await cluster.bind_until_quiet()
    await cluster.patch("StatefulSet", "db", NEW_IMAGE)
    cluster.pass_time(30)
    assert images(await cluster.all("Pod")) == {"db-0": "1", "db-1": "2"}
    status = (await cluster.have("StatefulSet", "db"))["status"]
    assert status["currentRevision"] != status["updateRevision"]
    assert status["updatedReplicas"] == 1
    await cluster.bind_all()
    cluster.pass_time(30)
    await cluster.bind_all()
    assert images(await cluster.all("Pod")) == {"db-0": "2", "db-1": "2"}
    status = (await cluster.have("StatefulSet", "db"))["status"]
    assert status["currentRevision"] == status["updateRevision"]
    assert status["readyReplicas"] == status["updatedReplicas"] == status["currentReplicas"] == 2


async def test_pods_below_the_partition_keep_their_revision_even_when_made_again(cluster: Cluster) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    await cluster.create(workload("StatefulSet", "db", replicas=2, updateStrategy=strategy))
    await cluster.bind_until_quiet()
    await cluster.patch("StatefulSet", "db", NEW_IMAGE)
    cluster.pass_time(30)
    await cluster.bind_until_quiet()
    await cluster.delete("Pod", "db-0", gracePeriodSeconds=0)
    await cluster.bind_until_quiet()
    assert images(await cluster.all("Pod")) == {"db-0": "1", "db-1": "2"}


async def test_on_delete_updates_nothing_by_itself(cluster: Cluster) -> None:
    await cluster.create(workload("StatefulSet", "db", replicas=1, updateStrategy={"type": "OnDelete"}))
    await cluster.bind_until_quiet()
    await cluster.patch("StatefulSet", "db", NEW_IMAGE)
    cluster.pass_time(60)
    assert images(await cluster.all("Pod")) == {"db-0": "1"}
    await cluster.delete("Pod", "db-0", gracePeriodSeconds=0)
    assert images(await cluster.all("Pod")) == {"db-0": "2"}


async def test_revisions_are_kept_for_the_history(cluster: Cluster) -> None:
    await cluster.create(workload("StatefulSet", "db", replicas=1))
    await cluster.patch("StatefulSet", "db", NEW_IMAGE)
    found = sorted(await cluster.all("ControllerRevision"), key=lambda revision: int(revision["revision"]))
    assert [revision["revision"] for revision in found] == [1, 2]
    assert [r["data"]["spec"]["template"]["spec"]["containers"][0]["image"][-1] for r in found] == ["1", "2"]
