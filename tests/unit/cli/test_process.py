"""The daemon as a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.daemon.cluster import Cluster, cluster, eventually, free_port

SCRIPT = Path(sys.executable).with_name("kube-pyscheduler")

pytestmark = pytest.mark.process


@contextlib.asynccontextmanager
async def started(api: Cluster, *flags: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        SCRIPT,
        f"--master={api.server.url}",
        f"--port={free_port()}",
        "--secure-port=0",
        "--leader-elect-lease-duration=2s",
        "--leader-elect-renew-deadline=1500ms",
        "--leader-elect-retry-period=200ms",
        *flags,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_sigterm_ends_it_with_0_and_the_lease_is_free() -> None:
    async with cluster() as api, started(api, "--v=2") as process:
        api.add_pod("a")
        await eventually(lambda: api.is_bound("a"))
        process.send_signal(signal.SIGTERM)
        _, log = await process.communicate()
        assert process.returncode == 0
        assert b'"Requested to terminate, exiting"' in log
        found = api.lease
        assert found is not None
        assert found["spec"]["holderIdentity"] == ""


async def test_when_the_leader_is_killed_another_takes_over() -> None:
    async with cluster() as api, started(api) as leader:
        await eventually(lambda: bool(api.holder))
        first = api.holder
        async with started(api) as follower:
            api.add_pod("a")
            await eventually(lambda: api.is_bound("a"))
            leader.kill()
            await leader.wait()
            await eventually(lambda: api.holder not in ("", first))
            api.add_pod("b")
            await eventually(lambda: api.is_bound("b"))
            assert follower.returncode is None


async def test_a_port_in_use_ends_it_with_1() -> None:
    async with cluster() as api:
        port = free_port()
        async with await asyncio.start_server(lambda *_: None, "127.0.0.1", port), started(api, f"--port={port}") as it:
            _, log = await it.communicate()
            assert it.returncode == 1
            assert f"cannot listen on 127.0.0.1 port {port}: Address already in use".encode() in log
