"""An API server in this process, on a real socket, and shorthands for what tests put into it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from kube_pyscheduler.devserver.app import DevServer, serve
from kube_pyscheduler.devserver.resources import EVENTS, LEASES, PODS
from kube_pyscheduler.devserver.seed import seed_nodes
from kube_pyscheduler.objects.kinds import POD
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.transport import requests
from kube_pyscheduler.transport.client import Client
from kube_pyscheduler.transport.credentials import Credentials, Source
from kube_pyscheduler.transport.session import Session


class Cluster:
    def __init__(self, server: DevServer, session: Session) -> None:
        self.server = server
        self.session = session
        self.client = Client(session)

    def add_pod(self, name: str, *, cpu: str = "100m", gates: tuple[str, ...] = ()) -> None:
        container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
        spec: dict[str, Any] = {"schedulerName": "kube-pyscheduler", "containers": [container]}
        if gates:
            spec["schedulingGates"] = [{"name": gate} for gate in gates]
        self.server.registry.create(PODS, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})

    @property
    def lease(self) -> dict[str, Any] | None:
        return self.server.store.get(LEASES, "kube-system", "kube-pyscheduler")

    @property
    def holder(self) -> str:
        found = self.lease
        return str(found["spec"]["holderIdentity"]) if found else ""

    def events(self, name: str) -> list[dict[str, Any]]:
        """Events about the object of this name, oldest first, in the form of core/v1."""
        stored = self.server.store.list_objects(EVENTS)
        found = [event for event in stored if event["involvedObject"]["name"] == name]
        return sorted(found, key=lambda event: str(event["eventTime"]))

    def is_bound(self, name: str) -> bool:
        return bool(self.raw_pod(name)["spec"].get("nodeName"))

    def raw_pod(self, name: str) -> dict[str, Any]:
        pod = self.server.store.get(PODS, "default", name)
        assert pod is not None
        return pod

    async def pod(self, name: str) -> Pod:
        pod = POD.decoder.decode(await self.client.send(requests.get_pod("default", name)))
        assert isinstance(pod, Pod)
        return pod


@contextlib.asynccontextmanager
async def cluster(nodes: int = 2) -> AsyncIterator[Cluster]:
    server = await serve()
    seed_nodes(server.registry, nodes)
    try:
        async with Session(await Credentials.read(Source(master=server.url)), user_agent="test") as session:
            yield Cluster(server, session)
    finally:
        await server.stop()


async def eventually(condition: Callable[[], Awaitable[bool] | bool]) -> None:
    """Wait until ``condition`` holds; the test's timeout is the limit."""
    while True:
        answer = condition()
        if answer if isinstance(answer, bool) else await answer:
            return
        await asyncio.sleep(0.01)


def free_port() -> int:
    """A port that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
