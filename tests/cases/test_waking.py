"""Public cases about what wakes waiting pods: the daemon with the default profile, and an API server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kube_pyscheduler.devserver.resources import PERSISTENT_VOLUME_CLAIMS, PODS, STORAGE_CLASSES
from kube_pyscheduler.scheduling_queue.queued_pod import QueuedPod
from tests.cases.stage import Stage, is_binding, is_status_patch, play
from tests.faults.world import Daemon

HOST = "kubernetes.io/hostname"


def waiting(daemon: Daemon, name: str) -> QueuedPod:
    assert daemon.scheduler is not None
    (found,) = [queued for queued in daemon.scheduler.queue if queued.pod.name == name]
    return found


def relabel(stage: Stage, name: str, **labels: str) -> None:
    pod = stage.pod(name)
    stage.registry.update(PODS, {**pod, "metadata": {**pod["metadata"], "labels": labels}})


def near(app: str) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": HOST}


async def refused(stage: Stage, name: str) -> None:
    await stage.until(lambda: "FailedScheduling" in stage.told(name))
    await asyncio.sleep(1.0)


def test_bc_35_a_pod_that_becomes_what_is_wanted_wakes_who_waits_for_it() -> None:
    async def story(stage: Stage) -> None:
        node = stage.add_node()
        for name in ("q", "stranger"):
            stage.add_pod(name, node=node)
        relabel(stage, "q", app="tmp")
        daemon = await stage.start()
        wanted = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near("db")]}}
        stage.add_pod("p", affinity=wanted)
        await refused(stage, "p")
        relabel(stage, "stranger", app="other")
        await asyncio.sleep(10.0)
        assert waiting(daemon, "p").attempts == 1
        relabel(stage, "q", app="db")
        assert await stage.until(lambda: stage.node_of("p") == node) <= 10.0

    play(story)


def test_bc_35_the_end_of_a_pod_that_did_not_want_the_waiting_one_wakes_it() -> None:
    async def story(stage: Stage) -> None:
        node = stage.add_node()
        unwanted = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near("web")]}}
        stage.add_pod("r", node=node, affinity=unwanted)
        stage.add_pod("stranger", node=node)
        daemon = await stage.start()
        stage.add_pod("p", schedulingGates=[{"name": "example.com/labels"}])
        relabel(stage, "p", app="web")
        stage.open_gates("p")
        await refused(stage, "p")
        stage.delete_pod("stranger")
        await asyncio.sleep(10.0)
        assert waiting(daemon, "p").attempts == 1
        stage.delete_pod("r")
        assert await stage.until(lambda: stage.node_of("p") == node) <= 10.0

    play(story)


def test_bc_40_who_is_woken_by_a_claim_reads_that_claim() -> None:
    async def story(stage: Stage) -> None:
        stage.add_node()
        await stage.start()
        stage.registry.create(
            STORAGE_CLASSES,
            {"metadata": {"name": "late"}, "provisioner": "x", "volumeBindingMode": "WaitForFirstConsumer"},
        )
        stage.add_pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])
        await refused(stage, "p")
        spec = {"storageClassName": "late", "accessModes": ["ReadWriteOnce"]}
        spec |= {"resources": {"requests": {"storage": "1Gi"}}}
        stage.registry.create(
            PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": "c", "namespace": "default"}, "spec": spec}
        )
        await stage.until(lambda: stage.node_of("p"), within=10.0)
        assert stage.told("p") == ["FailedScheduling", "Scheduled"]

    play(story)


def test_bc_47_a_gated_pod_is_left_alone_until_its_gates_are_gone() -> None:
    async def story(stage: Stage) -> None:
        node = stage.add_node()
        for number in range(50):
            stage.add_pod(f"other-{number}", cpu="10m", node=node)
        await stage.start()
        stage.add_pod("p", schedulingGates=[{"name": "example.com/hold"}])
        for number in range(50):
            stage.delete_pod(f"other-{number}")
            await asyncio.sleep(0.1)
        (condition,) = [c for c in stage.pod("p")["status"]["conditions"] if c["type"] == "PodScheduled"]
        assert condition["reason"] == "SchedulingGated"
        assert stage.told("p") == []
        assert not stage.wire.of(lambda asked: is_binding(asked) or is_status_patch(asked))
        stage.open_gates("p")
        assert await stage.until(lambda: stage.node_of("p")) < 1.0

    play(story)


@pytest.mark.parametrize(
    ("spec", "wakes"),
    [
        ({}, False),
        ({"tolerations": [{"key": "a", "operator": "Exists"}]}, True),
    ],
)
def test_bc_83_only_what_matters_in_an_update_of_a_waiting_pod_wakes_it(spec: dict[str, Any], wakes: bool) -> None:
    async def story(stage: Stage) -> None:
        stage.add_node(taints=[{"key": "a", "effect": "NoSchedule"}])
        daemon = await stage.start()
        stage.add_pod("p")
        await refused(stage, "p")
        assert stage.wire.of(is_status_patch)
        assert waiting(daemon, "p").pod.status.conditions
        pod = stage.pod("p")
        annotated = {**pod["metadata"], "annotations": {"touched": "yes"}}
        stage.registry.update(PODS, {**pod, "metadata": annotated, "spec": {**pod["spec"], **spec}})
        await asyncio.sleep(30.0)
        if wakes:
            assert stage.node_of("p")
        else:
            assert waiting(daemon, "p").attempts == 1

    play(story)
