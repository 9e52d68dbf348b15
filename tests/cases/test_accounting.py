"""Public cases of filters and accounting."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kube_pyscheduler.config.load import load_profile
from kube_pyscheduler.framework.profile import build_profile
from kube_pyscheduler.plugins import IN_TREE
from tests.builders import make_node, make_pod
from tests.clusters import Cluster
from tests.unit.scheduler.world import World
from tests.unit.scheduling_queue.builders import SCHEDULER


def port(address: str, number: int, protocol: str = "TCP") -> list[dict[str, object]]:
    return [{"name": "c", "ports": [{"hostPort": number, "hostIP": address, "protocol": protocol, "containerPort": 1}]}]


@pytest.mark.parametrize(
    ("containers", "fits"),
    [
        (port("10.0.0.2", 8080), True),
        (port("10.0.0.1", 8080, "UDP"), True),
        (port("10.0.0.1", 8080), False),
        (port("0.0.0.0", 8080), False),
        (port("", 8080), False),
        (port("10.0.0.1", 0), True),
    ],
)
def test_bc_04_host_ports_are_told_apart_by_address_port_and_protocol(
    containers: list[dict[str, object]], fits: bool
) -> None:
    holder = make_pod("a", node="n1", containers=port("10.0.0.1", 8080))
    cluster = Cluster([make_node("n1")], [holder])
    assert cluster.fit(make_pod("b", containers=containers)) == ({"n1"} if fits else set())


def test_bc_05_sidecars_add_up_and_plain_init_containers_take_the_maximum() -> None:
    def resources(cpu: str) -> dict[str, object]:
        return {"resources": {"requests": {"cpu": cpu}}}

    sidecar = {"name": "s", "restartPolicy": "Always", **resources("1")}
    pod = make_pod(
        containers=[{"name": "c", **resources("1")}], initContainers=[sidecar, {"name": "i", **resources("1500m")}]
    )
    small, large = make_node("small", allocatable={"cpu": "2400m"}), make_node("large", allocatable={"cpu": "2500m"})
    assert Cluster([small, large]).fit(pod) == {"large"}


@pytest.mark.parametrize(
    ("change", "fits"),
    [
        ({"status": {"phase": "Succeeded"}}, True),
        ({"status": {"phase": "Failed"}}, True),
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "resourceVersion": "2"}}, False),
    ],
    ids=["succeeded", "failed", "terminating"],
)
async def test_bc_07_finished_pods_free_their_node_and_terminating_ones_do_not(
    change: dict[str, Any], fits: bool
) -> None:
    world = World(build_profile(load_profile({}), IN_TREE))
    world.node(allocatable={"pods": "2"})
    world.apply(make_pod("a", node="n1", scheduler=SCHEDULER))
    world.apply(make_pod("b", node="n1", scheduler=SCHEDULER))
    waiting = world.apply(make_pod("c", scheduler=SCHEDULER))
    await world.settle()
    ((_pod, note),) = world.events.of("FailedScheduling")
    assert note.startswith("0/1 nodes are available: 1 Too many pods.")
    world.apply(make_pod("b", node="n1", scheduler=SCHEDULER, **change))
    await world.after(10.0)
    assert world.bound == ({"c": "n1"} if fits else {})
    assert (world.scheduler.queue.get(waiting.uid) is None) is fits
    await world.scheduler.abort()


def test_bc_08_no_pod_goes_to_a_node_that_is_gone_and_its_load_is_still_there_when_it_comes_back() -> None:
    cluster = Cluster([make_node("n1")], [make_pod("a", node="n1", requests={"cpu": "3"})])
    incoming = make_pod("b", requests={"cpu": "2"})
    cluster.cache.remove_node(make_node("n1"))
    assert cluster.schedule(incoming).status.message == "no nodes available to schedule pods"
    cluster.cache.set_node(make_node("n1", metadata={"uid": "another"}))
    assert cluster.refusals(incoming)["n1"].reasons == ("Insufficient cpu",)


def test_bc_10_the_old_size_of_a_node_never_shows() -> None:
    rng = random.Random(1)
    cluster = Cluster([make_node("n1", allocatable={"cpu": "8"})])
    incoming = make_pod(requests={"cpu": "2"})
    for _ in range(300):
        for number in range(rng.randrange(3)):
            cluster.cache.set_node(make_node("n1", allocatable={"cpu": "8"}, labels={"number": str(number)}))
        if rng.random() < 0.8:
            assert cluster.fit(incoming) == {"n1"}
        cluster.cache.remove_node(make_node("n1"))
        cluster.cache.set_node(make_node("n1", allocatable={"cpu": "1"}))
        for number in range(rng.randrange(3)):
            cluster.cache.set_node(make_node("n1", allocatable={"cpu": "1"}, labels={"number": str(number)}))
        assert cluster.fit(incoming) == set()
        cluster.cache.set_node(make_node("n1", allocatable={"cpu": "8"}))


def test_bc_49_pods_of_other_schedulers_count() -> None:
    foreign = make_pod("a", node="n1", scheduler="default-scheduler", requests={"cpu": "3"})
    cluster = Cluster([make_node("n1")], [foreign])
    assert cluster.refusals(make_pod("b", requests={"cpu": "2"}))["n1"].reasons == ("Insufficient cpu",)


def test_bc_67_a_running_resize_is_charged_by_the_larger_side_of_each_container() -> None:
    def status(name: str, cpu: str) -> dict[str, object]:
        return {"name": name, "resources": {"requests": {"cpu": cpu}}, "allocatedResources": {"cpu": cpu}}

    containers = [
        {"name": "c1", "resources": {"requests": {"cpu": "1"}}},
        {"name": "c2", "resources": {"requests": {"cpu": "2"}}},
    ]
    running = make_pod(
        "a", node="n1", containers=containers, status={"containerStatuses": [status("c1", "2"), status("c2", "1")]}
    )
    cluster = Cluster([make_node("n1")], [running])
    assert cluster.fit(make_pod("b", requests={"cpu": "1"})) == set()


def test_bc_68_room_appears_when_the_downsize_has_happened() -> None:
    def running(actual: str) -> object:
        entry = {"name": "c", "resources": {"requests": {"cpu": actual}}, "allocatedResources": {"cpu": actual}}
        return make_pod("a", node="n1", requests={"cpu": "1"}, status={"containerStatuses": [entry]})

    cluster = Cluster([make_node("n1")], [running("3")])
    incoming = make_pod("b", requests={"cpu": "2"})
    assert cluster.fit(incoming) == set()
    cluster.cache.set_pod(running("1"))
    assert cluster.fit(incoming) == {"n1"}


def test_bc_70_defaults_are_for_scoring_only() -> None:
    silent = [make_pod(f"s{number}", node="n1", requests={}) for number in range(10)]
    cluster = Cluster([make_node("n1"), make_node("n2")], silent)
    incoming = make_pod("b", requests={})
    assert cluster.fit(incoming) == {"n1", "n2"}
    totals = cluster.totals(incoming)
    assert totals["n2"] > totals["n1"]


@pytest.mark.parametrize("requests", [{"cpu": "0", "memory": "0"}, {"cpu": "0", "memory": "64Mi"}])
def test_bc_71_only_positive_requests_are_compared(requests: dict[str, str]) -> None:
    overcommitted = make_node("n1", allocatable={"cpu": "2"})
    running = [make_pod(f"r{number}", node="n1", requests={"cpu": "1"}) for number in range(3)]
    cluster = Cluster([overcommitted], running)
    assert cluster.fit(make_pod("b", requests=requests)) == {"n1"}
    cluster.cache.set_node(make_node("n1", allocatable={"cpu": "2", "pods": "3"}))
    assert cluster.refusals(make_pod("b", requests=requests))["n1"].reasons == ("Too many pods",)
