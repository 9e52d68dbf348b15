"""A devserver with its controllers on a real socket and a clock that the test moves, seen through HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec

from kube_pyscheduler.devserver.app import DevServer, serve
from kube_pyscheduler.devserver.controllers.environment import Settings
from kube_pyscheduler.devserver.resources import BUILTIN, Resource
from kube_pyscheduler.kit.clock import FakeClock

Object = dict[str, Any]
NAMESPACE = "default"
_BY_KIND = {resource.kind: resource for resource in BUILTIN if resource.plural != "events" or not resource.group}
MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}


class Refused(Exception):
    def __init__(self, code: int, body: Object) -> None:
        super().__init__(f"{code}: {body}")
        self.code = code
        self.body = body


class Cluster:
    """Every request goes over the socket; after a write the controllers have done what is due."""

    def __init__(self, server: DevServer, http: aiohttp.ClientSession, clock: FakeClock) -> None:
        assert server.controllers is not None
        self.server = server
        self.clock = clock
        self._controllers = server.controllers
        self._http = http

    async def create(self, obj: Object) -> Object:
        resource = _BY_KIND[obj["kind"]]
        return await self._write("POST", _path(resource), obj)

    async def get(self, kind: str, name: str) -> Object | None:
        try:
            return await self._request("GET", _path(_BY_KIND[kind], name))
        except Refused as refusal:
            if refusal.code != 404:
                raise
            return None

    async def have(self, kind: str, name: str) -> Object:
        found = await self.get(kind, name)
        assert found is not None, f"{kind} {name} is missing"
        return found

    async def all(self, kind: str, labels: str = "") -> list[Object]:
        query = f"?labelSelector={labels}" if labels else ""
        answer = await self._request("GET", _path(_BY_KIND[kind]) + query)
        return sorted(answer["items"], key=lambda item: str(item["metadata"]["name"]))

    async def names(self, kind: str, labels: str = "") -> list[str]:
        return [item["metadata"]["name"] for item in await self.all(kind, labels)]

    async def patch(self, kind: str, name: str, patch: Object, subresource: str = "") -> Object:
        path = _path(_BY_KIND[kind], name) + (f"/{subresource}" if subresource else "")
        return await self._write("PATCH", path, patch, MERGE_PATCH)

    async def delete(self, kind: str, name: str, **options: Any) -> None:
        await self._write("DELETE", _path(_BY_KIND[kind], name), options or None)

    async def bind(self, pod: str, node: str) -> None:
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": {"name": node}}
        await self._write("POST", _path(_BY_KIND["Pod"], pod) + "/binding", body)

    async def evict(self, pod: str) -> None:
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": NAMESPACE}}
        await self._write("POST", _path(_BY_KIND["Pod"], pod) + "/eviction", body)

    async def bind_all(self, node: str = "node-1") -> list[str]:
        """Put every pod that waits on the node; their names."""
        waiting = [p["metadata"]["name"] for p in await self.all("Pod") if not p["spec"].get("nodeName")]
        for name in waiting:
            await self.bind(name, node)
        return waiting

    async def bind_until_quiet(self, node: str = "node-1") -> None:
        """Be the scheduler until no pod waits any more."""
        while await self.bind_all(node):
            pass

    async def events(self, reason: str) -> list[str]:
        """The messages of the Events of that reason."""
        found = await self._request("GET", "/api/v1/events")
        return [event["message"] for event in found["items"] if event["reason"] == reason]

    def settle(self) -> None:
        self._controllers.run_due()

    def pass_time(self, seconds: float, step: float = 1.0) -> None:
        """Let the clock run, at most ``step`` at a time, and the controllers act in between."""
        while seconds > 0:
            self.clock.advance(min(step, seconds))
            seconds -= step
            self.settle()

    async def watch_until(self, kind: str, test: Callable[[Object], bool]) -> Object:
        """Watch all objects of a kind until one passes the test."""
        path = f"{self.server.url}{_path(_BY_KIND[kind])}?watch=1&sendInitialEvents=true"
        path += "&resourceVersionMatch=NotOlderThan"
        async with self._http.get(path) as response:
            async for line in response.content:
                event = msgspec.json.decode(line)
                assert event["type"] != "ERROR", event
                if event["type"] != "BOOKMARK" and test(event["object"]):
                    found: Object = event["object"]
                    return found
        raise AssertionError("the watch ended")

    async def _write(
        self, method: str, path: str, body: Object | None, headers: dict[str, str] | None = None
    ) -> Object:
        answer = await self._request(method, path, body, headers)
        self.settle()
        return answer

    async def _request(
        self, method: str, path: str, body: Object | None = None, headers: dict[str, str] | None = None
    ) -> Object:
        data = None if body is None else msgspec.json.encode(body)
        given = headers or {"Content-Type": "application/json"}
        async with self._http.request(method, self.server.url + path, data=data, headers=given) as response:
            answer: Object = msgspec.json.decode(await response.read())
            if response.status >= 300:
                raise Refused(response.status, answer)
            return answer


def _path(resource: Resource, name: str = "") -> str:
    root = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    scope = f"/namespaces/{NAMESPACE}" if resource.namespaced else ""
    return f"{root}{scope}/{resource.plural}" + (f"/{name}" if name else "")


@asynccontextmanager
async def running_cluster(settings: Settings, *, nodes: int = 2) -> AsyncIterator[Cluster]:
    """A cluster with nodes "node-1", "node-2", … of 8 CPUs, 32 GiB and 110 pods each, in zones "a" and "b" by turns."""
    clock = FakeClock(1_700_000_000.0)
    server = await serve(clock=clock, controllers=settings)
    try:
        async with aiohttp.ClientSession() as http:
            cluster = Cluster(server, http, clock)
            for number in range(1, nodes + 1):
                await cluster.create(node(f"node-{number}", zone="ab"[(number - 1) % 2]))
            yield cluster
    finally:
        await server.stop()


def node(name: str, *, zone: str = "a", labels: Object | None = None, taints: list[Object] | None = None) -> Object:
    amounts = {"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone, **(labels or {})},
        },
        "spec": {"taints": taints} if taints else {},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def pod(name: str, *, cpu: str = "100m", **spec: Any) -> Object:
    container = {"name": "main", "image": "registry.example/app:1", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], **spec},
    }


def template(app: str, **spec: Any) -> Object:
    return {
        "metadata": {"labels": {"app": app}},
        "spec": {"containers": [{"name": "main", "image": "registry.example/app:1"}], **spec},
    }


def workload(kind: str, name: str, **spec: Any) -> Object:
    """A Deployment, ReplicaSet, StatefulSet or DaemonSet of pods labelled app=<name>."""
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template(name), **spec},
    }


def condition(obj: Object, name: str) -> Object:
    found = [c for c in obj["status"].get("conditions") or () if c["type"] == name]
    assert found, f"no condition {name} in {obj['status']}"
    return dict(found[0])
