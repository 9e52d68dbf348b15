from __future__ import annotations

from typing import Any

from kube_pyscheduler.devserver.controllers.job_indexes import as_text
from kube_pyscheduler.devserver.controllers.kubelet import EXIT_CODE_ANNOTATION
from tests.devserver_controllers.cluster import Cluster, condition, template


def job(name: str = "sum", *, exit_code: int = 0, **spec: Any) -> dict[str, Any]:
    pod = template(name, restartPolicy="Never")
    if exit_code:
        pod["metadata"]["annotations"] = {EXIT_CODE_ANNOTATION: str(exit_code)}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": pod, **spec}}


async def test_runs_as_many_at_a_time_as_asked_until_enough_have_completed(cluster: Cluster) -> None:
    await cluster.create(job(completions=3, parallelism=2))
    assert len(await cluster.bind_all()) == 2
    status = (await cluster.have("Job", "sum"))["status"]
    assert (status["active"], status["ready"]) == (2, 2)
    cluster.pass_time(10)
    assert len(await cluster.bind_all()) == 1
    cluster.pass_time(10)
    found = await cluster.have("Job", "sum")
    assert found["status"]["succeeded"] == 3
    assert "active" not in found["status"]
    assert condition(found, "Complete")["reason"] == "CompletionsReached"
    assert found["status"]["completionTime"]
    assert len(await cluster.all("Pod")) == 3


async def test_a_completed_job_stays_so_when_its_pods_are_deleted(cluster: Cluster) -> None:
    await cluster.create(job())
    await cluster.bind_all()
    cluster.pass_time(10)
    for name in await cluster.names("Pod"):
        await cluster.delete("Pod", name)
    cluster.pass_time(60)
    assert await cluster.all("Pod") == []
    assert (await cluster.have("Job", "sum"))["status"]["succeeded"] == 1


async def test_failed_pods_are_replaced_ever_later_until_the_limit(cluster: Cluster) -> None:
    await cluster.create(job(exit_code=1, backoffLimit=1))
    await cluster.bind_all()
    cluster.pass_time(10)
    assert (await cluster.have("Job", "sum"))["status"]["failed"] == 1
    assert await cluster.bind_all() == []
    cluster.pass_time(10)
    assert len(await cluster.bind_all()) == 1
    cluster.pass_time(10)
    found = await cluster.have("Job", "sum")
    assert found["status"]["failed"] == 2
    assert condition(found, "Failed")["reason"] == "BackoffLimitExceeded"
    cluster.pass_time(600, step=60)
    assert await cluster.bind_all() == []


async def test_the_deadline_ends_a_job(cluster: Cluster) -> None:
    await cluster.create(job(activeDeadlineSeconds=5))
    cluster.pass_time(5)
    assert condition(await cluster.have("Job", "sum"), "Failed")["reason"] == "DeadlineExceeded"
    assert await cluster.all("Pod") == []


async def test_a_suspended_job_has_no_pods(cluster: Cluster) -> None:
    await cluster.create(job(suspend=True))
    assert await cluster.all("Pod") == []
    assert condition(await cluster.have("Job", "sum"), "Suspended")["status"] == "True"
    await cluster.patch("Job", "sum", {"spec": {"suspend": False}})
    assert len(await cluster.all("Pod")) == 1
    assert condition(await cluster.have("Job", "sum"), "Suspended")["status"] == "False"
    await cluster.patch("Job", "sum", {"spec": {"suspend": True}})
    assert await cluster.all("Pod") == []


async def test_an_indexed_job_runs_each_index_once(cluster: Cluster) -> None:
    await cluster.create(job(completions=3, parallelism=2, completionMode="Indexed"))
    first = await cluster.all("Pod")
    assert [p["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] for p in first] == ["0", "1"]
    assert [p["spec"]["hostname"] for p in first] == ["sum-0", "sum-1"]
    await cluster.bind_all()
    cluster.pass_time(10)
    await cluster.bind_all()
    cluster.pass_time(10)
    found = await cluster.have("Job", "sum")
    assert found["status"]["completedIndexes"] == "0-2"
    assert condition(found, "Complete")["status"] == "True"


def test_indexes_as_text() -> None:
    assert as_text([4, 0, 1, 2, 6, 7]) == "0-2,4,6,7"
    assert as_text([]) == ""


async def test_a_finished_job_goes_when_its_time_is_over(cluster: Cluster) -> None:
    await cluster.create(job(ttlSecondsAfterFinished=20))
    await cluster.bind_all()
    cluster.pass_time(29)
    assert await cluster.get("Job", "sum") is not None
    cluster.pass_time(1)
    assert await cluster.get("Job", "sum") is None
    assert await cluster.all("Pod") == []
