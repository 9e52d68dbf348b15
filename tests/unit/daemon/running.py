"""Running the daemon in this process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import aiohttp

from kube_pyscheduler.config.load import default_config, override
from kube_pyscheduler.daemon import app
from kube_pyscheduler.daemon.options import Endpoint, Options
from tests.unit.daemon.cluster import Cluster, free_port

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
QUICK = {"lease_duration": 1.5, "renew_deadline": 1.0, "retry_period": 0.1}
OFF = Endpoint("127.0.0.1", 0)


def options(api: Cluster, **more: Any) -> Options:
    election = {"leader_elect": True, **QUICK, **more.pop("leader_election", {})}
    config = override(more.pop("config", default_config()), election, {"qps": -1.0})
    ports: dict[str, Any] = {"plain": Endpoint("127.0.0.1", free_port()), "secure": OFF}
    return Options(config=config, master=api.server.url, **(ports | more))


@contextlib.asynccontextmanager
async def running(opts: Options) -> AsyncIterator[tuple[asyncio.Event, asyncio.Task[int]]]:
    """The event that asks it to stop, and its task, which results in the exit code."""
    stop = asyncio.Event()
    daemon = asyncio.ensure_future(app.run(opts, stop))
    try:
        yield stop, daemon
    finally:
        stop.set()
        await daemon


async def get(port: int, path: str) -> tuple[int, str]:
    """(0, "") where nobody listens."""
    try:
        async with aiohttp.request("GET", f"http://127.0.0.1:{port}{path}") as response:
            return response.status, await response.text()
    except aiohttp.ClientConnectorError:
        return 0, ""


async def answers(port: int, path: str, status: int = 200) -> bool:
    return (await get(port, path))[0] == status
