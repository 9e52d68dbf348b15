"""A cluster, and daemons that reach it through proxies which do what a case says, in virtual time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Coroutine
from typing import Any, NamedTuple

from kube_pyscheduler.daemon.options import Options
from kube_pyscheduler.devserver.access.users import ADMIN
from kube_pyscheduler.devserver.options import DeleteOptions
from kube_pyscheduler.devserver.registry import Registry
from kube_pyscheduler.devserver.resources import EVENTS, NODES, PODS, PRIORITY_CLASSES
from kube_pyscheduler.devserver.seed import make_node
from tests.faults import virtual_time
from tests.faults.proxy import FAITHFUL, Asked, Fault, Tampered
from tests.faults.virtual_time import VirtualLoop
from tests.faults.world import SCHEDULER, Daemon, World, world

NOW = DeleteOptions(grace_seconds=0)

Which = Callable[[Asked], bool]
Tamper = Callable[[list[bytes]], Tampered]


class Heard(NamedTuple):
    """A request, and the second at which it came."""

    at: float
    asked: Asked


class Wire:
    """The script of a proxy: all goes through, but for what ``suffer`` and ``tamper`` name. ``heard``: the requests."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._faults: list[tuple[Which, deque[Fault] | Fault]] = []
        self._tampers: list[tuple[Which, Tamper]] = []
        self.heard: list[Heard] = []

    def suffer(self, which: Which, *faults: Fault) -> None:
        """The next requests of this kind suffer these, one each."""
        self._faults.append((which, deque(faults)))

    def suffer_always(self, which: Which, fault: Fault) -> None:
        self._faults.append((which, fault))

    def heal(self) -> None:
        """All goes through from now on."""
        self._faults.clear()
        self._tampers.clear()

    def tamper(self, which: Which, how: Tamper) -> None:
        """What watches of this kind bring goes through ``how``."""
        self._tampers.append((which, how))

    def of(self, which: Which) -> list[Heard]:
        """The requests of this kind so far."""
        return [heard for heard in self.heard if which(heard.asked)]

    def request(self, asked: Asked) -> Fault:
        """See Script."""
        self.heard.append(Heard(self._loop.time(), asked))
        for which, faults in self._faults:
            if which(asked):
                if isinstance(faults, Fault):
                    return faults
                if faults:
                    return faults.popleft()
        return FAITHFUL

    def lines(self, asked: Asked, lines: list[bytes]) -> Tampered:
        """See Script."""
        return next((how(lines) for which, how in self._tampers if which(asked)), Tampered(lines))


def is_binding(asked: Asked) -> bool:
    return asked.path.endswith("/binding")


def is_renewal(asked: Asked) -> bool:
    return asked.method == "PUT" and "/leases/" in asked.path


def is_event(asked: Asked) -> bool:
    return asked.method in ("POST", "PATCH") and "/events" in asked.path


def is_status_patch(asked: Asked) -> bool:
    return asked.method == "PATCH" and asked.path.endswith("/status")


def is_pod_deletion(asked: Asked) -> bool:
    return asked.method == "DELETE" and "/pods/" in asked.path


def lists(plural: str) -> Which:
    return lambda asked: asked.method == "GET" and not asked.is_watch and asked.path.endswith(f"/{plural}")


def watches(plural: str) -> Which:
    return lambda asked: asked.is_watch and asked.path.endswith(f"/{plural}")


