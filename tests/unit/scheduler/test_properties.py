"""A server that answers late, wrongly or not at all, and people who come and go; then calm: all is as it should be."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.scheduler.ports import BindOutcome, BindResult
from tests.unit.scheduler.conftest import MakeWorld
from tests.unit.scheduler.world import SlowPreBind, World, fitting_profile
from tests.unit.scheduling_queue.builders import make_pod

NODES = ("n1", "n2", "n3")
CPU = 4000


class Server:
    """What is true. The watch tells it in order, when it likes."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.pods: dict[str, Pod] = {}
        self.watch: deque[tuple[Pod | None, Pod | None]] = deque()
        self.is_calm = False
        self.version = 0
        self.bound_by_us: dict[str, str] = {}

    def put(self, pod: Pod) -> Pod:
        self.version += 1
        meta = msgspec.structs.replace(pod.metadata, resource_version=str(self.version))
        newer = msgspec.structs.replace(pod, metadata=meta)
        self.watch.append((self.pods.get(pod.key), newer))
        self.pods[pod.key] = newer
        return newer

    def remove(self, pod: Pod) -> None:
        self.watch.append((self.pods.pop(pod.key), None))

    def place(self, pod: Pod, node: str) -> None:
        spec = msgspec.structs.replace(pod.spec, node_name=node)
        self.put(msgspec.structs.replace(pod, spec=spec))

    async def bind(self, pod: Pod, node: str, is_free: Callable[[], bool]) -> BindResult:
        """As the binder does it: what is uncertain was looked up, so the answer is always true."""
        for _ in range(self.rng.randrange(5)):
            await asyncio.sleep(0)
        if not self.is_calm and self.rng.random() < 0.2:
            return BindResult(BindOutcome.FAILED, "no connection")
        current = self.pods.get(pod.key)
        if current is None or current.uid != pod.uid:
            return BindResult(BindOutcome.GONE)
        if current.spec.node_name:
            there = current.spec.node_name == node
            return BindResult(BindOutcome.BOUND if there else BindOutcome.BOUND_ELSEWHERE)
        assert pod.uid not in self.bound_by_us
        self.bound_by_us[pod.uid] = node
        self.place(current, node)
        return BindResult(BindOutcome.BOUND)

    async def patch_status(self, pod: Pod, body: dict[str, Any]) -> None:
        await asyncio.sleep(0)
        if not self.is_calm and self.rng.random() < 0.2:
            raise OSError("no connection")
        current = self.pods.get(pod.key)
        if current is None or current.uid != pod.uid or current.spec.node_name:
            return
        nominated = body["status"].get("nominatedNodeName", current.status.nominated_node_name)
        self.put(
            msgspec.structs.replace(
                current, status=msgspec.structs.replace(current.status, nominated_node_name=nominated or "")
            )
        )


