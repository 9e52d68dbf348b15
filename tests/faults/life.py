"""What happens in a cluster while its scheduler is at work: people, controllers, machines and another scheduler."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

from kube_pyscheduler.devserver.errors import StatusError
from kube_pyscheduler.devserver.options import DeleteOptions
from kube_pyscheduler.devserver.registry import Registry
from kube_pyscheduler.devserver.resources import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    PRIORITY_CLASSES,
    STORAGE_CLASSES,
)
from kube_pyscheduler.devserver.seed import make_node
from kube_pyscheduler.devserver.store import Object, copy_object
from kube_pyscheduler.scheduler.scheduler import Scheduler
from tests.faults.ledger import LONGEST_HOLD, PAPER
from tests.faults.pods import APPS, PRIORITIES, TAINT, random_pod, slow_pod
from tests.faults.world import Daemon, World, allocatable, milli_cpu

HOUR = 3600.0
NODE_CPU = 4000
LEADERLESS = 60.0
"""Seconds after which somebody leads again and knows the cluster."""
VISITS = 5
"""Nodes that are being given to the other scheduler, at most."""


class Life:
    """``step`` lets something happen. ``pods``: about so many are alive at a time."""

    def __init__(self, world: World, rng: random.Random, *, nodes: int, pods: int, daemons: list[Daemon]) -> None:
        self.world = world
        self.rng = rng
        self._begun: list[asyncio.Task[None]] = []
        self._registry: Registry = world.server.registry
        self._pods = pods
        self._daemons = daemons
        self._made = 0
        self._visited: set[str] = set()
        for name, value in PRIORITIES.items():
            self._registry.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
        late = {"provisioner": "example.com/disk", "volumeBindingMode": "WaitForFirstConsumer"}
        self._registry.create(STORAGE_CLASSES, {"metadata": {"name": "late"}, **late})
        self._registry.create(STORAGE_CLASSES, {"metadata": {"name": PAPER, "labels": {PAPER: "0"}}, **late})
        for number in range(nodes):
            self._make_node(number)
        self.names = [str(node["metadata"]["name"]) for node in world.nodes()]
        self._gone: list[int] = []
        self._actions: list[tuple[int, Callable[[], None]]] = [
            (30, self.pod_comes_or_goes),
            (4, self.pod_is_replaced),
            (3, self.pod_finishes),
            (3, self.gate_opens),
            (3, self.pod_is_relabelled),
            (2, self.toleration_is_added),
            (4, self.node_reports),
            (3, self.node_is_cordoned_or_not),
            (3, self.node_is_tainted_or_not),
            (1, self.node_goes_or_comes),
            (2, self.others_bind),
            (2, self.paper_comes),
            (1, self.history_is_forgotten),
            (1, self.clock_jumps),
            (1, self.network_fails),
        ]

    def step(self) -> None:
        """Something happens."""
        weights = [weight for weight, _action in self._actions]
        action = self.rng.choices(self._actions, weights)[0][1]
        self.world.log(f"life {action.__name__}")
        try:
            action()
        except StatusError as refused:
            # As with everybody who asks for what is not possible just now.
            self.world.log(f"refused: {refused}")

    async def end(self) -> None:
        """Everything that had been begun is done, what stands in the way of pods is taken away, and the last thing that
        some of them need comes while they are being tried."""
        await asyncio.gather(*self._begun)
        for number in tuple(self._gone):
            self._node_comes(number)
        for node in self.world.nodes():
            spec = node["spec"]
            if spec.get("unschedulable") or TAINT in spec.get("taints", ()):
                self._change_node(node, unschedulable=False, taints=[t for t in spec.get("taints", ()) if t != TAINT])
        await asyncio.sleep(LEADERLESS)
        for number in range(20):
            self._registry.create(PODS, slow_pod(f"last-{number}"))
        await asyncio.sleep(0.1 * LONGEST_HOLD)
        self.paper_comes()

    def _begin(self, story: Coroutine[Any, Any, None]) -> None:
        self._begun.append(asyncio.create_task(story))

    # Pods

    def pod_comes_or_goes(self) -> None:
        alive = self._registry.store.count(PODS)
        if self.rng.random() < (0.9 if alive < self._pods else 0.4):
            self.make_pod()
        else:
            self._delete(self._any_pod())

    def make_pod(self, name: str = "") -> None:
        self._made += 1
        name = name or f"pod-{self._made}"
        pod = random_pod(self.rng, name)
        for volume in pod["spec"].get("volumes", ()):
            self._make_claim(volume["persistentVolumeClaim"]["claimName"])
        self._registry.create(PODS, pod)

    def pod_is_replaced(self) -> None:
        """Deleted, and at once there is another one of its name."""
        pod = self._any_pod()
        name = pod["metadata"]["name"]
        self._registry.delete(PODS, "default", name, DeleteOptions(grace_seconds=0))
        if self._registry.store.get(PODS, "default", name) is None:
            self.make_pod(name)

    def pod_finishes(self) -> None:
        pod = self._any_pod(lambda pod: bool(pod["spec"].get("nodeName")))
        phase = self.rng.choice(("Succeeded", "Failed"))
        self._registry.update(PODS, {**pod, "status": {**pod["status"], "phase": phase}}, subresource="status")

    def gate_opens(self) -> None:
        pod = self._any_pod(lambda pod: bool(pod["spec"].get("schedulingGates")))
        self._registry.update(PODS, {**pod, "spec": {**pod["spec"], "schedulingGates": []}})

    def pod_is_relabelled(self) -> None:
        pod = self._any_pod()
        labels = {**pod["metadata"].get("labels", {}), "app": self.rng.choice(APPS)}
        self._registry.update(PODS, {**pod, "metadata": {**pod["metadata"], "labels": labels}})

    def toleration_is_added(self) -> None:
        pod = self._any_pod(lambda pod: not pod["spec"].get("nodeName"))
        tolerations = [*pod["spec"].get("tolerations", ()), {"key": TAINT["key"], "operator": "Exists"}]
        self._registry.update(PODS, {**pod, "spec": {**pod["spec"], "tolerations": tolerations}})

    def _make_claim(self, name: str) -> None:
        if self._registry.store.get(PERSISTENT_VOLUME_CLAIMS, "default", name) is None:
            spec = {"storageClassName": "late", "accessModes": ["ReadWriteOnce"]}
            spec["resources"] = {"requests": {"storage": "1Gi"}}  # type: ignore[assignment]
            self._registry.create(
                PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": name, "namespace": "default"}, "spec": spec}
            )

    def _any_pod(self, which: Callable[[Object], bool] = lambda _pod: True) -> Object:
        pods = [pod for pod in self.world.pods() if not pod["metadata"].get("deletionTimestamp") and which(pod)]
        if not pods:
            raise StatusError(404, "NotFound", "no such pod")
        return copy_object(self.rng.choice(pods))

    def _delete(self, pod: Object) -> None:
        self._registry.delete(PODS, "default", pod["metadata"]["name"], DeleteOptions())

    def paper_comes(self) -> None:
        """What the ledger needs for pods that it refused."""
        paper = self._registry.store.get(STORAGE_CLASSES, "", PAPER)
        assert paper is not None
        labels = {PAPER: str(self.paper + 1)}
        self._registry.update(STORAGE_CLASSES, {**paper, "metadata": {**paper["metadata"], "labels": labels}})

    @property
    def paper(self) -> int:
        """Its version."""
        paper = self._registry.store.get(STORAGE_CLASSES, "", PAPER)
        assert paper is not None
        return int(paper["metadata"]["labels"][PAPER])

    # Nodes

    def node_reports(self) -> None:
        """A heartbeat: only a time changes."""
        node = self._any_node()
        status = copy_object(node["status"])
        status["conditions"][0]["lastHeartbeatTime"] = self._registry.now()
        self._registry.update(NODES, {**node, "status": status}, subresource="status")

    def node_is_cordoned_or_not(self) -> None:
        node = self._any_node()
        self._change_node(node, unschedulable=self.rng.random() < 0.3)

    def node_is_tainted_or_not(self) -> None:
        node = self._any_node()
        others = [taint for taint in node["spec"].get("taints", ()) if taint != TAINT]
        self._change_node(node, taints=[*others, TAINT] if self.rng.random() < 0.3 else others)

    def node_goes_or_comes(self) -> None:
        if self._gone and self.rng.random() < 0.6:
            self._node_comes(self.rng.choice(self._gone))
        elif len(self._gone) < 5 and (node := self._any_node())["metadata"]["name"] not in self._visited:
            self._registry.delete(NODES, "", node["metadata"]["name"])
            self._gone.append(int(node["metadata"]["name"].rpartition("-")[2]))

    def _node_comes(self, number: int) -> None:
        self._gone.remove(number)
        self._make_node(number)

    def _make_node(self, number: int) -> None:
        node = make_node(number)
        for amounts in (node["status"]["capacity"], node["status"]["allocatable"]):
            amounts.update(cpu=f"{NODE_CPU}m", memory="16Gi", pods="20")
        self._registry.create(NODES, node)

    def _change_node(self, node: Object, **spec: Any) -> None:
        current = self._registry.store.get(NODES, "", node["metadata"]["name"])
        if current is not None and node["metadata"]["name"] not in self._visited:
            self._registry.update(NODES, {**current, "spec": {**current["spec"], **spec}})

    def _any_node(self) -> Object:
        return self.rng.choice(self.world.nodes())

    # Another scheduler

    def others_bind(self) -> None:
        node = str(self._any_node()["metadata"]["name"])
        if node not in self._visited and len(self._visited) < VISITS:
            self._begin(self._visit(node))

    async def _visit(self, name: str) -> None:
        """Take a node away from our scheduler, fill it, give it back: so that even two schedulers, which know nothing
        of each other, overfill no node."""
        node = self._registry.store.get(NODES, "", name)
        assert node is not None
        self._change_node(node, unschedulable=True)
        self._visited.add(name)
        # Visited nodes do not go, so whoever does not know this one has yet to list it.
        await self._until(lambda scheduler: _is_cordoned(scheduler, name) and not scheduler.bindings.is_target(name))
        await self._until(lambda scheduler: self._knows_pods(scheduler, name))
        for pod in [pod for pod in self.world.pods() if _waits(pod)][:3]:
            node = self._registry.store.get(NODES, "", name)
            if node is not None and self.world.used(name) + milli_cpu(pod) <= allocatable(node):
                self.world.log(f"foreign binding of {pod['metadata']['name']}")
                self._registry.bind("default", pod["metadata"]["name"], {"target": {"kind": "Node", "name": name}})
        await self._until(lambda scheduler: self._knows_pods(scheduler, name))
        self._visited.remove(name)
        node = self._registry.store.get(NODES, "", name)
        if node is not None:
            self._change_node(node, unschedulable=False)

    async def _until(self, condition: Callable[[Scheduler], bool]) -> None:
        """Until it holds for all schedulers that are alive."""
        while True:
            alive = [daemon.scheduler for daemon in self._daemons if not daemon.has_ended]
            if all(scheduler is not None and condition(scheduler) for scheduler in alive):
                return
            await asyncio.sleep(0.5)

    def _knows_pods(self, scheduler: Scheduler, name: str) -> bool:
        found = (scheduler.cache.pod(uid) for uid in self.world.placed[name])
        return all(entry is not None and entry.node == name for entry in found)

    # Everything else

    def history_is_forgotten(self) -> None:
        self._registry.store.compact()

    def clock_jumps(self) -> None:
        self.world.loop.wall_offset = self.rng.choice((-HOUR, -30.0, 0.0, 30.0, HOUR))

    def network_fails(self) -> None:
        """Connections break; sometimes nobody gets through for a while."""
        daemon = self.rng.choice(self._daemons)
        self._begin(self._outage(daemon, self.rng.choice((0.0, 0.0, 2.0, 12.0))))

    async def _outage(self, daemon: Daemon, seconds: float) -> None:
        if not seconds:
            await daemon.proxy.reset()
            return
        await daemon.proxy.down()
        await asyncio.sleep(seconds)
        await daemon.proxy.up()


def _waits(pod: Object) -> bool:
    spec = pod["spec"]
    return not (spec.get("nodeName") or spec.get("schedulingGates") or spec.get("volumes")) and not pod["metadata"].get(
        "deletionTimestamp"
    )


def _is_cordoned(scheduler: Scheduler, name: str) -> bool:
    table = scheduler.cache.table
    row = table.row_of.get(name)
    return row is not None and bool(table.alive[row] and table.unschedulable[row])
