"""What the contract tests create on a cluster, and remove again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from kube_pyscheduler.transport.client import Client
from kube_pyscheduler.transport.errors import APIError, Forbidden, NotFound
from kube_pyscheduler.transport.requests import Request

T = TypeVar("T")

PATIENCE = 20.0
"""Seconds that a cluster may take for what it does in its own time."""


class Cluster:
    """A namespace of our own on a cluster."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace
        self._cluster_wide: list[str] = []

    @property
    def pods(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    async def call(self, method: str, path: str, body: Any = None, *, query: str = "") -> dict[str, Any]:
        """Send and decode. Raises as ``Client.send``."""
        encoded = None if body is None else json.dumps(body).encode()
        answer = await self.client.send(Request(method, path, query, encoded, idempotent=False))
        decoded: dict[str, Any] = json.loads(answer)
        return decoded

    async def open(self) -> None:
        await self.create("/api/v1/namespaces", {"kind": "Namespace", "apiVersion": "v1"}, self.namespace)

    async def close(self) -> None:
        await self.call("DELETE", self.pods, {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})
        for path in reversed(self._cluster_wide):
            try:
                await self.call("DELETE", path)
            except NotFound:
                continue

    async def create(self, path: str, obj: dict[str, Any], name: str) -> dict[str, Any]:
        """Create an object; those outside our namespace are remembered and removed at the end."""
        metadata = {**obj.get("metadata", {}), "name": name}
        created = await self.call("POST", path, {**obj, "metadata": metadata})
        if f"/namespaces/{self.namespace}/" not in f"{path}/":
            self._cluster_wide.append(f"{path}/{name}")
        return created

    async def create_node(self) -> str:
        name = f"{self.namespace}-node"
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"labels": {"topology.kubernetes.io/zone": "z1", "kubernetes.io/hostname": name}},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
        }
        await self.create("/api/v1/nodes", node, name)
        return name

    async def create_pod(self, name: str, **spec: Any) -> dict[str, Any]:
        """A pod that nobody schedules. Where the cluster gives pods service accounts, that may take a moment."""
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "spec": {
                "schedulerName": "contract-tests",
                "automountServiceAccountToken": False,
                "containers": [{"name": "c", "image": "registry.k8s.io/pause:3.10"}],
                **spec,
            },
        }

        async def created() -> dict[str, Any] | None:
            try:
                return await self.create(self.pods, pod, name)
            except Forbidden as error:
                if "serviceaccount" not in error.message.lower():
                    raise
                return None

        return await eventually(created)

    async def get_pod(self, name: str) -> dict[str, Any]:
        return await self.call("GET", f"{self.pods}/{name}")


async def eventually(look: Callable[[], Awaitable[T | None]]) -> T:
    """Look again and again until there is something. Raises TimeoutError when the patience ends."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = await look()
            if found is not None:
                return found
            await asyncio.sleep(0.05)


async def refused(answer: Awaitable[Any]) -> APIError:
    """The error of a request that must not succeed."""
    try:
        result = await answer
    except APIError as error:
        return error
    raise AssertionError(f"not refused: {result!r}")
