"""Watch events: what changes, and who is woken."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kube_pyscheduler.framework.cluster_event import Action, ClusterEvent, EventRegistration, QueueingHint, Resource
from kube_pyscheduler.objects.group import Namespace, ReplicaSet
from kube_pyscheduler.objects.meta import ObjectMeta
from kube_pyscheduler.objects.node import NodeCondition
from kube_pyscheduler.objects.pod import ContainerStatus, Pod, PodCondition, Resources
from kube_pyscheduler.objects.storage import PersistentVolumeClaim
from kube_pyscheduler.scheduling_queue.queued_pod import Place
from tests.unit.scheduler.conftest import MakeWorld
from tests.unit.scheduler.world import HoldingPermit, SlowPreBind, World, fitting_profile
from tests.unit.scheduling_queue.builders import Asked, changed, make_pod, make_profile, park, relabelled, with_status


class Listening:
    """A world with one parked pod that listens to everything, and what it heard."""

    def __init__(self, make_world: MakeWorld) -> None:
        self.heard: list[tuple[Any, Any]] = []
        everything = [
            EventRegistration(ClusterEvent(resource, Action.ALL), Asked(self._hear))
            for resource in Resource
            if resource is not Resource.WILDCARD
        ]
        self.world = make_world(make_profile({"Curious": everything}))
        self.pod = make_pod("curious")
        self.world.pods.by_key[self.pod.key] = self.pod
        park(self.world.scheduler.queue, self.pod, "Curious")

    def _hear(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        self.heard.append((old, new))
        return QueueingHint.SKIP

    def labels(self) -> list[str]:
        """Labels of the events asked about since the last call."""
        labels = [args[1] for args in self.world.observer.of("hint")]
        self.world.observer.calls.clear()
        return labels


@pytest.fixture
def listening(make_world: MakeWorld) -> Listening:
    return Listening(make_world)


# Pods


async def test_pending_pods_of_ours_are_queued_and_others_are_not(world: World) -> None:
    ours, theirs = world.apply(make_pod("ours")), world.apply(make_pod("theirs", scheduler="default-scheduler"))
    assert ours.uid in world.scheduler.queue
    assert theirs.uid not in world.scheduler.queue
    world.apply(relabelled(theirs, a="b"))
    world.delete(theirs)
    assert theirs.uid not in world.scheduler.queue


async def test_assigned_pods_count_whoever_put_them_there(listening: Listening) -> None:
    world = listening.world
    world.node()
    listening.labels()
    pod = world.apply(make_pod("foreign", node="n1", scheduler="default-scheduler", cpu="3"))
    assert world.used() == 3000
    assert listening.labels() == ["AssignedPodAdd"]
    assert listening.heard[-1] == (None, pod)
    world.delete(pod)
    assert world.used() == 0
    assert listening.labels() == ["AssignedPodDelete"]
    assert listening.heard[-1] == (pod, None)


async def test_updates_of_assigned_pods_are_told_by_what_changed(listening: Listening) -> None:
    world = listening.world
    pod = world.apply(make_pod("q", node="n1", cpu="3"))
    listening.labels()
    newer = world.apply(relabelled(pod, a="b"))
    assert listening.labels() == ["AssignedPodUpdatePodLabel"]
    assert listening.heard[-1] == (pod, newer)
    shrunk = with_status(
        changed(newer, containers=make_pod(cpu="1").spec.containers),
        container_statuses=(ContainerStatus(name="c", resources=Resources(requests={"cpu": "3"})),),
    )
    world.apply(shrunk)
    assert world.used() == 3000
    world.apply(
        with_status(shrunk, container_statuses=(ContainerStatus(name="c", resources=Resources(requests={"cpu": "1"})),))
    )
    assert world.used() == 1000
    assert "AssignedPodUpdatePodScaleDown" in listening.labels()
    world.apply(with_status(shrunk, conditions=(PodCondition(type="Ready", status="True"),)))
    assert "AssignedPodUpdate" in [args[0] for args in world.observer.of("event_handled")]


async def test_finished_pods_free_their_node(listening: Listening) -> None:
    world = listening.world
    for phase in ("Succeeded", "Failed"):
        pod = world.apply(make_pod(phase.lower(), node="n1"))
        listening.labels()
        done = world.apply(with_status(pod, phase=phase))
        assert world.used() == 0
        assert listening.labels() == ["AssignedPodDelete"]
        world.apply(relabelled(done, a="b"))
        world.delete(done)
        assert (world.used(), listening.labels()) == (0, [])


async def test_terminating_pods_keep_their_node(world: World) -> None:
    world.node()
    world.apply(make_pod("q", node="n1"))
    world.apply(make_pod("q", node="n1", version="2", deletion="2026-01-01T00:00:00Z"))
    assert world.used() == 100


async def test_a_pod_that_turns_bound_leaves_the_queue(world: World) -> None:
    pod = world.apply(make_pod(cpu="9"))
    world.node()
    await world.settle()
    world.apply(changed(pod, node_name="n1"))
    assert world.is_idle()
    assert world.used() == 9000


async def test_an_update_that_is_another_pod_is_a_deletion_and_an_addition(world: World) -> None:
    world.apply(make_pod(uid="a", node="n1", cpu="1"))
    world.apply(make_pod(uid="b", node="n2", cpu="2", version="2"))
    assert (world.used("n1"), world.used("n2")) == (0, 2000)
    world.apply(make_pod("w", uid="c"))
    world.apply(make_pod("w", uid="d", version="2"))
    assert [queued.uid for queued in world.scheduler.queue] == ["d"]


async def test_the_same_version_again_changes_nothing(listening: Listening) -> None:
    listening.world.apply(listening.pod)
    assert listening.labels() == []


async def test_updates_of_assumed_pods_do_not_bring_them_back(world: World) -> None:
    world.binder.hold()
    world.node()
    pod = world.apply(make_pod())
    await world.settle()
    world.apply(relabelled(pod, a="b"))
    world.scheduler.handle("Pod", None, pod)
    assert world.scheduler.queue.pending().active == 0
    world.binder.release()
    await world.settle()


@pytest.mark.parametrize("how", ["deleted", "deleting"])
async def test_a_held_pod_that_goes_frees_its_node_at_once(make_world: MakeWorld, how: str) -> None:
    world = make_world(fitting_profile(permit=[HoldingPermit(free=["w"])]))
    world.node()
    pod = world.apply(make_pod("p", cpu="3"))
    await world.settle()
    world.apply(make_pod("w", cpu="2"))
    await world.settle()
    if how == "deleted":
        world.delete(pod)
    else:
        world.apply(make_pod("p", cpu="3", version="2", deletion="2026-01-01T00:00:00Z"))
    assert world.used() == 0
    await world.settle()
    assert world.bound == {"w": "n1"}
    assert pod.uid not in world.scheduler.queue
    assert "p" not in dict(world.events.of("FailedScheduling"))
    assert len(world.scheduler.waiting) == 0


async def test_a_pod_in_pre_bind_that_goes_is_cancelled(make_world: MakeWorld) -> None:
    async def work(handle: Any) -> None:
        await handle.until("PersistentVolumeClaim", "default/c", lambda claim: True, 600.0)

    world = make_world(fitting_profile(pre_bind=(SlowPreBind(work),)))
    world.node()
    pod = world.apply(make_pod())
    await world.settle()
    world.delete(pod)
    await world.settle()
    assert (world.bound, world.used(), len(world.scheduler.bindings)) == ({}, 0, 0)
    assert world.is_idle()


async def test_a_pod_in_bind_that_goes_frees_its_node_before_the_answer(world: World) -> None:
    world.binder.hold()
    world.node()
    pod = world.apply(make_pod())
    await world.settle()
    world.delete(pod)
    assert world.used() == 0
    world.binder.release()
    await world.settle()
    assert (world.used(), world.is_idle()) == (0, True)


async def test_a_held_pod_that_somebody_else_binds_is_theirs(make_world: MakeWorld) -> None:
    world = make_world(fitting_profile(permit=[HoldingPermit(free=["w"])]))
    world.node("n1")
    pod = world.apply(make_pod("p", cpu="3"))
    await world.settle()
    waiter = world.apply(make_pod("w", cpu="2"))
    await world.settle()
    assert world.queued(waiter).place is Place.UNSCHEDULABLE
    world.node("n2", unschedulable=True)
    world.apply(changed(pod, node_name="n2"))
    await world.settle()
    assert world.bound == {"w": "n1"}
    assert (world.used("n1"), world.used("n2")) == (2000, 3000)
    assert world.observer.of("conflict") == [("bound_elsewhere",)]
    assert pod.uid not in world.scheduler.queue
    assert "p" not in dict(world.events.of("FailedScheduling"))


async def test_a_foreign_pod_that_overfills_a_node_we_bind_to_is_counted(world: World) -> None:
    world.binder.hold()
    world.node()
    world.apply(make_pod("small", node="n1", scheduler="other", cpu="1"))
    world.apply(make_pod("p", cpu="2"))
    await world.settle()
    world.apply(make_pod("fits", node="n1", scheduler="other", cpu="1"))
    assert world.observer.of("conflict") == []
    world.apply(make_pod("collides", node="n1", scheduler="other", cpu="1"))
    assert world.observer.of("conflict") == [("over_allocatable",)]
    world.binder.release()
    await world.settle()
    # Its Binding was sent before: it stands.
    assert world.events.of("Scheduled")[0][0] == "p"


async def test_pods_whose_binding_was_not_sent_give_way_to_a_foreign_pod(make_world: MakeWorld) -> None:
    """Case 49: what somebody else bound meanwhile is seen at the last moment before our Binding."""
    world = make_world(fitting_profile(permit=[HoldingPermit()]))
    world.node("n1")
    pods = [world.apply(make_pod(name, cpu="2")) for name in ("a", "b")]
    await world.settle()
    assert world.used("n1") == 4000
    world.apply(make_pod("foreign", node="n1", scheduler="other", cpu="1"))
    world.node("n2")
    for held in world.scheduler.waiting.all():
        held.allow("Hold")
    await world.settle()
    assert world.bound == {"b": "n1"}
    assert world.used("n1") == 3000
    assert world.events.of("FailedScheduling") == [("a", "node n1 was filled by others before the pod could be bound")]
    assert world.queued(pods[0]).place is Place.ERROR_BACKOFF


# Nodes


async def test_nodes_come_change_and_go(listening: Listening) -> None:
    world = listening.world
    node = world.node()
    assert listening.labels() == ["NodeAdd"]
    world.node(labels={"zone": "a"}, allocatable={"cpu": "8"})
    assert listening.labels() == ["NodeUpdateNodeAllocatable", "NodeUpdateNodeLabel"]
    conditions = (NodeCondition(type="Ready", status="True"),)
    ready = msgspec.structs.replace(
        world.nodes["n1"], status=msgspec.structs.replace(world.nodes["n1"].status, conditions=conditions)
    )
    world.scheduler.handle("Node", world.nodes["n1"], ready)
    assert listening.labels() == ["NodeUpdateNodeCondition"]
    world.scheduler.handle("Node", ready, ready)
    assert listening.labels() == []
    world.scheduler.handle("Node", node, None)
    assert listening.labels() == ["NodeDelete"]
    assert world.scheduler.cache.table.node_count == 0


# The rest


async def test_other_kinds_go_to_their_listers_first(listening: Listening) -> None:
    """Case 40 from the side of the store: whoever is asked already sees what happened."""
    world = listening.world
    lister = world.scheduler.cache.listers.persistent_volume_claims
    claim = PersistentVolumeClaim(metadata=ObjectMeta(name="c", namespace="default", resource_version="1"))
    world.scheduler.handle("PersistentVolumeClaim", None, claim)
    assert lister.get("default/c") is claim
    meta = msgspec.structs.replace(claim.metadata, annotations={"a": "b"}, resource_version="2")
    newer = msgspec.structs.replace(claim, metadata=meta)
    world.scheduler.handle("PersistentVolumeClaim", claim, newer)
    assert lister.get("default/c") is newer
    world.scheduler.handle("PersistentVolumeClaim", newer, None)
    assert lister.get("default/c") is None
    assert listening.labels() == [
        "PersistentVolumeClaimAdd",
        "PersistentVolumeClaimUpdate",
        "PersistentVolumeClaimDelete",
    ]


async def test_a_new_version_of_the_same_wakes_nobody(listening: Listening) -> None:
    old, new = (Namespace(metadata=ObjectMeta(name="x", resource_version=version)) for version in "12")
    listening.world.scheduler.handle("Namespace", None, old)
    listening.labels()
    listening.world.scheduler.handle("Namespace", old, new)
    assert listening.labels() == []
    assert listening.world.scheduler.cache.listers.namespaces.get("x") is new


async def test_kinds_that_only_plugins_read_wake_nobody(listening: Listening) -> None:
    owner = ReplicaSet(metadata=ObjectMeta(name="s", namespace="default"))
    listening.world.scheduler.handle("ReplicaSet", None, owner)
    assert listening.labels() == []
    assert listening.world.scheduler.cache.listers.replica_sets.get("default/s") is owner


async def test_every_kind_that_is_wanted_is_handled(world: World) -> None:
    for kind in world.scheduler.kinds:
        if kind not in ("Pod", "Node"):
            thing = Namespace(metadata=ObjectMeta(name="x", namespace="default"))
            world.scheduler.handle(kind, None, thing)
            world.scheduler.handle(kind, thing, None)
