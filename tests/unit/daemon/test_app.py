"""The whole daemon in this process, against an API server in this process, over real sockets."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import re
import signal
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest

from kube_pyscheduler.config.files import ConfigFiles
from kube_pyscheduler.config.load import load_config, load_config_file
from kube_pyscheduler.daemon import app, reloading
from kube_pyscheduler.daemon.options import Endpoint, Options
from kube_pyscheduler.devserver.kubeconfig import write_kubeconfig
from kube_pyscheduler.devserver.options import DeleteOptions
from kube_pyscheduler.devserver.resources import PODS
from kube_pyscheduler.objects.kinds import KINDS
from kube_pyscheduler.scheduler import audit
from kube_pyscheduler.scheduling_queue.priority_queue import PriorityQueue
from tests.unit.daemon.cluster import cluster, eventually, free_port
from tests.unit.daemon.running import HEADER, OFF, answers, get, options, running
from tests.unit.scripted_server import logged


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
            host = urlsplit(api.server.url).netloc
            answered = re.findall(r'rest_client_requests_total\{.*method="GET"\} (.*)', metrics)
            [timed] = re.findall(rf'request_duration_seconds_count\{{host="{host}",verb="GET"\}} (.*)', metrics)
            assert sum(map(float, answered)) == float(timed) > len(KINDS)
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


async def test_bc_62_the_pending_gauge_says_the_truth() -> None:
    async with cluster() as api:
        opts = options(api, leader_election={"leader_elect": False})

        async def pending(**expected: int) -> bool:
            text = (await get(opts.plain.port, "/metrics"))[1]
            return all(f'scheduler_pending_pods{{queue="{queue}"}} {n}.0' in text for queue, n in expected.items())

        async with running(opts):
            for number in range(4):
                api.add_pod(f"huge-{number}", cpu="1000")
            api.add_pod("gated", gates=("example.com/wait",))
            await eventually(lambda: pending(active=0, backoff=0, unschedulable=4, gated=1))
            api.server.registry.delete(PODS, "default", "huge-0", DeleteOptions(grace_seconds=0))
            await eventually(lambda: pending(active=0, backoff=0, unschedulable=3, gated=1))


async def test_the_debug_signal_logs_what_waits_and_what_differs(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO")
    monkeypatch.setattr(audit, "SECOND_LOOK", 0.0)
    async with cluster() as api, running(options(api)):
        api.add_pod("huge", cpu="1000")
        api.add_pod("small")
        await eventually(lambda: bool(api.events("huge")) and bool(api.events("small")))
        monkeypatch.setattr(PriorityQueue, "__contains__", lambda *_: False)
        os.kill(os.getpid(), signal.SIGUSR2)
        await eventually(lambda: "Compared with the API server" in caplog.text)
    fields = [(record.message, record.__dict__.get("fields", {})) for record in caplog.records]
    dump = [values["line"] for message, values in fields if message == "Dump"]
    assert any(line.startswith("  Node node-00000 pods=") for line in dump)
    assert any("    default/small" in line for line in dump)
    assert any("Unschedulable default/huge" in line for line in dump)
    (difference,) = [values for message, values in fields if message == "The API server has it otherwise"]
    assert (difference["what"], difference["name"]) == ("queue_missing", "default/huge")
    assert ("Compared with the API server", {"result": "1 differences"}) in fields


async def test_without_leader_election_there_is_no_lease() -> None:
    async with cluster() as api:
        async with running(options(api, leader_election={"leader_elect": False})) as (stop, daemon):
            api.add_pod("a")
            await eventually(lambda: api.is_bound("a"))
            stop.set()
            assert await daemon == 0
        assert api.lease is None


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
            await eventually(lambda: answers(opts.plain.port, "/readyz"))
            for watch in tuple(api.server.context.watches):
                watch.close()
            await api.server.runner.cleanup()

            await eventually(lambda: answers(opts.plain.port, "/readyz/api-server", 500))
            assert (await get(opts.plain.port, "/livez"))[0] == 200


def secure_session(port: int) -> aiohttp.ClientSession:
    """Asks the secure port, whoever that is."""
    insecure = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    insecure.check_hostname = False
    insecure.verify_mode = ssl.CERT_NONE
    return aiohttp.ClientSession(f"https://127.0.0.1:{port}", connector=aiohttp.TCPConnector(ssl=insecure))


async def test_a_hangup_signal_has_the_configuration_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    monkeypatch.setattr(reloading, "LOOK_SECONDS", None)
    file, port, secure_port = tmp_path / "config.yaml", free_port(), free_port()
    file.write_text(HEADER)
    async with cluster() as api:
        given = options(api, plain=Endpoint("127.0.0.1", port), secure=Endpoint("127.0.0.1", secure_port))
        files = ConfigFiles(lambda read: load_config_file(file, read=read))
        opts = dataclasses.replace(given, files=files, config=files.load())

        async def shows(*lines: str) -> bool:
            text = (await get(port, "/metrics"))[1]
            return all(f"scheduler_config_{line}" in text for line in lines)

        async with running(opts) as (_, daemon):
            await eventually(lambda: shows("info{", 'automatic_reloads_total{status="success"} 0.0'))
            first = re.findall(r"scheduler_config_info\{.*\}", (await get(port, "/metrics"))[1])
            file.write_text(f"{HEADER}profiles: [{{schedulerName: other}}]\nleaderElection: {{leaderElect: false}}\n")
            os.kill(os.getpid(), signal.SIGHUP)
            await eventually(lambda: shows('automatic_reloads_total{status="success"} 1.0'))
            assert not await shows(first[0].removeprefix("scheduler_config_"))
            assert await shows('automatic_reload_last_timestamp_seconds{status="success"}')
            headers = {"Authorization": f"Bearer {api.server.token}"}
            async with secure_session(secure_port) as session, session.get("/configz", headers=headers) as response:
                shown = (await response.json())["componentconfig"]
            assert [profile["schedulerName"] for profile in shown["profiles"]] == ["other"]
            assert shown["leaderElection"]["leaderElect"]
            file.write_text("apiVersion: [")
            os.kill(os.getpid(), signal.SIGHUP)
            await eventually(lambda: shows('automatic_reloads_total{status="failure"} 1.0'))
            assert not daemon.done()
    assert any(line.startswith("Settings that changed need a restart") for line in logged(caplog))
    assert any(line.startswith("Cannot use the configuration") for line in logged(caplog))


async def test_the_secure_port_asks_the_api_server() -> None:
    async with cluster() as api:
        port = free_port()
        opts = options(api, plain=OFF, secure=Endpoint("127.0.0.1", port))
        async with running(opts), secure_session(port) as session:

            async def ready() -> bool:
                try:
                    async with session.get("/readyz") as response:
                        return response.status == 200
                except aiohttp.ClientConnectorError:
                    return False

            await eventually(ready)
            for path in ("/metrics", "/debug/dump", "/debug/compare"):
                async with session.get(path) as response:
                    assert response.status == 401
            headers = {"Authorization": f"Bearer {api.server.token}"}
            for path, word in (
                ("/metrics", "scheduler_pending_pods"),
                ("/configz", "kubescheduler.config.k8s.io/v1"),
                ("/debug/dump", "Node node-00000 pods=0/110"),
                ("/debug/compare", "0 differences"),
            ):
                async with session.get(path, headers=headers) as response:
                    assert (response.status, word in await response.text()) == (200, True)


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
    assert any("missing.conf: no such file" in line for line in logged(caplog))


async def test_a_port_in_use_prevents_the_start(caplog: pytest.LogCaptureFixture) -> None:
    async with cluster() as api:
        opts = options(api)
        async with await asyncio.start_server(lambda *_: None, "127.0.0.1", opts.plain.port):
            assert await app.run(opts, asyncio.Event()) == 1
    sentence = f"cannot listen on 127.0.0.1 port {opts.plain.port}: Address already in use"
    assert any("Cannot start" in line and sentence in line for line in logged(caplog))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "profiles: [{plugins: {filter: {enabled: [{name: X}]}}}]",
            """'path': 'profiles[0].plugins.filter.enabled[0]', 'problem': 'plugin "X" is not registered'""",
        ),
        ("clientConnection: {kubeconfig: /nowhere/kubeconfig}", "/nowhere/kubeconfig: no such file"),
    ],
)
async def test_what_prevents_the_start_is_said_in_a_sentence(
    text: str, sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert await app.run(Options(config=load_config(HEADER + text)), asyncio.Event()) == 1
    assert any(sentence in line for line in logged(caplog))
