"""From an empty folder to the summary: start, create, watch, judge, stop."""

from __future__ import annotations

import asyncio
import shutil
import socket
import sys
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import aiohttp
from rich.console import Console

from kube_pyscheduler.demo import daemon_metrics
from kube_pyscheduler.demo.children import Child, ChildFailed, Children
from kube_pyscheduler.demo.cluster_api import ClusterApi
from kube_pyscheduler.demo.picture import Picture
from kube_pyscheduler.demo.scenario import DEFAULT_FOLDER, Object, Scenario, ScenarioError, load_scenario
from kube_pyscheduler.demo.screen import Screen
from kube_pyscheduler.demo.summary import Pointers, print_pointers, print_summary
from kube_pyscheduler.demo.verdict import Verdict, judge, waiting_for
from kube_pyscheduler.kit.clock import Clock, RealClock
from kube_pyscheduler.plugins import IN_TREE
from kube_pyscheduler.transport.errors import APIError, NetworkError

START_SECONDS = 30.0
"""How long a child may take until it is ready."""
LOOK_SECONDS = 0.2
"""Time between two looks at the cluster."""
SCENE_SECONDS = 0.7
"""Time between two files on a terminal, so that eyes can follow."""
_WORKLOADS = ("Deployment", "StatefulSet", "DaemonSet", "Job")
_DEVSERVER = ("devserver", "--start-seconds=0.2", "--stop-seconds=1")
_DAEMON = ("--leader-elect=true", "--v=2", "--kube-api-qps=1000", "--kube-api-burst=2000", "--secure-port=0")


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """``settle_seconds``: how long the cluster may take to be as expected. ``keep``: stay up in the end."""

    folder: Path = DEFAULT_FOLDER
    keep: bool = False
    settle_seconds: float = 60.0
    clock: Clock = field(default_factory=RealClock)


def run(options: DemoOptions, console: Console) -> int:
    """The whole demonstration. 0 when all went as expected, 1 when not; KeyboardInterrupt after everything stopped."""
    try:
        scenario = load_scenario(options.folder)
    except ScenarioError as error:
        console.print(f"Cannot start: {error}", style="bold red", soft_wrap=True)
        return 1
    with tempfile.TemporaryDirectory(prefix="kube-pyscheduler-demo-") as name:
        folder = Path(name)
        try:
            return asyncio.run(_Demo(options, scenario, console, folder).run())
        except ChildFailed as failure:
            console.print(f"\n{failure}. Its last words:", style="bold red")
            console.print(failure.log, soft_wrap=True, markup=False)
        except (APIError, NetworkError, LookupError) as error:
            console.print(f"\nThe API server refused: {error}", style="bold red", soft_wrap=True)
        return 1


