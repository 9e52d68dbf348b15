"""Whatever happens: each pod is in one place, nothing is counted twice, nothing is kept for nobody."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.framework.cluster_event import EVENT_ASSIGNED_POD_DELETE, EventRegistration, QueueingHint
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.scheduling_queue.priority_queue import PriorityQueue
from kube_pyscheduler.scheduling_queue.queued_pod import Place, QueuedPod
from tests.unit.scheduling_queue.builders import (
    NODE_ADD,
    NODE_TAINT,
    POD_DELETE,
    SCHEDULER,
    START,
    Asked,
    Gate,
    changed,
    make_pod,
    make_profile,
    refuse,
    relabelled,
    tolerating,
    with_status,
)

PLUGINS = ["Fit", "Taints", "Affinity", "Removed"]


class World:
    """A queue, what should be in it, and everything that can happen to it."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.now = START
        self.gate = Gate(lambda pod: int(pod.name[1:]) % 5 != self.closed)
        self.closed = 0
        self.profile = make_profile(
            {
                "Fit": [EventRegistration(POD_DELETE, Asked(self.answer), lambda pod: pod.spec.containers[0].name)],
                "Taints": [EventRegistration(NODE_TAINT), EventRegistration(NODE_ADD)],
                "Affinity": [EventRegistration(POD_DELETE, Asked(self.answer))],
            },
            [self.gate],
        )
        self.queue = PriorityQueue({SCHEDULER: self.profile}, Listers())
        self.alive: dict[str, Pod] = {}
        self.flying: dict[str, QueuedPod] = {}
        self.settled: set[str] = set()
        """Pods that were done without coming back: on their way to a node."""
        self.made = 0

    def answer(self, *_args: object) -> QueueingHint:
        return self.rng.choice([QueueingHint.QUEUE, QueueingHint.SKIP, QueueingHint.SKIP])

    def any_pod(self) -> Pod | None:
        return self.rng.choice(list(self.alive.values())) if self.alive else None

    # What can happen

    def come(self) -> None:
        self.made += 1
        gates = ["g"] if self.rng.random() < 0.2 else []
        nominated = self.rng.choice(["", "", "n1", "n2"])
        name = f"p{self.made % 20}"
        if any(pod.name == name for pod in self.alive.values()):
            return
        pod = make_pod(
            name, uid=f"u{self.made}", gates=gates, nominated=nominated, priority=self.rng.randrange(3), cpu="1"
        )
        self.alive[pod.uid] = pod
        self.queue.add(pod, self.now)

    def change(self) -> None:
        pod = self.any_pod()
        if pod is None or pod.uid in self.settled:
            return
        how = self.rng.randrange(6)
        newer = (
            tolerating(pod)
            if how == 0
            else relabelled(pod, a=str(self.made))
            if how == 1
            else changed(pod, scheduling_gates=())
            if how == 2
            else with_status(pod, nominated_node_name=self.rng.choice(["", "n1", "n2"]))
            if how == 3
            else changed(pod, priority=self.rng.randrange(3))
            if how == 4
            else with_status(pod)
        )
        self.alive[pod.uid] = newer
        self.queue.update(pod, newer, self.now)

    def go(self) -> None:
        pod = self.any_pod()
        if pod is not None:
            del self.alive[pod.uid]
            self.settled.discard(pod.uid)
            self.queue.delete(pod, self.now)

    def attempt(self) -> None:
        queued = self.queue.pop(self.now)
        if queued is not None:
            assert queued.uid in self.alive
            assert queued.uid not in self.flying
            self.flying[queued.uid] = queued

    def end_attempt(self) -> None:
        if not self.flying:
            return
        queued = self.flying.pop(self.rng.choice(list(self.flying)))
        pod = self.alive.get(queued.uid)
        if pod is None or self.rng.random() < 0.3:
            self.queue.done(queued.uid)
            if pod is not None:
                self.settled.add(queued.uid)
                self.queue.nominator.drop(queued.uid)
            return
        queued.pod_info = PodInfo(pod)
        refused_by = self.rng.sample(PLUGINS, self.rng.randrange(3))
        refuse(self.queue, queued, *refused_by, pending=refused_by[:1] if self.rng.random() < 0.2 else (), now=self.now)
        self.queue.nominate(queued.pod_info, self.rng.choice([None, "", "n1", "n2"]), self.now)

    def happen(self) -> None:
        event = self.rng.choice([NODE_ADD, NODE_TAINT, EVENT_ASSIGNED_POD_DELETE])
        check = self.rng.choice([None, lambda pod: pod.priority < 2])
        self.queue.move_all(event, make_pod("gone", node="n1"), None, self.now, check)

    def activate(self) -> None:
        pod = self.any_pod()
        if pod is not None:
            self.queue.activate([pod], self.now)

    def pass_time(self) -> None:
        self.now += self.rng.choice([0.3, 1.0, 3.0, 60.0, 400.0])

    def open_gates(self) -> None:
        self.closed = self.rng.randrange(6)

    def reload(self) -> None:
        if self.rng.random() < 0.1:
            self.queue.reload({SCHEDULER: self.profile}, self.now)

    def step(self) -> None:
        self.rng.choice(
            [
                self.come,
                self.come,
                self.change,
                self.go,
                self.attempt,
                self.attempt,
                self.end_attempt,
                self.end_attempt,
                self.happen,
                self.happen,
                self.activate,
                self.pass_time,
                self.open_gates,
                self.reload,
            ]
        )()

    # What must always hold

    def check(self) -> None:
        queue = self.queue
        waiting = queue._places
        places = {
            Place.ACTIVE: {queued.uid for queued in waiting.active},
            Place.BACKOFF: {queued.uid for queued in waiting.backoff._refused},
            Place.ERROR_BACKOFF: {queued.uid for queued in waiting.backoff._failed},
            Place.UNSCHEDULABLE: {queued.uid for queued in waiting.unschedulable},
            Place.IN_FLIGHT: set(queue.in_flight.uids()),
        }
        everywhere = [uid for uids in places.values() for uid in uids]
        assert len(everywhere) == len(set(everywhere))
        assert set(everywhere) - set(self.flying) == set(self.alive) - self.settled - set(self.flying)
        for queued in queue:
            assert queued.uid in places[queued.place]
            assert queued.pod is self.alive[queued.uid]
        assert sum(queue.pending()) == len(list(queue))
        assert queue.pending().gated == sum(queued.gated for queued in queue)
        assert queue.rejections == Counter((queued.profile, plugin) for queued in queue for plugin in queued.rejectors)
        self.check_index()
        if not self.flying:
            assert (len(queue.in_flight), queue.in_flight.event_count) == (0, 0)
        for uid, node in queue.nominator._node_of.items():
            assert uid in self.alive
            assert not node or uid in queue.nominator._by_node[node]
        assert len(queue.nominator) == sum(bool(node) for node in queue.nominator._node_of.values())

    def check_index(self) -> None:
        parked = self.queue._places.unschedulable
        for index, is_gated in ((parked._refused, False), (parked._gated, True)):
            for groups in index.values():
                assert groups
                for group in groups.values():
                    assert group
                    assert all(queued.gated is is_gated and queued in set(parked) for queued in group.values())
        for queued in parked:
            assert queued.gated or queued.rejectors


@pytest.mark.parametrize("seed", range(25))
def test_random_lives(seed: int) -> None:
    world = World(seed)
    for _ in range(400):
        world.step()
        world.check()


@pytest.mark.parametrize("seed", range(5))
def test_in_the_end_nothing_is_left(seed: int) -> None:
    world = World(seed)
    for _ in range(400):
        world.step()
    for pod in list(world.alive.values()):
        world.queue.delete(pod, world.now)
    for uid in list(world.flying):
        world.queue.done(uid)
    assert list(world.queue) == []
    assert (len(world.queue.in_flight), world.queue.in_flight.event_count) == (0, 0)
    assert world.queue.rejections == {}
    assert len(world.queue.nominator) == 0
    assert world.queue.next_wakeup(world.now) is None
