"""A pod is refused, then something happens that helps: it is bound soon, at its second attempt. No flush saves it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kube_pyscheduler.devserver.resources import (
    CSI_NODES,
    NAMESPACES,
    NODES,
    PODS,
    STORAGE_CLASSES,
    Resource,
    builtin,
)
from tests.cases.stage import Stage, counter, play
from tests.cases.storage import DRIVER, add_claim, add_class, add_csi_node, add_volume, using

HOST = "kubernetes.io/hostname"
TAINT = {"key": "example.com/a", "effect": "NoSchedule"}

Help = Callable[[], Any]


def change(stage: Stage, resource: Resource, name: str, where: str, *, namespace: str = "", **fields: Any) -> None:
    """Change fields of ``metadata``, ``spec`` or ``status``."""
    obj = stage.world.server.store.get(resource, namespace, name)
    assert obj is not None
    subresource = "status" if where == "status" else ""
    changed = {**obj, where: {**obj.get(where, {}), **fields}}
    stage.registry.update(resource, changed, subresource=subresource)


def label(stage: Stage, resource: Resource, name: str, *, namespace: str = "", **labels: str) -> None:
    obj = stage.world.server.store.get(resource, namespace, name)
    assert obj is not None
    labels = {**obj["metadata"].get("labels", {}), **{key.replace("__", "/"): value for key, value in labels.items()}}
    change(stage, resource, name, "metadata", namespace=namespace, labels=labels)


def finish(stage: Stage, name: str) -> None:
    change(stage, PODS, name, "status", namespace="default", phase="Succeeded")


def selecting(**labels: str) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": labels}, "topologyKey": HOST}


def add_labelled(stage: Stage, name: str, node: str, **labels: str) -> None:
    stage.add_pod(name, node=node)
    label(stage, PODS, name, namespace="default", **labels)


# Each makes what keeps the pod "p" from being scheduled, and "p", and returns what helps.


def a_node_comes(stage: Stage) -> Help:
    stage.add_node(0)
    stage.add_pod("p", cpu="5")
    return lambda: stage.add_node(1, cpu="5")


def a_node_is_uncordoned(stage: Stage) -> Help:
    node = stage.add_node(unschedulable=True)
    stage.add_pod("p")
    return lambda: change(stage, NODES, node, "spec", unschedulable=False)


def a_taint_goes(stage: Stage) -> Help:
    node = stage.add_node(taints=[TAINT])
    stage.add_pod("p")
    return lambda: change(stage, NODES, node, "spec", taints=[])


def a_node_gets_a_label(stage: Stage) -> Help:
    node = stage.add_node()
    stage.add_pod("p", nodeSelector={"disk": "ssd"})
    return lambda: label(stage, NODES, node, disk="ssd")


def a_node_grows(stage: Stage) -> Help:
    node = stage.add_node()
    stage.add_pod("p", cpu="5")
    found = stage.world.server.store.get(NODES, "", node)
    assert found is not None
    amounts = {**found["status"]["allocatable"], "cpu": "5"}
    return lambda: change(stage, NODES, node, "status", allocatable=amounts, capacity=amounts)


def a_pod_finishes(stage: Stage) -> Help:
    node = stage.add_node()
    stage.add_pod("q", cpu="3", node=node)
    stage.add_pod("p", cpu="3")
    return lambda: finish(stage, "q")


def a_pod_is_deleted(stage: Stage) -> Help:
    node = stage.add_node()
    stage.add_pod("q", cpu="3", node=node)
    stage.add_pod("p", cpu="3")
    return lambda: stage.delete_pod("q")


def a_port_becomes_free(stage: Stage) -> Help:
    node = stage.add_node()
    container: dict[str, Any] = {"name": "c", "image": "app:1", "resources": {"requests": {"cpu": "100m"}}}
    container["ports"] = [{"containerPort": 80, "hostPort": 8080}]
    stage.add_pod("q", node=node, containers=[container])
    stage.add_pod("p", containers=[container])
    return lambda: finish(stage, "q")


def a_pod_loses_an_unwanted_label(stage: Stage) -> Help:
    node = stage.add_node()
    add_labelled(stage, "q", node, app="noisy")
    unwanted = {"requiredDuringSchedulingIgnoredDuringExecution": [selecting(app="noisy")]}
    stage.add_pod("p", affinity={"podAntiAffinity": unwanted})
    return lambda: label(stage, PODS, "q", namespace="default", app="quiet")


def a_namespace_gets_a_wanted_label(stage: Stage) -> Help:
    node = stage.add_node()
    add_labelled(stage, "q", node, app="db")
    term = {**selecting(app="db"), "namespaceSelector": {"matchLabels": {"team": "red"}}}
    stage.add_pod("p", affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
    return lambda: label(stage, NAMESPACES, "default", team="red")


def spread_out(stage: Stage) -> None:
    spread = {**selecting(app="web"), "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    stage.add_pod("p", schedulingGates=[{"name": "example.com/label"}], topologySpreadConstraints=[spread])
    label(stage, PODS, "p", namespace="default", app="web")
    change(stage, PODS, "p", "spec", namespace="default", schedulingGates=[])


def a_domain_can_be_used_again(stage: Stage) -> Help:
    first, second = stage.add_node(0), stage.add_node(1, unschedulable=True)
    add_labelled(stage, "q", first, app="web")
    spread_out(stage)
    return lambda: change(stage, NODES, second, "spec", unschedulable=False)


def a_domain_goes(stage: Stage) -> Help:
    first, second = stage.add_node(0), stage.add_node(1, unschedulable=True)
    add_labelled(stage, "q", first, app="web")
    spread_out(stage)
    return lambda: stage.registry.delete(NODES, "", second)


def a_pod_goes_where_there_were_too_many(stage: Stage) -> Help:
    first = stage.add_node(0)
    stage.add_node(1, unschedulable=True)
    add_labelled(stage, "q", first, app="web")
    spread_out(stage)
    return lambda: finish(stage, "q")


def a_storage_class_comes(stage: Stage) -> Help:
    stage.add_node()
    add_claim(stage, "c")
    stage.add_pod("p", **using("c"))
    return lambda: add_class(stage)


def a_claim_comes(stage: Stage) -> Help:
    stage.add_node()
    add_class(stage)
    stage.add_pod("p", **using("c"))
    return lambda: add_claim(stage, "c")


def a_volume_comes(stage: Stage) -> Help:
    stage.add_node()
    stage.registry.create(
        STORAGE_CLASSES,
        {
            "metadata": {"name": "disks"},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    )
    add_claim(stage, "c")
    stage.add_pod("p", **using("c"))
    return lambda: add_volume(stage, "v")


def the_pod_that_has_a_claim_alone_finishes(stage: Stage) -> Help:
    node = stage.add_node()
    add_class(stage, "Immediate")
    add_volume(stage, "v", mode="ReadWriteOncePod")
    add_claim(stage, "c", mode="ReadWriteOncePod")
    stage.add_pod("q", node=node, **using("c"))
    stage.add_pod("p", **using("c"))
    return lambda: finish(stage, "q")


def a_pod_gives_up_its_place_for_volumes(stage: Stage) -> Help:
    node = stage.add_node()
    add_class(stage, "Immediate")
    add_csi_node(stage, node, 1)
    for number in (1, 2):
        add_volume(stage, f"v{number}")
        add_claim(stage, f"c{number}", volume=f"v{number}")
    stage.add_pod("q", node=node, **using("c1"))
    stage.add_pod("p", **using("c2"))
    return lambda: finish(stage, "q")


def a_node_can_attach_more_volumes(stage: Stage) -> Help:
    node = stage.add_node()
    add_class(stage, "Immediate")
    add_csi_node(stage, node, 1)
    for number in (1, 2):
        add_volume(stage, f"v{number}")
        add_claim(stage, f"c{number}", volume=f"v{number}")
    stage.add_pod("q", node=node, **using("c1"))
    stage.add_pod("p", **using("c2"))
    drivers = [{"name": DRIVER, "nodeID": node, "topologyKeys": [], "allocatable": {"count": 2}}]
    return lambda: change(stage, CSI_NODES, node, "spec", drivers=drivers)


def a_storage_capacity_comes(stage: Stage) -> Help:
    stage.add_node()
    stage.registry.create(
        builtin("csidrivers.storage.k8s.io"), {"metadata": {"name": DRIVER}, "spec": {"storageCapacity": True}}
    )
    add_class(stage)
    add_claim(stage, "c")
    stage.add_pod("p", **using("c"))
    capacity = {"metadata": {"name": "all", "namespace": "default"}, "storageClassName": "disks", "capacity": "10Gi"}
    return lambda: stage.registry.create(
        builtin("csistoragecapacities.storage.k8s.io"), {**capacity, "nodeTopology": {}}
    )


HELP = (
    a_node_comes,
    a_node_is_uncordoned,
    a_taint_goes,
    a_node_gets_a_label,
    a_node_grows,
    a_pod_finishes,
    a_pod_is_deleted,
    a_port_becomes_free,
    a_pod_loses_an_unwanted_label,
    a_namespace_gets_a_wanted_label,
    a_domain_can_be_used_again,
    a_domain_goes,
    a_pod_goes_where_there_were_too_many,
    a_storage_class_comes,
    a_claim_comes,
    a_volume_comes,
    the_pod_that_has_a_claim_alone_finishes,
    a_pod_gives_up_its_place_for_volumes,
    a_node_can_attach_more_volumes,
    a_storage_capacity_comes,
)


@pytest.mark.parametrize("situation", HELP, ids=[situation.__name__ for situation in HELP])
def test_who_is_helped_is_bound_soon(situation: Callable[[Stage], Help]) -> None:
    async def story(stage: Stage) -> None:
        daemon = await stage.start()
        helping = situation(stage)
        await stage.until(lambda: "FailedScheduling" in stage.told("p"))
        await asyncio.sleep(30.0)
        assert not stage.node_of("p")
        refused = counter(daemon, "scheduler_schedule_attempts_total", result="unschedulable")
        helping()
        assert await stage.until(lambda: stage.node_of("p"), within=20.0) <= 10.0
        assert counter(daemon, "scheduler_schedule_attempts_total", result="unschedulable") == refused

    play(story)
