from __future__ import annotations

from typing import Any

import pytest

from tests.devserver_controllers.cluster import Cluster, Refused, condition, pod, workload


def budget(name: str = "budget", app: str = "web", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
    }


async def running_deployment(cluster: Cluster, replicas: int) -> list[str]:
    await cluster.create(workload("Deployment", "web", replicas=replicas))
    return await cluster.bind_all()


async def numbers(cluster: Cluster) -> tuple[int, int, int, int]:
    """(healthy, desired, expected, allowed)"""
    status = (await cluster.have("PodDisruptionBudget", "budget"))["status"]
    return (
        status["currentHealthy"],
        status["desiredHealthy"],
        status["expectedPods"],
        status["disruptionsAllowed"],
    )


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"minAvailable": 3}, (4, 3, 4, 1)),
        ({"minAvailable": "60%"}, (4, 3, 4, 1)),
        ({"maxUnavailable": 1}, (4, 3, 4, 1)),
        ({"maxUnavailable": "30%"}, (4, 2, 4, 2)),
        ({"maxUnavailable": 0}, (4, 4, 4, 0)),
    ],
)
async def test_how_many_may_go(cluster: Cluster, spec: dict[str, Any], expected: tuple[int, ...]) -> None:
    await running_deployment(cluster, 4)
    await cluster.create(budget(**spec))
    assert await numbers(cluster) == expected
    found = await cluster.have("PodDisruptionBudget", "budget")
    assert found["status"]["observedGeneration"] == 1
    allowed = condition(found, "DisruptionAllowed")
    assert allowed["reason"] == ("SufficientPods" if expected[3] else "InsufficientPods")


async def test_follows_pods_that_become_ready_or_go(cluster: Cluster) -> None:
    await cluster.create(budget(minAvailable=1))
    assert await numbers(cluster) == (0, 1, 0, 0)
    names = await running_deployment(cluster, 2)
    assert await numbers(cluster) == (2, 1, 2, 1)
    await cluster.delete("Pod", names[0], gracePeriodSeconds=0)
    assert await numbers(cluster) == (1, 1, 2, 0)


async def test_follows_labels(cluster: Cluster) -> None:
    await cluster.create(budget(minAvailable=0))
    await cluster.create(pod("loner"))
    await cluster.bind("loner", "node-1")
    assert await numbers(cluster) == (0, 0, 0, 0)
    await cluster.patch("Pod", "loner", {"metadata": {"labels": {"app": "web"}}})
    assert await numbers(cluster) == (1, 0, 1, 1)
    await cluster.patch("Pod", "loner", {"metadata": {"labels": {"app": None}}})
    assert await numbers(cluster) == (0, 0, 0, 0)


async def test_a_percentage_follows_the_replicas(cluster: Cluster) -> None:
    await running_deployment(cluster, 2)
    await cluster.create(budget(minAvailable="50%"))
    await cluster.patch("Deployment", "web", {"spec": {"replicas": 10}})
    assert await numbers(cluster) == (2, 5, 10, 0)


async def test_a_changed_spec_is_observed(cluster: Cluster) -> None:
    await running_deployment(cluster, 3)
    await cluster.create(budget(minAvailable=3))
    version = (await cluster.have("PodDisruptionBudget", "budget"))["metadata"]["resourceVersion"]
    patch = {"metadata": {"resourceVersion": version}, "spec": {"minAvailable": 1}}
    await cluster.patch("PodDisruptionBudget", "budget", patch)
    assert await numbers(cluster) == (3, 1, 3, 2)
    assert (await cluster.have("PodDisruptionBudget", "budget"))["status"]["observedGeneration"] == 2


async def test_a_percentage_of_pods_nobody_counts_fails(cluster: Cluster) -> None:
    body = pod("loner")
    owner = {"apiVersion": "v1", "kind": "Robot", "name": "r", "uid": "u", "controller": True}
    body["metadata"] |= {"labels": {"app": "web"}, "ownerReferences": [owner]}
    await cluster.create(body)
    await cluster.create(budget(minAvailable="50%"))
    found = condition(await cluster.have("PodDisruptionBudget", "budget"), "DisruptionAllowed")
    assert (found["status"], found["reason"]) == ("False", "SyncFailed")
    assert found["message"] == 'found no controllers for pod "loner"'


async def test_evictions_pass_until_the_budget_is_spent(cluster: Cluster) -> None:
    names = await running_deployment(cluster, 3)
    await cluster.create(budget(minAvailable=2))
    await cluster.evict(names[0])
    with pytest.raises(Refused) as refused:
        await cluster.evict(names[1])
    assert refused.value.code == 429
    assert await numbers(cluster) == (2, 2, 4, 0)
    await cluster.bind_all()
    await cluster.evict(names[1])


async def test_an_evicted_pod_that_does_not_go_counts_again(cluster: Cluster) -> None:
    names = await running_deployment(cluster, 2)
    await cluster.create(budget(minAvailable=1))
    found = await cluster.have("PodDisruptionBudget", "budget")
    disrupted = {names[0]: cluster.server.registry.now()}
    status = {**found["status"], "disruptionsAllowed": 0, "disruptedPods": disrupted}
    version = {"metadata": {"resourceVersion": found["metadata"]["resourceVersion"]}}
    await cluster.patch("PodDisruptionBudget", "budget", {**version, "status": status}, subresource="status")
    assert await numbers(cluster) == (1, 1, 2, 0)
    cluster.pass_time(120, step=30)
    assert await numbers(cluster) == (2, 1, 2, 1)
    assert "disruptedPods" not in (await cluster.have("PodDisruptionBudget", "budget"))["status"]