class Stage:
    """``wire``: between the server and the daemon made last."""

    def __init__(self, world: World, loop: VirtualLoop) -> None:
        self.world = world
        self.loop = loop
        self.registry: Registry = world.server.registry
        self.wire = Wire(loop)

    # Daemons

    def daemon(self, name: str = "daemon", options: Callable[[Options], Options] = lambda options: options) -> Daemon:
        """A daemon that is not running yet, with a wire of its own. ``options`` changes how it is started."""
        self.wire = Wire(self.loop)
        made = _OtherwiseStarted(name, self.world, self.wire, options)
        self.world.daemons.append(made)
        return made

    async def start(self, **more: Any) -> Daemon:
        """A daemon that leads and knows the cluster."""
        made = self.daemon(**more)
        await made.start()
        await self.until(lambda: self.world.leader is made and made.scheduler is not None)
        await asyncio.sleep(1.0)
        return made

    # Objects

    def add_node(self, number: int = 0, *, cpu: str = "4", **spec: Any) -> str:
        node = make_node(number)
        for amounts in (node["status"]["capacity"], node["status"]["allocatable"]):
            amounts.update(cpu=cpu, memory="8Gi")
        node["spec"].update(spec)
        self.registry.create(NODES, node)
        return str(node["metadata"]["name"])

    def add_pod(
        self, name: str, *, cpu: str = "100m", node: str = "", priority: int = 0, **spec: Any
    ) -> dict[str, Any]:
        if priority:
            spec["priorityClassName"] = self._priority_class(priority)
        container = {"name": "c", "image": "app:1", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
        document = {"schedulerName": SCHEDULER, "terminationGracePeriodSeconds": 0, "containers": [container], **spec}
        if node:
            document["nodeName"] = node
        return self.registry.create(PODS, {"metadata": {"name": name, "namespace": "default"}, "spec": document})

    def _priority_class(self, value: int) -> str:
        name = f"priority-{value}"
        if self.world.server.store.get(PRIORITY_CLASSES, "", name) is None:
            self.registry.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
        return name

    def bind(self, name: str, node: str) -> None:
        """Somebody else binds it."""
        self.registry.bind("default", name, {"target": {"kind": "Node", "name": node}})

    def delete_pod(self, name: str) -> None:
        self.registry.delete(PODS, "default", name, NOW)

    def open_gates(self, name: str) -> None:
        pod = self.pod(name)
        self.registry.update(PODS, {**pod, "spec": {**pod["spec"], "schedulingGates": []}})

    def hold(self, name: str) -> None:
        """Let the pod not go when it is deleted."""
        pod = self.pod(name)
        self.registry.update(PODS, {**pod, "metadata": {**pod["metadata"], "finalizers": ["example.com/hold"]}})

    def let_go(self, name: str) -> None:
        pod = self.pod(name)
        self.registry.update(PODS, {**pod, "metadata": {**pod["metadata"], "finalizers": []}})

    def pod(self, name: str) -> dict[str, Any]:
        found = self.world.server.store.get(PODS, "default", name)
        assert found is not None
        return found

    def node_of(self, name: str) -> str:
        return str(self.pod(name)["spec"].get("nodeName", ""))

    def promised(self, name: str) -> str:
        """The node that was promised to the pod, as the server knows it."""
        return str(self.pod(name)["status"].get("nominatedNodeName") or "")

    def told(self, name: str) -> list[str]:
        """The reasons of the Events about an object, oldest first."""
        about = [e for e in self.world.server.store.list_objects(EVENTS) if e["involvedObject"]["name"] == name]
        return [str(event["reason"]) for event in sorted(about, key=lambda event: str(event["eventTime"]))]

    # Time

    async def until(self, condition: Callable[[], object], within: float = 60.0) -> float:
        """Let time pass until it holds; the seconds that took. Fails after ``within`` of them."""
        start = self.loop.time()
        while not condition():
            assert self.loop.time() - start < within
            await asyncio.sleep(0.05)
        return self.loop.time() - start


class _OtherwiseStarted(Daemon):
    def __init__(self, name: str, world: World, wire: Wire, change: Callable[[Options], Options]) -> None:
        super().__init__(name, world, wire)
        self._change = change

    def _options(self) -> Options:
        return self._change(super()._options())


def play(story: Callable[[Stage], Coroutine[Any, Any, None]], *, tokens: Collection[str] = ()) -> None:
    """Play a story on an empty stage. Whatever it checks besides, nobody may write without the lease, bind a pod
    twice, overfill a node, or say that a bound pod cannot be scheduled. ``tokens``: of administrators."""

    async def main(loop: VirtualLoop) -> None:
        async with world(loop, tokens=dict.fromkeys(tokens, ADMIN)) as made:
            await story(Stage(made, loop))
            assert made.violations == []

    virtual_time.run(main, 0)


def counter(daemon: Daemon, name: str, **labels: str) -> float:
    """The value of a metric of a running daemon, 0 where it is not there."""
    assert daemon._daemon is not None
    for family in daemon._daemon._metrics.collect():
        for sample in family.samples:
            if sample.name == name and labels.items() <= sample.labels.items():
                return float(sample.value)
    return 0.0
