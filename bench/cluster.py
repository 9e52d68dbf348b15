"""What benchmarks need of a cluster: somewhere to send requests, nodes, pods, and a way to see pods land."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from kube_pyscheduler.objects import kinds
from kube_pyscheduler.transport.client import Client
from kube_pyscheduler.transport.credentials import Credentials, Source
from kube_pyscheduler.transport.requests import Request, list_page
from kube_pyscheduler.transport.session import Session

CONCURRENCY = 32


@asynccontextmanager
async def connect(kubeconfig: Path) -> AsyncIterator[Client]:
    """A client without a request limit."""
    credentials = await Credentials.read(Source(kubeconfig=str(kubeconfig)))
    async with Session(credentials, user_agent="kube-pyscheduler-bench") as session:
        yield Client(session)


async def create_all(client: Client, path: str, objects: Iterable[dict[str, Any]]) -> None:
    """POST every object, some at a time."""
    gate = asyncio.Semaphore(CONCURRENCY)

    async def create(item: dict[str, Any]) -> None:
        async with gate:
            await client.send(Request("POST", path, body=json.dumps(item).encode()))

    await asyncio.gather(*(create(item) for item in objects))


async def delete_all(client: Client, paths: Iterable[str]) -> None:
    """DELETE every path, some at a time."""
    gate = asyncio.Semaphore(CONCURRENCY)

    async def delete(path: str) -> None:
        async with gate:
            await client.send(Request("DELETE", path))

    await asyncio.gather(*(delete(path) for path in paths))


def node(number: int, zones: int = 3) -> dict[str, Any]:
    """A Ready node: 4 CPUs, 32Gi, 110 pods."""
    name = f"node-{number:05d}"
    capacity = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    labels = {
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": f"zone-{number % zones}",
        "topology.kubernetes.io/region": "region-0",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {
            "capacity": capacity,
            "allocatable": capacity,
            "conditions": [{"type": "Ready", "status": "True", "reason": "Bench"}],
        },
    }


def pod(number: int, scheduler: str, shape: Callable[[int], dict[str, Any]]) -> dict[str, Any]:
    """A pod whose spec is ``shape(number)`` besides its container."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number:06d}", "namespace": "bench", "labels": {"app": f"app-{number % 10}"}},
        "spec": {
            "schedulerName": scheduler,
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "main",
                    "image": "pause:3.10",
                    "resources": {"requests": {"cpu": "100m", "memory": "500Mi"}},
                }
            ],
            **shape(number),
        },
    }


async def count_bound(client: Client) -> int:
    """Pods of the bench that have a node."""
    bound = 0
    token = ""
    while True:
        page = list_page(kinds.POD, limit=2000, continue_token=token, field_selector="spec.nodeName!=")
        answer = json.loads(await client.send(page))
        bound += sum(item["metadata"]["namespace"] == "bench" for item in answer["items"])
        token = answer["metadata"].get("continue", "")
        if not token:
            return bound