class _Demo:
    """One demonstration. ``folder`` holds the kubeconfig and the logs, and goes with it."""

    def __init__(self, options: DemoOptions, scenario: Scenario, console: Console, folder: Path) -> None:
        self._options = options
        self._scenario = scenario
        self._console = console
        self._folder = folder
        self._kubeconfig = folder / "kubeconfig"
        self._daemon_url = f"http://127.0.0.1:{_free_port()}"
        self._workloads: list[Object] = []

    async def run(self) -> int:
        async with AsyncExitStack() as stack:
            children = await stack.enter_async_context(Children(self._folder))
            http = await stack.enter_async_context(aiohttp.ClientSession())
            with Screen(self._console, self._options.clock) as screen:
                api = await self._start_cluster(children, stack, screen)
                await self._start_daemon(children, http, screen)
                await self._create_workloads(children, api, screen)
                await self._settle(children, api, screen)
            verdict = await self._report(children, api, http)
            pointers = self._pointers()
            print_pointers(self._console, pointers, stays=self._options.keep)
            if self._options.keep:
                await _until_a_child_ends(children)
        return 1 if verdict.problems else 0

    # -- start -------------------------------------------------------------------------------------------------

    async def _start_cluster(self, children: Children, stack: AsyncExitStack, screen: Screen) -> ClusterApi:
        screen.say("Starting the API server with a cluster of its own")
        seed, out = f"--seed={self._scenario.cluster}", f"--kubeconfig-out={self._kubeconfig}"
        server = await children.start("apiserver", *_DEVSERVER, seed, out)
        clock = self._options.clock
        await server.ready(self._has_kubeconfig, clock, START_SECONDS)
        api = await stack.enter_async_context(await ClusterApi.of(str(self._kubeconfig)))
        await server.ready(api.is_ready, clock, START_SECONDS)
        return api

    async def _has_kubeconfig(self) -> bool:
        return self._kubeconfig.is_file() and self._kubeconfig.stat().st_size > 0

    async def _start_daemon(self, children: Children, http: aiohttp.ClientSession, screen: Screen) -> Child:
        screen.say("Starting the scheduler")
        port = self._daemon_url.rpartition(":")[2]
        daemon = await children.start("scheduler", f"--kubeconfig={self._kubeconfig}", f"--port={port}", *_DAEMON)
        ready = partial(daemon_metrics.answers, http, f"{self._daemon_url}/readyz")
        await daemon.ready(ready, self._options.clock, START_SECONDS)
        return daemon

    # -- the play ----------------------------------------------------------------------------------------------

    async def _create_workloads(self, children: Children, api: ClusterApi, screen: Screen) -> None:
        for name, objects in self._scenario.workloads:
            screen.say(f"Creating {name}: " + ", ".join(f"{o['kind']} {o['metadata']['name']}" for o in objects))
            for obj in objects:
                await api.create(obj)
            self._workloads += [obj for obj in objects if obj["kind"] in _WORKLOADS]
            if screen.moves:
                await self._look_for(SCENE_SECONDS, children, api, screen)
            else:
                await self._look(children, api, screen)

    async def _settle(self, children: Children, api: ClusterApi, screen: Screen) -> None:
        """Look until all is as expected, or the time is over."""
        clock = self._options.clock
        end = clock.monotonic() + self._options.settle_seconds
        while clock.monotonic() < end:
            picture = await self._look(children, api, screen)
            if not waiting_for(picture, await self._current(api), self._scenario.expectations):
                return
            await asyncio.sleep(LOOK_SECONDS)

    async def _look_for(self, seconds: float, children: Children, api: ClusterApi, screen: Screen) -> None:
        end = self._options.clock.monotonic() + seconds
        while self._options.clock.monotonic() < end:
            await self._look(children, api, screen)
            await asyncio.sleep(LOOK_SECONDS)

    async def _look(self, children: Children, api: ClusterApi, screen: Screen) -> Picture:
        children.check()
        picture = await self._picture(api)
        screen.show(picture)
        return picture

    async def _picture(self, api: ClusterApi) -> Picture:
        namespace = self._scenario.expectations.namespace
        return Picture(await api.pods(namespace), await api.nodes(), await api.claims(namespace))

    async def _current(self, api: ClusterApi) -> list[Object]:
        return [await api.get(workload) for workload in self._workloads]

    # -- the end -----------------------------------------------------------------------------------------------

    async def _report(self, children: Children, api: ClusterApi, http: aiohttp.ClientSession) -> Verdict:
        children.check()
        picture = await self._picture(api)
        workloads = await self._current(api)
        verdict = judge(picture, workloads, self._scenario.expectations, frozenset(IN_TREE))
        numbers = await daemon_metrics.read(http, self._daemon_url)
        print_summary(self._console, picture, verdict, numbers)
        if verdict.problems:
            for child in children:
                self._console.print(f"\nThe last words of the {child.name}:", style="bold")
                self._console.print(child.last_lines(), soft_wrap=True, markup=False)
        return verdict

    def _pointers(self) -> Pointers:
        return Pointers(
            kubectl=_kubectl(),
            kubeconfig=str(self._kubeconfig),
            metrics=f"{self._daemon_url}/metrics",
            logs=str(self._folder),
            namespace=self._scenario.expectations.namespace,
        )


async def _until_a_child_ends(children: Children) -> None:
    while True:
        children.check()
        await asyncio.sleep(LOOK_SECONDS)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _kubectl() -> str:
    """The kubectl installed beside this Python, else the one on the path, by name."""
    beside = Path(sys.executable).with_name("kubectl")
    return str(beside) if beside.exists() else shutil.which("kubectl") or "kubectl"
