"""Public cases about preemption, with the default profile: from watch events to evictions and bindings, with ports in
memory and over a slow wire."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from kube_pyscheduler.config.load import load_profile
from kube_pyscheduler.framework.profile import build_profile
from kube_pyscheduler.objects import kinds
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.plugins import IN_TREE
from kube_pyscheduler.scheduling_queue.queued_pod import Place
from tests.builders import make_pod
from tests.cases.stage import Stage, counter, is_pod_deletion, play, watches
from tests.faults.proxy import Fault, Tampered
from tests.unit.scheduler.world import World

UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}


def pod(name: str, cpu: str, priority: int = 0, *, node: str = "", **more: Any) -> Pod:
    metadata = {"resourceVersion": "1"}
    return make_pod(name, node=node, priority=priority, requests={"cpu": cpu}, metadata=metadata, **more)


class PreemptingWorld(World):
    """The default profile. Evicted pods stay as they are until the watch says otherwise."""

    def __init__(self) -> None:
        super().__init__(build_profile(load_profile({}), IN_TREE))

    def show_eviction(self, name: str) -> Pod:
        """The watch shows that the pod terminates because of preemption."""
        old = next(other for other in self.pods if other.name == name)
        document = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
        }
        status = msgspec.json.decode(msgspec.json.encode({"conditions": [document]}), type=type(old.status))
        meta = msgspec.structs.replace(old.metadata, deletion_timestamp="2026-01-01T00:00:30Z", resource_version="2")
        changed = msgspec.structs.replace(old.status, conditions=status.conditions)
        return self.apply(msgspec.structs.replace(old, metadata=meta, status=changed))

    def promised(self, waiting: Pod) -> str:
        return self.scheduler.queue.nominator.node_of(waiting.uid)


@pytest.fixture
async def world() -> AsyncIterator[PreemptingWorld]:
    made = PreemptingWorld()
    yield made
    await made.scheduler.abort()


async def test_bc_16_the_preemptor_is_bound_once_its_victim_is_gone(world: PreemptingWorld) -> None:
    world.node()
    victim = world.apply(pod("v", "4", node="n1"))
    other = world.apply(pod("other", "0", node="n1"))
    high = world.apply(pod("high", "4", 100))
    await world.settle()
    assert world.evictions.names == ["v"]
    # Something wakes the preemptor after the eviction, and before the watch tells of it; now there is a better victim.
    world.node("n2")
    world.apply(pod("w", "4", -1, node="n2"))
    world.delete(other)
    await world.after(5.0)
    assert world.queued(high).attempts == 2
    assert world.evictions.names == ["v"]
    assert world.promised(high) == "n1"
    world.delete(victim)
    await world.after(10.0)
    assert world.bound == {"high": "n1"}
    assert world.evictions.names == ["v"]


async def test_bc_17_unrelated_deletions_do_not_evict_again(world: PreemptingWorld) -> None:
    world.node()
    world.node("n2")
    for name in ("n1", "n2"):
        for number in range(2):
            world.apply(pod(f"{name}-v{number}", "2", node=name))
    others = [world.apply(pod(f"other{number}", "0", node="n2")) for number in range(50)]
    world.evictions.released.clear()
    high = world.apply(pod("high", "4", 100))
    await world.settle()
    for other in others:
        world.delete(other)
        await world.after(0.1)
    assert world.queued(high).attempts == 1
    world.evictions.released.set()
    await world.settle()
    node = world.promised(high)
    assert sorted(world.evictions.names) == [f"{node}-v0", f"{node}-v1"]


async def test_bc_22_a_useless_promise_is_taken_back(world: PreemptingWorld) -> None:
    world.node()
    p0 = world.apply(pod("p0", "2", node="n1"))
    p1 = world.apply(pod("p1", "3", 50))
    await world.settle()
    assert world.promised(p1) == "n1"
    world.show_eviction("p0")
    world.apply(pod("p2", "1500m", 100))
    p3 = world.apply(pod("p3", "1", 10))
    await world.settle()
    assert world.bound == {"p2": "n1"}
    assert world.queued(p3).place is Place.UNSCHEDULABLE
    world.delete(p0)
    await world.after(10.0)
    await world.after(10.0)
    assert world.promised(p1) == ""
    assert world.bound == {"p2": "n1", "p3": "n1"}


async def test_bc_23_another_node_when_the_promised_one_is_lost(world: PreemptingWorld) -> None:
    world.node("a")
    world.node("b")
    world.apply(pod("low", "4", node="a"))
    world.apply(pod("mid", "4", 50, node="b"))
    high = world.apply(pod("high", "4", 100))
    await world.settle()
    assert world.promised(high) == "a"
    world.show_eviction("low")
    world.node("a", taints=[UNREACHABLE])
    world.node("b", labels={"woken": "yes"}, allocatable={"cpu": "4500m"})
    await world.after(10.0)
    assert world.promised(high) == "b"
    assert world.evictions.names == ["low", "mid"]


async def test_bc_25_a_promise_counts_before_the_watch_knows_of_it(world: PreemptingWorld) -> None:
    world.node()
    victim = world.apply(pod("victim", "4", node="n1"))
    first = world.apply(pod("first", "2", 10))
    await world.settle()
    assert world.promised(first) == "n1"
    assert world.pods.by_key[first.key].status.nominated_node_name == ""
    world.delete(victim)
    world.apply(pod("second", "3", 10))
    await world.after(5.0)
    assert world.bound == {"first": "n1"}


async def test_bc_26_replacements_wait_while_the_node_is_emptied(world: PreemptingWorld) -> None:
    world.node()
    replicas = [world.apply(pod(f"r{number}", "400m", node="n1")) for number in range(10)]
    high = world.apply(pod("high", "4", 100))
    await world.settle()
    for replica in replicas:
        world.show_eviction(replica.name)
    for number, replica in enumerate(replicas):
        assert world.promised(high) == "n1"
        world.delete(replica)
        world.apply(pod(f"s{number}", "400m"))
        await world.after(3.0)
    assert world.bound == {"high": "n1"}
    assert sorted(world.evictions.names) == sorted(replica.name for replica in replicas)


async def test_bc_76_a_claim_for_one_pod_is_taken_over(world: PreemptingWorld) -> None:
    for name in ("n1", "n2"):
        world.node(name)
    claim: dict[str, Any] = {
        "metadata": {"name": "single", "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOncePod"], "volumeName": "disk"},
        "status": {"phase": "Bound"},
    }
    volume: dict[str, Any] = {
        "metadata": {"name": "disk"},
        "spec": {
            "accessModes": ["ReadWriteOncePod"],
            "claimRef": {"namespace": "default", "name": "single"},
            "csi": {"driver": "csi.example.com", "volumeHandle": "disk"},
        },
        "status": {"phase": "Bound"},
    }
    for kind, document in ((kinds.PERSISTENT_VOLUME, volume), (kinds.PERSISTENT_VOLUME_CLAIM, claim)):
        annotations = {"pv.kubernetes.io/bind-completed": "yes"}
        document["metadata"] = {**document["metadata"], "annotations": annotations}
        world.scheduler.handle(kind.name, None, kind.decoder.decode(msgspec.json.encode(document)))
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "single"}}]
    holder = world.apply(pod("a", "1", node="n1", volumes=volumes))
    low = world.apply(pod("b", "1", volumes=volumes))
    high = world.apply(pod("c", "1", 100, volumes=volumes))
    await world.settle()
    assert world.evictions.names == ["a"]
    assert world.promised(high) == "n1"
    world.delete(holder)
    await world.after(10.0)
    assert world.bound == {"c": "n1"}
    world.confirm("c")
    await world.after(10.0)
    assert world.bound == {"c": "n1"}
    assert world.queued(low).place is Place.UNSCHEDULABLE


def test_bc_16_one_deletion_per_victim_although_its_end_is_told_late() -> None:
    async def story(stage: Stage) -> None:
        node = stage.add_node()
        stage.add_pod("v", cpu="4", node=node)
        other = stage.add_node(1)
        stage.add_pod("w", cpu="4", node=other)
        await stage.start()
        stage.wire.tamper(watches("pods"), lambda lines: Tampered(lines, delay=3.0))
        stage.add_pod("high", cpu="4", priority=100)
        await stage.until(lambda: stage.wire.of(is_pod_deletion))
        # Woken before the victim is known to be gone.
        stage.add_node(2, cpu="4", taints=[UNREACHABLE])
        await stage.until(lambda: stage.node_of("high"), within=10.0)
        assert len(stage.wire.of(is_pod_deletion)) == 1

    play(story)


def test_bc_17_one_deletion_per_victim_although_they_take_long() -> None:
    async def story(stage: Stage) -> None:
        node = stage.add_node(cpu="5")
        for name in ("v1", "v2"):
            stage.add_pod(name, cpu="2", node=node)
        for number in range(50):
            stage.add_pod(f"other-{number}", cpu="1m", node=node, priority=1000)
        daemon = await stage.start()
        stage.wire.suffer_always(is_pod_deletion, Fault(delay=3.0))
        stage.add_pod("high", cpu="4", priority=100)
        await stage.until(lambda: stage.wire.of(is_pod_deletion))
        for number in range(50):
            stage.delete_pod(f"other-{number}")
            await asyncio.sleep(0.05)
        assert counter(daemon, "scheduler_schedule_attempts_total", result="unschedulable") == 1
        await stage.until(lambda: stage.node_of("high") == node)
        victims = [heard.asked.path.rpartition("/")[2] for heard in stage.wire.of(is_pod_deletion)]
        assert sorted(victims) == ["v1", "v2"]
        assert counter(daemon, "scheduler_schedule_attempts_total", result="unschedulable") <= 2

    play(story)


def test_nobody_else_is_evicted_for_a_preemptor_that_is_gone() -> None:
    async def story(stage: Stage) -> None:
        node = stage.add_node()
        for name in ("v1", "v2"):
            stage.add_pod(name, cpu="2", node=node)
        daemon = await stage.start()
        stage.wire.suffer_always(is_pod_deletion, Fault(delay=3.0))
        stage.add_pod("high", cpu="4", priority=100)
        await stage.until(lambda: stage.wire.of(is_pod_deletion))
        stage.delete_pod("high")
        await asyncio.sleep(30.0)
        (heard,) = stage.wire.of(is_pod_deletion)
        assert heard.asked.path.endswith("/v1")
        assert {pod["metadata"]["name"] for pod in stage.world.pods()} == {"v2"}
        # And the spared one may be chosen again.
        stage.add_pod("higher", cpu="4", priority=200)
        await stage.until(lambda: stage.node_of("higher") == node)
        assert daemon.scheduler is not None
        assert daemon.scheduler.queue.nominator.nodes() == []

    play(story)


def test_a_preemption_on_the_promised_node_takes_the_promise_of_the_lesser_pod_back() -> None:
    async def story(stage: Stage) -> None:
        node = stage.add_node()
        for name in ("v1", "v2"):
            stage.add_pod(name, cpu="2", node=node)
            stage.hold(name)
        await stage.start()
        stage.add_pod("middle", cpu="2", priority=50)
        await stage.until(lambda: stage.promised("middle") == node)
        stage.add_pod("high", cpu="4", priority=100)
        await stage.until(lambda: stage.promised("high") == node and not stage.promised("middle"))
        for name in ("v1", "v2"):
            stage.let_go(name)
        await stage.until(lambda: stage.node_of("high") == node)
        another = stage.add_node(1)
        await stage.until(lambda: stage.node_of("middle") == another)
        assert len(stage.wire.of(is_pod_deletion)) == 2

    play(story)
