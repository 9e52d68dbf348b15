"""The whole daemon in this process, against an API server in this process, over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from kube_pyscheduler.config.load import default_config, load_config, override
from kube_pyscheduler.daemon import app
from kube_pyscheduler.daemon.options import Endpoint, Options
from kube_pyscheduler.devserver.kubeconfig import write_kubeconfig
from kube_pyscheduler.devserver.resources import LEASES
from tests.unit.daemon.cluster import Cluster, cluster, eventually, free_port

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


async def test_pods_are_bound_and_the_end_is_graceful() -> None:
    async with cluster() as api:
        opts = options(api)
        async with running(opts) as (stop, daemon):
            api.add_pod("a")
            await eventually(lambda: api.is_bound("a"))
            assert api.holder
            status, text = await get(opts.plain.port, "/readyz?verbose")
            assert (status, text.splitlines()[-1]) == (200, "readyz check passed")
            metrics = (await get(opts.plain.port, "/metrics"))[1]
            assert 'leader_election_master_status{name="kube-pyscheduler"} 1.0' in metrics
            assert 'scheduler_schedule_attempts_total{profile="kube-pyscheduler",result="scheduled"} 1.0' in metrics
            assert 'scheduler_cache_size{type="nodes"} 2.0' in metrics
            assert 'scheduler_pending_pods{queue="active"} 0.0' in metrics
            assert 'rest_client_requests_total{code="201",host="' in metrics
            stop.set()
            assert await daemon == 0
        released = api.lease
        assert released is not None
        assert released["spec"]["holderIdentity"] == ""
        assert released["spec"]["leaseDurationSeconds"] == 1
        assert (await get(opts.plain.port, "/livez"))[0] == 0


async def test_readers_of_pod_and_lease_are_told() -> None:
    async with cluster() as api:
        async with running(options(api)) as (stop, daemon):
            api.add_pod("a")
            api.add_pod("huge", cpu="1000")
            await eventually(lambda: api.is_bound("a") and bool(api.events("huge")))
            identity = api.holder
            stop.set()
            assert await daemon == 0
        node = api.raw_pod("a")["spec"]["nodeName"]
        (scheduled,) = api.events("a")
        assert (scheduled["type"], scheduled["reason"], scheduled["action"]) == ("Normal", "Scheduled", "Binding")
        assert scheduled["message"] == f"Successfully assigned default/a to {node}"
        assert scheduled["reportingComponent"] == "kube-pyscheduler"
        (failed,) = api.events("huge")
        assert (failed["type"], failed["reason"]) == ("Warning", "FailedScheduling")
        assert failed["message"].startswith("0/2 nodes are available: 2 Insufficient cpu.")
        assert [event["message"] for event in api.events("kube-pyscheduler")] == [
            f"{identity} became leader",
            f"{identity} stopped leading",
        ]


async def test_without_leader_election_there_is_no_lease() -> None:
    async with cluster() as api:
        async with running(options(api, leader_election={"leader_elect": False})) as (stop, daemon):
            api.add_pod("a")
            await eventually(lambda: api.is_bound("a"))
            stop.set()
            assert await daemon == 0
        assert api.lease is None


async def test_a_follower_serves_and_takes_over_when_the_leader_leaves() -> None:
    async with cluster() as api, running(options(api)) as (stop_leader, leader):
        await eventually(lambda: bool(api.holder))
        first = api.holder
        second = options(api)
        async with running(second) as (stop, follower):
            await eventually(lambda: _is_ready(second.plain.port))
            metrics = (await get(second.plain.port, "/metrics"))[1]
            assert 'leader_election_master_status{name="kube-pyscheduler"} 0.0' in metrics
            stop_leader.set()
            assert await leader == 0
            await eventually(lambda: api.holder not in ("", first))
            api.add_pod("b")
            await eventually(lambda: api.is_bound("b"))
            stop.set()
            assert await follower == 0


async def _is_ready(port: int) -> bool:
    return (await get(port, "/readyz"))[0] == 200


async def test_a_follower_that_is_told_to_stop_stops() -> None:
    async with cluster() as api, running(options(api)):
        await eventually(lambda: bool(api.holder))
        before = api.holder
        second = options(api)
        async with running(second) as (stop, follower):
            await eventually(lambda: _is_ready(second.plain.port))
            stop.set()
            assert await follower == 0
        assert api.holder == before


async def test_who_loses_the_lease_says_so_exits_with_1_and_leaves_it_alone(caplog: pytest.LogCaptureFixture) -> None:
    async with cluster() as api, running(options(api)) as (_, daemon):
        await eventually(lambda: bool(api.holder))
        stolen = dict(api.lease or {})
        stolen["spec"] = {**stolen["spec"], "holderIdentity": "somebody-else"}
        stolen["metadata"] = {k: v for k, v in stolen["metadata"].items() if k != "resourceVersion"}
        api.server.store.update(LEASES, stolen)
        assert await daemon == 1
        assert api.holder == "somebody-else"
    assert "Leaderelection lost" in caplog.text


async def test_a_scheduling_loop_that_breaks_ends_the_daemon_and_gives_the_lease_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with cluster() as api, running(options(api)) as (_, daemon):
        await eventually(lambda: bool(api.holder))

        def broken(*_: object) -> None:
            raise RuntimeError("a bug in the loop itself")

        monkeypatch.setattr("kube_pyscheduler.scheduler.scheduling_loop.SchedulingLoop.run_slice", broken)
        api.add_pod("a")
        assert await daemon == 1
        assert api.holder == ""
    assert "A part of the daemon failed" in caplog.text


async def test_health_tells_that_the_api_server_is_gone() -> None:
    async with cluster() as api:
        opts = options(api, leader_election={"leader_elect": False})
        async with running(opts):
            await eventually(lambda: _is_ready(opts.plain.port))
            for watch in tuple(api.server.context.watches):
                watch.close()
            await api.server.runner.cleanup()

            async def tells() -> bool:
                return (await get(opts.plain.port, "/readyz/api-server"))[0] == 500

            await eventually(tells)
            assert (await get(opts.plain.port, "/livez"))[0] == 200


async def test_the_secure_port_asks_the_api_server() -> None:
    async with cluster() as api:
        port = free_port()
        opts = options(api, plain=OFF, secure=Endpoint("127.0.0.1", port))
        async with running(opts):
            insecure = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            insecure.check_hostname = False
            insecure.verify_mode = ssl.CERT_NONE
            url = f"https://127.0.0.1:{port}"
            async with aiohttp.ClientSession(url, connector=aiohttp.TCPConnector(ssl=insecure)) as session:

                async def ready() -> bool:
                    try:
                        async with session.get("/readyz") as response:
                            return response.status == 200
                    except aiohttp.ClientConnectorError:
                        return False

                await eventually(ready)
                async with session.get("/metrics") as response:
                    assert response.status == 401
                headers = {"Authorization": f"Bearer {api.server.token}"}
                for path, word in (
                    ("/metrics", "scheduler_pending_pods"),
                    ("/configz", "kubescheduler.config.k8s.io/v1"),
                ):
                    async with session.get(path, headers=headers) as response:
                        assert (response.status, word in await response.text()) == (200, True)


async def test_delayed_caches_are_filled_by_the_leader_only() -> None:
    async with cluster() as api, running(options(api)):
        await eventually(lambda: bool(api.holder))
        lazy = load_config(HEADER + "delayCacheUntilActive: true")
        second = options(api, config=lazy)
        async with running(second) as (stop, follower):
            await eventually(lambda: _listens(second.plain.port))
            status, text = await get(second.plain.port, "/readyz")
            assert (status, "[-]informer-sync failed" in text) == (500, True)
            stop.set()
            assert await follower == 0


async def _listens(port: int) -> bool:
    return (await get(port, "/livez"))[0] == 200


async def test_reviews_may_go_another_way(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with cluster() as api:
        path = tmp_path / "reviews.conf"
        write_kubeconfig(path, api.server.url, api.server.token)
        way: dict[str, Any] = {"authentication_kubeconfig": str(path), "authorization_kubeconfig": str(path)}
        async with running(options(api, **way)) as (_, daemon):
            await eventually(lambda: bool(api.holder))
            assert not daemon.done()
        missing = options(api, authorization_kubeconfig=str(tmp_path / "missing.conf"))
        assert await app.run(missing, asyncio.Event()) == 1
    assert "missing.conf: no such file" in caplog.text


async def test_a_port_in_use_prevents_the_start(caplog: pytest.LogCaptureFixture) -> None:
    async with cluster() as api:
        opts = options(api)
        async with await asyncio.start_server(lambda *_: None, "127.0.0.1", opts.plain.port):
            assert await app.run(opts, asyncio.Event()) == 1
    port = opts.plain.port
    assert f"Cannot start: cannot listen on 127.0.0.1 port {port}: Address already in use" in caplog.text


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "profiles: [{plugins: {filter: {enabled: [{name: X}]}}}]",
            'Cannot start: profiles[0].plugins.filter.enabled[0]: plugin "X" is not registered',
        ),
        ("clientConnection: {kubeconfig: /nowhere/kubeconfig}", "Cannot start: /nowhere/kubeconfig: no such file"),
    ],
)
async def test_what_prevents_the_start_is_said_in_a_sentence(
    text: str, sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert await app.run(Options(config=load_config(HEADER + text)), asyncio.Event()) == 1
    assert sentence in caplog.text
