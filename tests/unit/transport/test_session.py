import asyncio
import socket
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from kube_pyscheduler.kit.clock import FakeClock
from kube_pyscheduler.objects.kinds import POD
from kube_pyscheduler.transport import requests
from kube_pyscheduler.transport.client import Client
from kube_pyscheduler.transport.credentials import Credentials, Source
from kube_pyscheduler.transport.errors import NetworkError
from kube_pyscheduler.transport.session import Session
from tests.unit.scripted_server import LiveWatch, ScriptedServer, drop, reply, session_to, status
from tests.unit.transport.certificates import Authority

PODS = "/api/v1/pods"
LIST = requests.list_page(POD, limit=1)
BIND = requests.bind_pod("ns", "p", "u", "n")
BINDING = "/api/v1/namespaces/ns/pods/p/binding"


async def test_a_server_behind_a_path(server: ScriptedServer) -> None:
    async with session_to(f"{server.url}/clusters/c1") as session:
        server.script("GET", f"/clusters/c1{PODS}", reply(200, {}))
        await Client(session).send(LIST)
        server.script("WATCH", f"/clusters/c1{PODS}", LiveWatch())
        stream = await Client(session).open_watch(requests.watch(POD, version="1", timeout=300), idle=60.0)
        stream.close()
    assert server.seen[0].headers["Host"] == server.url.removeprefix("http://")


async def test_a_kept_connection_that_died_is_replaced_unseen_where_that_is_harmless(
    server: ScriptedServer, session: Session
) -> None:
    client = Client(session)
    server.script("GET", PODS, reply(200, {}), drop, reply(200, {"second": True}))
    await client.send(LIST)
    assert b"second" in await client.send(LIST)


async def test_bc43_a_binding_is_not_sent_again_even_when_its_connection_had_died(
    server: ScriptedServer, session: Session
) -> None:
    client = Client(session)
    server.script("GET", PODS, reply(200, {}))
    await client.send(LIST)
    server.script("POST", BINDING, drop)
    with pytest.raises(NetworkError) as caught:
        await client.send(BIND)
    assert caught.value.sent
    assert server.count("POST", BINDING) == 1


async def _connect_to_servers_that_reset() -> None:
    for ticks in range(12):
        for _ in range(5):
            listener = socket.create_server(("127.0.0.1", 0), backlog=100)
            async with session_to(f"https://127.0.0.1:{listener.getsockname()[1]}") as session:
                asked = [asyncio.ensure_future(session.request(LIST, 5.0)) for _ in range(20)]
                for _ in range(ticks):
                    await asyncio.sleep(0)
                listener.close()
                answers = await asyncio.gather(*asked, return_exceptions=True)
            assert all(isinstance(answer, NetworkError) for answer in answers), answers


@pytest.mark.process
def test_connections_reset_while_they_are_opened_harm_no_others() -> None:
    """In a process of its own: libuv aborts it where a descriptor is closed twice."""
    code = f"import uvloop, {__name__} as tests; uvloop.run(tests._connect_to_servers_that_reset())"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


async def test_through_a_proxy(server: ScriptedServer) -> None:
    async with session_to("http://api.invalid", proxy=server.url, authorization="Bearer t") as session:
        client = Client(session)
        server.script("POST", BINDING, reply(201, {"ok": True}))
        assert b"ok" in await client.send(BIND)
        server.script("GET", PODS, status(503, "ServiceUnavailable"))
        with pytest.raises(Exception, match="503"):
            await client.send(LIST)
        server.script("WATCH", PODS, LiveWatch({"type": "ADDED", "object": {}}))
        stream = await client.open_watch(requests.watch(POD, version="1", timeout=300), idle=60.0)
        assert [event.type for event in await stream.read()] == ["ADDED"]
        stream.close()
    assert {seen.headers["Host"] for seen in server.seen} == {"api.invalid"}
    assert {seen.headers["Authorization"] for seen in server.seen} == {"Bearer t"}


class TLSServer:
    """Answers every request with the name in the client's certificate."""

    def __init__(self, authority: Authority, name: str = "localhost") -> None:
        certificate, key = authority.issue(name, "server")
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, key)
        self._context.load_verify_locations(authority.file)
        self._context.verify_mode = ssl.CERT_OPTIONAL
        self.refuse: set[str] = set()
        self._runner: web.AppRunner

    async def start(self) -> str:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, handle_signals=False)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._context).start()
        return f"https://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        assert request.transport is not None
        peer: dict[str, Any] = request.transport.get_extra_info("peercert") or {}
        name = dict(part for parts in peer.get("subject", ()) for part in parts).get("commonName", "nobody")
        return web.Response(status=401 if name in self.refuse else 200, text=name)


def _kubeconfig(folder: Path, server: str, authority: Authority, **cluster: Any) -> str:
    path = folder / "config"
    user = {"client-certificate": str(folder / "me.crt"), "client-key": str(folder / "me.key")}
    content = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [
            {"name": "c", "cluster": {"server": server, "certificate-authority": str(authority.file), **cluster}}
        ],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(yaml.safe_dump(content))
    return str(path)


async def test_a_renewed_client_certificate_is_used_for_short_requests_and_watches(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    server = TLSServer(authority)
    authority.issue("old", "me")
    kubeconfig = _kubeconfig(tmp_path, await server.start(), authority)
    watch = requests.watch(POD, version="1", timeout=300)
    async with Session(await Credentials.read(Source(kubeconfig), clock=FakeClock()), user_agent="test") as session:
        client = Client(session)
        assert await client.send(LIST) == b"old"
        authority.issue("new", "me")
        server.refuse.add("old")
        assert await client.send(LIST) == b"new"
        reply = await (stream := await session.stream(watch, 60.0)).read_all()
        stream.close()
        assert (reply.status, reply.body) == (200, b"new")
    await server.stop()


async def test_the_servers_name_is_checked_and_can_be_another_one(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    server = TLSServer(authority, name="kube-api")
    authority.issue("me", "me")
    url = (await server.start()).replace("127.0.0.1", "localhost")
    for cluster, works in (
        ({}, False),
        ({"tls-server-name": "kube-api"}, True),
        ({"insecure-skip-tls-verify": True}, True),
    ):
        kubeconfig = _kubeconfig(tmp_path, url, authority, **cluster)
        async with Session(await Credentials.read(Source(kubeconfig)), user_agent="test") as session:
            if works:
                assert await Client(session).send(LIST) == b"me"
                stream = await session.stream(LIST, 60.0)
                assert (await stream.read_all()).body == b"me"
                stream.close()
            else:
                with pytest.raises(NetworkError, match="certificate verify failed") as caught:
                    await Client(session).send(LIST)
                assert not caught.value.sent
    await server.stop()
