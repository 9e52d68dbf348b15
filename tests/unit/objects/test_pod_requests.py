"""What pods ask for and what they take."""

from __future__ import annotations

from typing import Any

from kube_pyscheduler.objects.pod_requests import pod_requests
from tests.builders import make_pod


def container(name: str = "c", *, restart: str | None = None, **requests: str) -> dict[str, Any]:
    document: dict[str, Any] = {"name": name, "resources": {"requests": requests}}
    if restart:
        document["restartPolicy"] = restart
    return document


def cpu(
    *, init: list[dict[str, Any]] | None = None, containers: list[dict[str, Any]], use_status: bool = False, **rest: Any
) -> int:
    pod = make_pod(containers=containers, initContainers=init or [], **rest)
    return pod_requests(pod, use_status=use_status).get("cpu", 0)


def test_containers_add_up() -> None:
    assert cpu(containers=[container("a", cpu="1"), container("b", cpu="250m")]) == 1250


def test_init_containers_run_one_at_a_time() -> None:
    assert cpu(init=[container("i", cpu="3"), container("j", cpu="2")], containers=[container(cpu="1")]) == 3000


def test_bc_05_a_sidecar_started_before_an_init_container_runs_beside_it() -> None:
    sidecar, plain = container("s", restart="Always", cpu="1"), container("i", cpu="1500m")
    assert cpu(init=[sidecar, plain], containers=[container(cpu="1")]) == 2500
    assert cpu(init=[plain, sidecar], containers=[container(cpu="1")]) == 2000


def test_overhead_comes_on_top_of_pod_level_requests_which_replace_the_sum() -> None:
    total = cpu(containers=[container(cpu="5")], resources={"requests": {"cpu": "2"}}, overhead={"cpu": "100m"})
    assert total == 2100


def test_an_explicit_zero_is_not_the_same_as_nothing() -> None:
    assert "cpu" in pod_requests(make_pod(containers=[container(cpu="0")]), use_status=False)
    assert "cpu" not in pod_requests(make_pod(containers=[container()]), use_status=False)


def resizing(name: str, *, actual: str, allocated: str) -> dict[str, Any]:
    return {
        "name": name,
        "resources": {"requests": {"cpu": actual}},
        "allocatedResources": {"cpu": allocated},
    }


def test_bc_67_a_resize_counts_the_maximum_of_each_container() -> None:
    statuses = [resizing("c1", actual="2", allocated="2"), resizing("c2", actual="1", allocated="1")]
    containers = [container("c1", cpu="1"), container("c2", cpu="2")]
    assert cpu(containers=containers, status={"containerStatuses": statuses}, use_status=True) == 4000
    infeasible = {
        "containerStatuses": statuses,
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
    }
    assert cpu(containers=containers, status=infeasible, use_status=True) == 3000


def test_bc_68_asking_for_less_frees_nothing_before_it_is_done() -> None:
    before = {"containerStatuses": [resizing("c", actual="3", allocated="3")]}
    after = {"containerStatuses": [resizing("c", actual="1", allocated="1")]}
    assert cpu(containers=[container(cpu="1")], status=before, use_status=True) == 3000
    assert cpu(containers=[container(cpu="1")], status=after, use_status=True) == 1000


def test_allocated_resources_without_actual_ones_are_ignored() -> None:
    status = {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "3"}}]}
    assert cpu(containers=[container(cpu="1")], status=status, use_status=True) == 1000
