"""Extended resources that devices serve: where a node has none of them, and a class offers them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.config.args import NodeResourcesBalancedAllocationArgs, ResourceSpec
from kube_pyscheduler.devices.classes import ExtendedResources, is_offered
from kube_pyscheduler.framework.interfaces import ScoreKernel
from kube_pyscheduler.framework.listers import Lister
from kube_pyscheduler.framework.status import Code
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.objects.resource import DeviceClass
from kube_pyscheduler.plugins.dynamic_resources.extended import requests_for, wanted_resources
from kube_pyscheduler.plugins.node_resources.balanced import NodeResourcesBalancedAllocation
from tests.builders import make_node
from tests.plugins.dynamic_resources.world import (
    Document,
    World,
    allocation,
    device,
    devices_of,
    make_claim,
    make_class,
    make_pod,
    make_slice,
)

GPU = "example.com/gpu"
IMPLICIT = "deviceclass.resource.kubernetes.io/gpu"


def listed(*classes: DeviceClass) -> Lister[DeviceClass]:
    lister: Lister[DeviceClass] = Lister()
    for device_class in classes:
        lister.put(device_class)
    return lister


def pod(count: int = 1, resource: str = GPU, name: str = "p") -> Pod:
    return make_pod(name, requests={resource: str(count)})


@pytest.fixture
def world() -> World:
    """Two devices on n0; n1 has the resource itself; n2 has nothing."""
    slices = make_slice("s", [device("a"), device("b")], node="n0")
    nodes = [make_node("n0"), make_node("n1", allocatable={GPU: "1"}), make_node("n2")]
    return World(make_class(extended=GPU), slices, *nodes)


# Which class offers what


def test_the_youngest_class_offers_a_resource_and_of_equals_the_first_by_name() -> None:
    old, new = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"
    classes = listed(
        make_class("a", extended=GPU, created=old),
        make_class("b", extended=GPU, created=new),
        make_class("c", extended=GPU, created=new),
    )
    known = ExtendedResources(classes)
    assert getattr(known.class_of(GPU), "name", None) == "b"
    for name in "abc":
        assert getattr(known.class_of(f"deviceclass.resource.kubernetes.io/{name}"), "name", None) == name
        assert is_offered(f"deviceclass.resource.kubernetes.io/{name}", classes)
    assert is_offered(GPU, classes)
    assert known.class_of("example.com/other") is None
    assert not is_offered("example.com/other", classes)
    assert not is_offered("deviceclass.resource.kubernetes.io/other", classes)
    assert len(known) == 4


# Requests


def container(name: str, count: int | None = None, **more: Any) -> Document:
    requests = {} if count is None else {GPU: str(count)}
    return {"name": name, "image": "x", "resources": {"requests": {"cpu": "1", **requests}}, **more}


@pytest.mark.parametrize(
    ("init", "main", "requests", "mappings"),
    [
        ([], [2], {"container-0-request-1": 2}, [("m0", "container-0-request-1")]),
        (
            [],
            [1, None, 3],
            {"container-0-request-1": 1, "container-2-request-1": 3},
            [("m0", "container-0-request-1"), ("m2", "container-2-request-1")],
        ),
        # What comes first uses what comes later.
        ([1], [1], {"container-1-request-1": 1}, [("m0", "container-1-request-1"), ("i0", "container-1-request-1")]),
        # And shares what is missing then: the largest, under one name.
        (
            [3, 2],
            [1],
            {"container-0-request-1": 2, "container-2-request-1": 1},
            [
                ("m0", "container-2-request-1"),
                ("i0", "container-2-request-1"),
                ("i0", "container-0-request-1"),
                ("i1", "container-2-request-1"),
                ("i1", "container-0-request-1"),
            ],
        ),
        ([0], [0], {}, []),
    ],
)
def test_containers_share_requests(
    init: list[int], main: list[int | None], requests: dict[str, int], mappings: list[tuple[str, str]]
) -> None:
    asking = make_pod(
        "p",
        initContainers=[container(f"i{number}", count) for number, count in enumerate(init)],
        containers=[container(f"m{number}", count) for number, count in enumerate(main)],
    )
    found = requests_for(asking, [GPU], ExtendedResources(listed(make_class(extended=GPU))))
    assert {each.name: each.exactly.count for each in found.devices.requests if each.exactly} == requests
    assert [(each.container_name, each.request_name) for each in found.mappings] == mappings


def test_sidecars_keep_what_they_ask_for() -> None:
    asking = make_pod(
        "p",
        initContainers=[container("side", 1, restartPolicy="Always"), container("i", 1)],
        containers=[container("m", 1)],
    )
    found = requests_for(asking, [GPU], ExtendedResources(listed(make_class(extended=GPU))))
    assert [each.name for each in found.devices.requests] == ["container-0-request-1", "container-2-request-1"]
    assert ("i", "container-2-request-1") in [(each.container_name, each.request_name) for each in found.mappings]


def test_what_counts_as_an_extended_resource() -> None:
    asking = make_pod(
        "p", requests={"cpu": "1", GPU: "2", IMPLICIT: "1", "hugepages-2Mi": "2Mi", "example.com/none": "0"}
    )
    assert wanted_resources(PodInfo(asking)) == {GPU: 2, IMPLICIT: 1}


# Decisions


def test_nodes_have_the_resource_or_the_devices(world: World) -> None:
    assert world.fit(pod()) == {"n0", "n1"}
    assert world.fit(pod(2)) == {"n0"}
    assert world.fit(pod(resource=IMPLICIT)) == {"n0"}
    refusals = world.refusals(pod(2))
    assert refusals["n1"].reasons == (f"Insufficient {GPU}",)
    assert refusals["n2"].reasons == ("cannot allocate all claims",)


def test_devices_are_reserved_for_it(world: World) -> None:
    asking = pod(2)
    decision, state = world.decide(asking)
    assert decision.node == "n0"
    assert devices_of(state) == {"": ["container-0-request-0:n0/a", "container-0-request-0:n0/b"]}
    assert world.fit(pod(name="q")) == {"n1"}
    world.give_up(asking, decision)
    assert world.fit(pod(name="q")) == {"n0", "n1"}
    assert world.handle.work == []


def test_a_node_that_has_the_resource_gives_no_devices(world: World) -> None:
    world.put(make_slice("t", [device("a")], node="n1"))
    world.drop(make_node("n0"))
    decision, state = world.decide(pod())
    assert decision.node == "n1"
    assert devices_of(state) == {}


def test_classes_come_and_go(world: World) -> None:
    device_class = make_class()
    world.put(device_class)
    assert world.fit(pod()) == {"n1"}
    assert world.refusals(pod())["n0"].reasons == (f"Insufficient {GPU}",)
    world.put(make_class(extended=GPU))
    assert world.fit(pod()) == {"n0", "n1"}
    world.drop(make_class(extended=GPU))
    assert world.fit(pod()) == {"n1"}


def test_resources_that_are_ignored_are_left_to_nobody() -> None:
    profile = {"pluginConfig": [{"name": "NodeResourcesFit", "args": {"ignoredResources": ["example.com/other"]}}]}
    world = World(make_class(extended=GPU), make_slice("s", [device("a")], node="n0"), profile=profile, nodes=1)
    world.put(make_node("n1", allocatable={"example.com/other": "0"}))
    asking = make_pod("p", requests={GPU: "1", "example.com/other": "1"})
    assert world.refusals(asking)["n0"].reasons == ("cannot fit resource",)
    assert world.refusals(asking)["n1"].reasons == ("cannot allocate all claims",)


def test_claims_and_extended_resources_together(world: World) -> None:
    world.put(make_claim("c"))
    asking = make_pod("p", "c", requests={GPU: "1"})
    _decision, state = world.decide(asking)
    assert devices_of(state) == {"c": ["n0/a"], "": ["container-0-request-0:n0/b"]}
    assert world.fit(make_pod("q", "c", requests={GPU: "2"})) == set()


def test_what_an_earlier_attempt_made_must_go_first(world: World) -> None:
    owner = [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}]
    annotations = {"resource.kubernetes.io/extended-resource-claim": "true"}
    made = make_claim("p-extended-resources-x", ownerReferences=owner, annotations=annotations)
    world.put(made, make_claim("other", ownerReferences=owner), make_claim("unowned", annotations=annotations))
    assert world.fit(pod(name="q")) == {"n0", "n1"}
    decision = world.schedule(pod())
    assert decision.node is None
    assert decision.status.message.startswith(
        "0/3 nodes are available: 3 cannot schedule extended resource claim. deletion of ResourceClaim completed, "
    )
    assert len(world.handle.work) == 1
    another = make_claim("p-extended-resources-y", ownerReferences=owner, annotations=annotations)
    world.put(another)
    world.drop(made)
    assert world.fit(pod()) == set()
    world.drop(another)
    assert world.fit(pod()) == {"n0", "n1"}


def test_mistakes_of_the_class_fail_the_attempt(world: World) -> None:
    world.put(make_class("gpu", "device.nope.x", extended=GPU))
    status = world.schedule(pod()).status
    assert (status.code, status.message) == (
        Code.ERROR,
        'running "DynamicResources" filter plugin: class gpu: selector #0: CEL compile error: '
        "must evaluate to bool or the unknown type, not dyn",
    )


# Scores of NodeResourcesFit and NodeResourcesBalancedAllocation


def fullness(kind: str) -> Document:
    strategy = {"type": kind, "resources": [{"name": GPU, "weight": 1}]}
    plugins = {"multiPoint": {"disabled": [{"name": "*"}]}}
    for point, wanted in (
        ("preFilter", ["NodeResourcesFit", "DynamicResources"]),
        ("filter", ["NodeResourcesFit", "DynamicResources"]),
        ("preScore", ["NodeResourcesFit"]),
        ("score", ["NodeResourcesFit"]),
        ("queueSort", ["PrioritySort"]),
        ("bind", ["DefaultBinder"]),
        ("reserve", ["DynamicResources"]),
    ):
        plugins[point] = {"enabled": [{"name": name} for name in wanted]}
    args = {"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}
    return {"plugins": plugins, "pluginConfig": [args]}


@pytest.mark.parametrize(("kind", "scores"), [("MostAllocated", (75, 50)), ("LeastAllocated", (25, 50))])
def test_devices_count_as_the_resource_they_serve(kind: str, scores: tuple[int, int]) -> None:
    slices = make_slice("s", [device(name) for name in "abcd"], node="n0")
    world = World(make_class(extended=GPU), slices, profile=fullness(kind))
    world.put(make_node("n0"), make_node("n1", allocatable={GPU: "2"}))
    old = [make_claim(f"old{number}", status=allocation(("n0", name))) for number, name in enumerate("ab")]
    world.put(*old)
    assert world.totals(pod()) == {"n0": scores[0], "n1": scores[1]}
    # Scores follow what is taken and given back.
    world.drop(old[0])
    assert world.totals(pod()) == {"n0": 50, "n1": 50}
    world.put(old[0])
    assert world.totals(pod()) == {"n0": scores[0], "n1": scores[1]}


def test_the_balance_counts_devices_too() -> None:
    plugin = NodeResourcesBalancedAllocation(
        NodeResourcesBalancedAllocationArgs((ResourceSpec("cpu", 1), ResourceSpec(GPU, 1)))
    )
    slices = make_slice("s", [device(name) for name in "abcd"], node="n0")
    world = World(make_class(extended=GPU), slices)
    world.put(make_node("n0"), make_node("n1", allocatable={GPU: "4"}))
    asking, table = PodInfo(make_pod("p", requests={"cpu": "2", GPU: "1"})), world.cache.table
    kernel = plugin.score_kernel(world.context(), asking)
    assert isinstance(kernel, ScoreKernel)
    # (2/4, 1/4) with the pod and nothing without.
    assert kernel.scores(table, table.all_rows).tolist() == [68, 68]
    assert not kernel.is_stale(table)
    world.put(make_claim("old", status=allocation(("n0", "a"))))
    assert kernel.is_stale(table)
    # (2/4, 2/4) with the pod, (0, 1/4) without.
    kernel = plugin.score_kernel(world.context(), asking)
    assert isinstance(kernel, ScoreKernel)
    assert kernel.scores(table, table.all_rows).tolist() == [81, 68]
    assert kernel.scores(table, np.array([0])).tolist() == [81]
