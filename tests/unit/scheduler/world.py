"""A scheduler over ports in memory, with real plugins, a fake clock, and watch events on request."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import msgspec

from kube_pyscheduler.framework.cluster_event import Action, ClusterEvent, EventRegistration, Resource
from kube_pyscheduler.framework.cycle_state import CycleState
from kube_pyscheduler.framework.handle import BindingHandle
from kube_pyscheduler.framework.interfaces import CycleContext, Permit, Plugin, PreBind, Reserve
from kube_pyscheduler.framework.profile import Profile
from kube_pyscheduler.framework.status import Code, Status
from kube_pyscheduler.kit.clock import FakeClock
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.plugins.node_resources.fit import NodeResourcesFit
from kube_pyscheduler.plugins.node_unschedulable import NodeUnschedulable
from kube_pyscheduler.scheduler.ports import BindOutcome, BindResult, Listing, Version
from kube_pyscheduler.scheduler.scheduler import Ports, Scheduler
from kube_pyscheduler.scheduling_queue.queued_pod import QueuedPod
from tests.builders import make_node
from tests.unit.scheduling_queue.builders import SCHEDULER, START, make_profile


def fitting_profile(**points: Any) -> Profile:
    """NodeUnschedulable and NodeResourcesFit, and what the test adds."""
    plugins: list[Any] = [NodeUnschedulable(), NodeResourcesFit()]
    plugins.extend(plugin for name in ("reserve", "permit", "filter", "post_filter") for plugin in points.get(name, ()))
    given = dict(points)
    given["filter"] = (*plugins[:2], *points.get("filter", ()))
    given["score"] = ((plugins[1], 1),)
    return make_profile({plugin.name: tuple(plugin.events()) for plugin in plugins}, **given)


class Pods:
    """The store of the pod informer."""

    def __init__(self) -> None:
        self.by_key: dict[str, Pod] = {}

    def get(self, key: str) -> Pod | None:
        return self.by_key.get(key)

    def __iter__(self) -> Iterator[Pod]:
        return iter(self.by_key.values())


class ScriptedBinder:
    """Answers BOUND unless told otherwise; with ``hold`` it answers only when ``release`` is called."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []
        self.answers: dict[str, BindResult] = {}
        self.is_free: Callable[[], bool] = lambda: True
        self.most = 0
        self.called = asyncio.Event()
        self._running = 0
        self._released = asyncio.Event()
        self._released.set()

    def hold(self) -> None:
        self._released.clear()

    def release(self) -> None:
        self._released.set()

    async def bind(self, pod: Pod, node: str, is_free: Callable[[], bool]) -> BindResult:
        self.sent.append((pod.name, node))
        self.is_free = is_free
        self.called.set()
        self._running += 1
        self.most = max(self.most, self._running)
        try:
            await self._released.wait()
        finally:
            self._running -= 1
        return self.answers.get(pod.name, BindResult(BindOutcome.BOUND))


class Recorder:
    """Observer that remembers every call."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("_"):
            raise AttributeError(name)

        def remember(*args: Any) -> None:
            self.calls.append((name, args))

        return remember

    def of(self, name: str) -> list[tuple[Any, ...]]:
        return [args for called, args in self.calls if called == name]

    def attempts(self) -> list[str]:
        """The results of attempts, in order."""
        return [args[1] for args in self.of("attempt")]


class Evictions:
    """The evictor: notes whom it was to evict, fails for those in ``broken``, and waits while held."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.messages: list[str] = []
        self.broken: set[str] = set()
        self.released = asyncio.Event()
        self.released.set()

    async def evict(self, victim: Pod, message: str) -> None:
        self.names.append(victim.name)
        self.messages.append(message)
        await self.released.wait()
        if victim.name in self.broken:
            raise OSError("no connection")


