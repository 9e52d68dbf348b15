"""An API server, daemons that reach it through unkind proxies, and somebody who watches what they do."""

from __future__ import annotations

import asyncio
import gc
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from kube_pyscheduler.config.load import load_config, override
from kube_pyscheduler.daemon import app
from kube_pyscheduler.daemon.connections import connect
from kube_pyscheduler.daemon.metrics import Metrics
from kube_pyscheduler.daemon.options import Endpoint, Options
from kube_pyscheduler.daemon.wiring import PodEvents
from kube_pyscheduler.devserver.access.users import User
from kube_pyscheduler.devserver.app import DevServer, serve
from kube_pyscheduler.devserver.controllers.environment import Settings
from kube_pyscheduler.devserver.resources import LEASES, NODES, PODS
from kube_pyscheduler.devserver.store import DELETED, Change
from kube_pyscheduler.framework.profile import build_profiles
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.objects.quantity import parse_milli
from kube_pyscheduler.plugins import IN_TREE
from kube_pyscheduler.scheduler.scheduler import Scheduler
from tests.faults.ledger import Ledger
from tests.faults.proxy import Asked, Fault, Proxy, Script, Tampered
from tests.faults.virtual_time import VirtualLoop

SCHEDULER = "kube-pyscheduler"
CONFIGURATION = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{{plugins: {{multiPoint: {{enabled: [{{name: {Ledger.name}}}]}}}}}}]
"""
OFF = Endpoint("127.0.0.1", 0)
NO_SAFETY_NET = 1e9
"""Seconds after which a pod would be tried although no event helped it: never, so that every hint must be right."""


class Daemon:
    """One process, as far as a process can be had inside another one."""

    def __init__(self, name: str, world: World, script: Script) -> None:
        self.name = name
        self.script = script
        self._world = world
        self.proxy = Proxy(world.server.url, script, self)
        self.ledger = Ledger(world.log)
        self._daemon: app.Daemon | None = None
        self._stop = asyncio.Event()
        self._task: asyncio.Task[int] | None = None

    @property
    def scheduler(self) -> Scheduler | None:
        """None while it is not running."""
        return self._daemon._scheduler if self._daemon is not None else None

    @property
    def identity(self) -> str:
        elector = self._daemon._elector if self._daemon is not None else None
        return elector.identity if elector is not None else ""

    @property
    def has_ended(self) -> bool:
        return self._task is None or self._task.done()

    async def start(self) -> None:
        await self.proxy.up()
        self._stop = asyncio.Event()
        self._task = asyncio.create_task(self._run(), name=f"daemon {self.name}")

    async def crash(self) -> None:
        """As kill -9 does: what was sent may arrive, nothing else is."""
        await self.proxy.down()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
        self._daemon = None

    async def leave(self) -> int:
        """As SIGTERM asks; the exit code."""
        assert self._task is not None
        self._stop.set()
        code = await self._task
        self._daemon = None
        return code

    def outcome(self) -> BaseException | int | None:
        """What became of it: an exit code, or what it died of."""
        assert self._task is not None
        if not self._task.done() or self._task.cancelled():
            return None
        return self._task.exception() or self._task.result()

    async def _run(self) -> int:
        options = self._options()
        self.ledger = Ledger(self._world.log)
        registry = {**IN_TREE, Ledger.name: lambda _args: self.ledger}
        profiles = build_profiles(options.config.profiles, registry)
        async with AsyncExitStack() as stack:
            metrics = Metrics()
            sessions = await connect(options, metrics, stack)
            self._daemon = app.Daemon(options, registry, profiles, sessions, metrics)
            stack.push_async_callback(self._daemon.close)
            return await self._daemon.run(self._stop)

    def _options(self) -> Options:
        config = override(load_config(CONFIGURATION), {}, {"qps": -1.0})
        return Options(config=config, master=self.proxy.url, plain=OFF, secure=OFF, flush_seconds=NO_SAFETY_NET)

    # What it does

    def saw(self, asked: Asked) -> None:
        """See Witness."""
        world = self._world
        world.log(f"{self.name} #{asked.number} {asked}")
        if asked.method == "GET" or "/leases" in asked.path or "/events" in asked.path:
            return
        holder = world.lease_holder
        if holder != self.identity:
            world.violate(f"{self.name} writes without the lease, which {holder or 'nobody'} holds: {asked}")
        if asked.path.endswith("/binding") and world.bound_through.get(_uid_of(asked)) is self._daemon:
            world.violate(f"{self.name} binds a second time: {asked}")

    def did(self, asked: Asked, what: Fault | Tampered) -> None:
        """See Witness."""
        if isinstance(what, Tampered):
            end = f", then {what.end.name}" if what.end is not None else ""
            what_text = f"{len(what.lines)} lines after {what.delay:.3f} s{end}"
        else:
            what_text = str(what)
        self._world.log(f"{self.name} #{asked.number} suffers: {what_text}")

    def answered(self, asked: Asked, status: int) -> None:
        """See Witness."""
        if asked.path.endswith("/binding") and status == 201:
            self._world.bound_through[_uid_of(asked)] = self._daemon


def _uid_of(binding: Asked) -> str:
    uid: str = json.loads(binding.body)["metadata"]["uid"]
    return uid


class World:
    """``violations``: what must not have happened."""

    def __init__(self, server: DevServer, loop: VirtualLoop, *, log: Callable[[str], None] | None = None) -> None:
        self.server = server
        self.loop = loop
        self.daemons: list[Daemon] = []
        self.violations: list[str] = []
        self.bound_through: dict[str, app.Daemon | None] = {}
        """Uid of each pod that one of the daemons bound → which."""
        self.placed: defaultdict[str, dict[str, int]] = defaultdict(dict)
        """Node → the pods that are on it and not over, by uid → the milli-CPU they ask for."""
        self._log = log
        server.store.subscribe(PODS, self._follow)

    def log(self, line: str) -> None:
        if self._log is not None:
            self._log(f"{self.loop.time():9.3f} {line}")

    def violate(self, what: str) -> None:
        self.log(f"VIOLATION {what}")
        self.violations.append(f"at {self.loop.time():.3f}: {what}")

    @property
    def lease_holder(self) -> str:
        lease = self.server.store.get(LEASES, "kube-system", SCHEDULER)
        return str(lease["spec"].get("holderIdentity") or "") if lease else ""

    @property
    def leader(self) -> Daemon | None:
        """The daemon that the server takes for the leader."""
        holder = self.lease_holder
        return next((daemon for daemon in self.daemons if holder and daemon.identity == holder), None)

    def used(self, node: str) -> int:
        """Milli-CPU that the pods of a node ask for."""
        return sum(self.placed[node].values())

    def pods(self) -> list[dict[str, Any]]:
        return self.server.store.list_objects(PODS)

    def nodes(self) -> list[dict[str, Any]]:
        return self.server.store.list_objects(NODES)

    def told(self, pod: Pod, reason: str) -> None:
        """A daemon tells an Event about a pod."""
        if reason != "FailedScheduling":
            return
        current = self.server.store.get(PODS, pod.namespace, pod.name)
        if current is None or current["metadata"]["uid"] != pod.uid:
            return
        if pod.uid in self.bound_through:
            self.violate(f"FailedScheduling for {pod.key}, which is bound to {current['spec'].get('nodeName')}")

    def _follow(self, change: Change) -> None:
        pod = change.new.obj
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName", "")
        self._log_change(change)
        if not node:
            return
        if change.kind == DELETED or is_over(pod):
            self.placed[node].pop(uid, None)
            return
        self.placed[node][uid] = milli_cpu(pod)
        found = self.server.store.get(NODES, "", node)
        if found is not None and self.used(node) > allocatable(found):
            self.violate(f"{node} is over its allocatable: {self.used(node)} m, after {change.kind} {change.new.key}")

    def _log_change(self, change: Change) -> None:
        if self._log is not None:
            obj = change.new.obj
            self.log(
                f"server {change.kind} {change.new.key[1]} v{change.revision} uid={obj['metadata']['uid'][:8]} "
                f"node={obj['spec'].get('nodeName', '')} phase={obj.get('status', {}).get('phase')}"
            )


@asynccontextmanager
async def world(
    loop: VirtualLoop, *, log: Callable[[str], None] | None = None, tokens: Mapping[str, User] | None = None
) -> AsyncIterator[World]:
    """A server with controllers and hollow kubelets; nothing else yet. ``tokens`` that it knows."""
    kubelets = Settings(workloads=False, run_seconds=None, start_seconds=0.5, stop_seconds=1.0, provision_seconds=0.5)
    server = await serve(controllers=kubelets, bookmark_seconds=10.0, tokens=tokens)
    made = World(server, loop, log=log)
    tell = PodEvents.event

    def overheard(self: PodEvents, pod: Pod, type_: str, reason: str, action: str, note: str) -> None:
        made.told(pod, reason)
        tell(self, pod, type_, reason, action, note)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PodEvents, "event", overheard)
        # A daemon looks through the whole memory once, at its start; here there are many, in one process.
        patch.setattr(gc, "collect", lambda: 0)
        patch.setattr(gc, "freeze", lambda: None)
        try:
            yield made
        finally:
            for daemon in made.daemons:
                await daemon.crash()
            await server.stop()


def milli_cpu(pod: dict[str, Any]) -> int:
    return sum(parse_milli(container["resources"]["requests"]["cpu"]) for container in pod["spec"]["containers"])


def allocatable(node: dict[str, Any]) -> int:
    return parse_milli(node["status"]["allocatable"]["cpu"])


def is_over(pod: dict[str, Any]) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