class Life:
    """Random things happen to a world around a server."""

    def __init__(self, world: World, server: Server) -> None:
        self.world = world
        self.server = server
        self.rng = server.rng
        self.made = 0

    def come(self) -> None:
        self.made += 1
        name = f"p{self.rng.randrange(25)}"
        if f"default/{name}" in self.server.pods:
            return
        cpu = self.rng.choice(["300m", "700m", "1500m", "3"])
        gates = ["g"] if self.rng.random() < 0.1 else []
        self.server.put(make_pod(name, uid=f"u{self.made}", cpu=cpu, gates=gates, priority=self.rng.randrange(3)))

    def any_pod(self) -> Pod | None:
        pods = list(self.server.pods.values())
        return self.rng.choice(pods) if pods else None

    def go(self) -> None:
        pod = self.any_pod()
        if pod is not None:
            self.server.remove(pod)

    def open_gate(self) -> None:
        for pod in self.server.pods.values():
            if pod.spec.scheduling_gates:
                self.server.put(
                    msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, scheduling_gates=()))
                )
                return

    def foreign(self) -> None:
        """Another scheduler takes a pod of ours, where there is room for it in truth."""
        pod = self.any_pod()
        if pod is None or pod.spec.node_name or pod.spec.scheduling_gates:
            return
        node = self.rng.choice(NODES)
        if used(self.server, node) + cpu_of(pod) + self.assumed_on(node) <= CPU:
            self.server.place(pod, node)

    def assumed_on(self, node: str) -> int:
        """What we have promised ourselves there, so that even two schedulers do not overfill a node."""
        return self.world.used(node)

    def uncordon(self) -> None:
        name = self.rng.choice(NODES)
        self.world.node(name, unschedulable=self.rng.random() < 0.3)

    def deliver(self) -> None:
        for _ in range(self.rng.randrange(1, 6)):
            if self.server.watch:
                old, new = self.server.watch.popleft()
                thing = new if new is not None else old
                assert thing is not None
                held = self.world.pods.by_key.get(thing.key)
                if new is None:
                    del self.world.pods.by_key[thing.key]
                else:
                    self.world.pods.by_key[thing.key] = new
                self.world.scheduler.handle("Pod", held, new)

    async def run(self) -> None:
        self.world.scheduler.loop.run_slice()
        for _ in range(self.rng.randrange(6)):
            await asyncio.sleep(0)

    async def step(self) -> None:
        happening = self.rng.choice(
            [self.come, self.come, self.go, self.open_gate, self.foreign, self.uncordon, self.deliver, self.deliver]
        )
        happening()
        if self.rng.random() < 0.5:
            await self.run()
        if self.rng.random() < 0.2:
            self.world.clock.advance(self.rng.choice([0.2, 1.0, 4.0]))

    async def calm_down(self) -> None:
        """Nothing goes wrong any more. Far less time passes than the safety net would need."""
        self.server.is_calm = True
        for _ in range(40):
            while self.server.watch:
                self.deliver()
            self.world.clock.advance(2.0)
            for _ in range(8):
                await self.run()


def cpu_of(pod: Pod) -> int:
    amount = str(pod.spec.containers[0].resources.requests["cpu"])
    return int(amount[:-1]) if amount.endswith("m") else int(amount) * 1000


def used(server: Server, node: str) -> int:
    return sum(cpu_of(pod) for pod in server.pods.values() if pod.spec.node_name == node)


@pytest.mark.parametrize("seed", range(20))
async def test_after_the_storm(make_world: MakeWorld, seed: int) -> None:
    rng = random.Random(seed)
    server = Server(rng)

    async def slow(handle: Any) -> None:
        for _ in range(rng.randrange(4)):
            await asyncio.sleep(0)

    world = make_world(
        fitting_profile(pre_bind=(SlowPreBind(slow, skip=[f"p{n}" for n in range(0, 25, 2)]),)), parallel_bindings=4
    )
    world.binder.bind = server.bind  # type: ignore[method-assign]
    world.scheduler.status._send = server.patch_status
    world.scheduler.status._sleep = lambda _seconds: asyncio.sleep(0)
    life = Life(world, server)
    for name in NODES:
        world.node(name)
    for _ in range(400):
        await life.step()
    for name in NODES:
        world.node(name)
    await life.calm_down()
    for pod in [pod for pod in server.pods.values() if pod.spec.node_name][::2]:
        server.remove(pod)
    await life.calm_down()

    queue = world.scheduler.queue
    assert (len(world.scheduler.bindings), len(queue.in_flight), queue.in_flight.event_count) == (0, 0, 0)
    assert world.scheduler.cache.counts()["assumed_pods"] == 0
    for node in NODES:
        assert used(server, node) == world.used(node) <= CPU
    waiting = {pod.uid for pod in server.pods.values() if not pod.spec.node_name}
    assert {queued.uid for queued in queue} == waiting
    for pod in server.pods.values():
        if not pod.spec.node_name and not pod.spec.scheduling_gates:
            assert all(used(server, node) + cpu_of(pod) > CPU for node in NODES)
    assert len(queue.nominator) == 0
    assert all(pod.status.nominated_node_name == "" for pod in server.pods.values() if not pod.spec.node_name)
    assert not [args for args in world.observer.of("scheduled") if args[2]], "nobody needed the safety net"