class Events:
    """Events that were told, as (type, reason, pod, note)."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, str, str]] = []

    def event(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None:
        self.told.append((type_, reason, pod.name, note))

    def of(self, reason: str) -> list[tuple[str, str]]:
        """(pod, note) of the events with this reason."""
        return [(pod, note) for _type, told, pod, note in self.told if told == reason]


class Objects:
    """The object port: waits until it is told that the condition holds."""

    def __init__(self) -> None:
        self.patches: list[tuple[str, str, dict[str, Any]]] = []
        self.made: list[dict[str, Any]] = []
        self.deleted: list[str] = []
        self.holds = asyncio.Event()

    async def read(self, kind: str, namespace: str, name: str) -> None:
        return None

    async def create(self, kind: str, namespace: str, body: dict[str, Any]) -> None:
        self.made.append(body)

    async def patch(
        self,
        kind: str,
        namespace: str,
        name: str,
        patch: dict[str, Any],
        *,
        status: bool = False,
        strategic: bool = False,
    ) -> None:
        self.patches.append((kind, f"{namespace}/{name}", patch))

    async def delete(self, kind: str, namespace: str, name: str, uid: str) -> None:
        self.deleted.append(f"{namespace}/{name}")

    async def until(self, kind: str, key: str, predicate: Callable[[Any], bool], timeout: float) -> bool:
        await self.holds.wait()
        return True


class Server:
    """The reader: what the API server has, whatever the watch said."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.broken = False

    async def read(self, pod: Pod) -> Pod | None:
        if self.broken:
            raise OSError("no connection")
        return self.pods.get(pod.key)


class Truth:
    """What there is at the API server: what the watch told, unless a test says otherwise."""

    def __init__(self, pods: Pods, nodes: dict[str, Node]) -> None:
        self._told: dict[str, Any] = {"Pod": pods, "Node": Nodes(nodes)}
        self.missed: dict[str, dict[str, Version]] = {"Pod": {}, "Node": {}}
        """Objects of which the watch did not tell."""
        self.gone: set[str] = set()
        """Objects of whose end it did not tell."""
        self.relisted: list[str] = []
        self.on_relist: Callable[[], object] = lambda: None

    def told(self, kind: str) -> Any:
        return self._told[kind]

    async def list(self, kind: str) -> Listing:
        told = {
            obj.key: Version(obj.metadata.uid, obj.metadata.resource_version)
            for obj in self._told[kind]
            if obj.key not in self.gone
        }
        return Listing("1000", told | self.missed[kind])

    async def waiting(self) -> Listing:
        listed = await self.list("Pod")
        placed = {pod.key for pod in self._told["Pod"] if pod.spec.node_name}
        return Listing(listed.version, {key: item for key, item in listed.objects.items() if key not in placed})

    async def relist(self, kind: str) -> None:
        self.relisted.append(kind)
        self.on_relist()


class Nodes:
    """The store of the node informer."""

    def __init__(self, by_name: dict[str, Node]) -> None:
        self._by_name = by_name

    def get(self, key: str) -> Node | None:
        return self._by_name.get(key)

    def __iter__(self) -> Iterator[Node]:
        return iter(self._by_name.values())


class World:
    """``apply`` and ``delete`` are watch events; ``settle`` lets everything run that can run without time passing."""

    def __init__(self, profile: Profile | None = None, **more: Any) -> None:
        self.clock = FakeClock(START)
        self.pods = Pods()
        self.binder = ScriptedBinder()
        self.events = Events()
        self.observer = Recorder()
        self.evictions = Evictions()
        self.objects = Objects()
        self.server = Server()
        self.nodes: dict[str, Node] = {}
        self.truth = Truth(self.pods, self.nodes)
        self.patches: list[tuple[str, dict[str, Any]]] = []
        self.sleeps: list[float] = []
        self.time_passes = asyncio.Event()
        """Set it, and who sleeps need not."""
        self.scheduler = Scheduler(
            {SCHEDULER: profile or fitting_profile()},
            Ports(
                binder=self.binder,
                patch_status=self._patch,
                events=self.events,
                observer=self.observer,
                pods=self.pods,
                objects=self.objects,
                reader=self.server,
                evictor=self.evictions,
                truth=self.truth,
            ),
            rng=random.Random(0),
            clock=self.clock,
            sleep=self._sleep,
            **more,
        )

    async def _patch(self, pod: Pod, body: dict[str, Any]) -> None:
        self.patches.append((pod.name, body["status"]))

    async def _sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        await self.time_passes.wait()

    # Watch events

    def node(self, name: str = "n1", **more: Any) -> Node:
        node = make_node(name, **more)
        self.scheduler.handle("Node", self.nodes.get(name), node)
        self.nodes[name] = node
        return node

    def apply(self, pod: Pod) -> Pod:
        old = self.pods.get(pod.key)
        self.pods.by_key[pod.key] = pod
        self.scheduler.handle("Pod", old, pod)
        return pod

    def delete(self, pod: Pod) -> None:
        old = self.pods.by_key.pop(pod.key)
        self.scheduler.handle("Pod", old, None)

    def confirm(self, name: str, node: str = "") -> Pod:
        """The watch says that the pod is bound."""
        pod = next(pod for pod in self.pods if pod.name == name)
        entry = self.scheduler.cache.pod(pod.uid)
        where = node or (entry.node if entry else "")
        meta = msgspec.structs.replace(pod.metadata, resource_version=str(int(pod.metadata.resource_version or 0) + 1))
        spec = msgspec.structs.replace(pod.spec, node_name=where)
        status = msgspec.structs.replace(pod.status, nominated_node_name="")
        return self.apply(msgspec.structs.replace(pod, metadata=meta, spec=spec, status=status))

    # Running

    async def settle(self) -> None:
        """Decide and bind until nothing moves any more."""
        for _ in range(12):
            self.scheduler.loop.run_slice()
            for _ in range(4):
                await asyncio.sleep(0)

    async def after(self, seconds: float) -> None:
        """Let time pass, then settle."""
        self.clock.advance(seconds)
        await self.settle()

    # What came of it

    @property
    def bound(self) -> dict[str, str]:
        """Where Bindings sent the pods; each pod once."""
        assert len(self.binder.sent) == len(dict(self.binder.sent))
        return dict(self.binder.sent)

    def used(self, node: str = "n1") -> int:
        """Milli-CPU charged to the node."""
        table = self.scheduler.cache.table
        row = table.row_of.get(node)
        return 0 if row is None else int(table.requested[0, row])

    def queued(self, pod: Pod) -> QueuedPod:
        found = self.scheduler.queue.get(pod.uid)
        assert found is not None
        return found

    def is_idle(self) -> bool:
        """Nothing waits, nothing is in flight, nothing is kept."""
        queue = self.scheduler.queue
        flying = len(queue.in_flight) + queue.in_flight.event_count
        return not list(queue) and not flying and not len(self.scheduler.bindings)


class NotingReserve(Reserve):
    """Notes what is asked of it, and refuses with ``answer``."""

    def __init__(self, name: str, log: list[str], answer: Status | None = None) -> None:
        self.name = name  # type: ignore[misc]
        self.log = log
        self.answer = answer

    def reserve(self, ctx: CycleContext, pod: Any, node: str) -> Status | None:
        self.log.append(f"{self.name} reserve {pod.pod.name} on {node}")
        return self.answer

    def unreserve(self, ctx: CycleContext, pod: Any, node: str) -> None:
        self.log.append(f"{self.name} unreserve {pod.pod.name}")


class HoldingPermit(Permit):
    """Holds every pod that it is not told to let through. No event helps the pods it refuses."""

    name = "Hold"

    def events(self) -> Sequence[EventRegistration]:
        return (EventRegistration(ClusterEvent(Resource.DEVICE_CLASS, Action.DELETE)),)

    def __init__(self, seconds: float = 10.0, free: Sequence[str] = ()) -> None:
        self.seconds = seconds
        self.free = free

    def permit(self, ctx: CycleContext, pod: Any, node: str) -> tuple[Status | None, float]:
        return (None, 0.0) if pod.pod.name in self.free else (Status(Code.WAIT), self.seconds)


class SlowPreBind(PreBind):
    """Has work for the pods that ``wanted`` names, and does what ``work`` says."""

    name = "Slow"

    def __init__(self, work: Callable[[BindingHandle], Awaitable[Status | None]], skip: Sequence[str] = ()) -> None:
        self.work = work
        self.skip = skip

    def pre_bind_pre_flight(self, state: CycleState, pod: Any, node: str) -> Status | None:
        return Status(Code.SKIP) if pod.pod.name in self.skip else None

    async def pre_bind(self, handle: BindingHandle, state: CycleState, pod: Any, node: str) -> Status | None:
        return await self.work(handle)


def never(plugin: Plugin) -> None:
    raise AssertionError(f"{plugin.name} must not be asked")
