"""What the proxy does to requests and watches, seen by a client of the product."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from kube_pyscheduler.devserver.app import DevServer, serve
from kube_pyscheduler.devserver.resources import PODS
from kube_pyscheduler.objects.kinds import POD
from kube_pyscheduler.transport import requests
from kube_pyscheduler.transport.client import Client
from kube_pyscheduler.transport.errors import APIError, Gone, NetworkError, NotFound, TooManyRequests
from kube_pyscheduler.transport.watch import WatchEvent
from tests.faults.proxy import FAITHFUL, Answer, Asked, Cut, Fault, Proxy, Tampered, gone_line
from tests.faults.virtual_time import VirtualLoop, run
from tests.unit.scripted_server import session_to


class Script:
    """What is to be done, in this order; nothing after that. Also the witness of what came of it."""

    def __init__(self, *faults: Fault, lines: Callable[[list[bytes]], Tampered] = Tampered) -> None:
        self._faults = deque(faults)
        self._lines = lines
        self.seen: list[str] = []
        self.answers: list[int] = []

    def request(self, asked: Asked) -> Fault:
        return self._faults.popleft() if self._faults else FAITHFUL

    def lines(self, asked: Asked, lines: list[bytes]) -> Tampered:
        return self._lines(lines)

    def saw(self, asked: Asked) -> None:
        self.seen.append(str(asked))

    def did(self, asked: Asked, what: Fault | Tampered) -> None: ...

    def answered(self, asked: Asked, status: int) -> None:
        self.answers.append(status)


def through(script: Script, act: Callable[[Client, DevServer, Proxy], Coroutine[Any, Any, None]]) -> float:
    """Let a client act on a server through a proxy; returns how long it took, in virtual seconds."""

    async def main(loop: VirtualLoop) -> float:
        server = await serve()
        async with Proxy(server.url, script, script) as proxy, session_to(proxy.url) as session:
            start = loop.time()
            await act(Client(session), server, proxy)
            took = loop.time() - start
        await server.stop()
        return took

    return run(main, 0)


def add_pod(server: DevServer, name: str) -> str:
    """Returns its uid."""
    pod = {"metadata": {"name": name, "namespace": "default"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    uid: str = server.registry.create(PODS, pod)["metadata"]["uid"]
    return uid


def node_of(server: DevServer, name: str) -> str:
    pod = server.store.get(PODS, "default", name)
    assert pod is not None
    return str(pod["spec"].get("nodeName", ""))


@pytest.mark.parametrize(
    ("fault", "error", "acted"),
    [
        (FAITHFUL, None, True),
        (Fault(delay=2.0, late=1.0), None, True),
        (Fault(passes=False, answer=Cut.RESET), NetworkError, False),
        (Fault(answer=Cut.RESET), NetworkError, True),
        (Fault(answer=Cut.SHORT), NetworkError, True),
        (Fault(answer=Cut.SILENT), NetworkError, True),
        (Fault(passes=False, answer=Cut.SILENT), NetworkError, False),
        (Fault(passes=False, answer=Answer(404, "NotFound")), NotFound, False),
        (Fault(passes=False, answer=Answer(201)), None, False),
        (Fault(answer=Answer(500)), APIError, True),
    ],
)
def test_a_binding_and_what_becomes_of_it(fault: Fault, error: type[Exception] | None, acted: bool) -> None:
    script = Script(fault)

    async def act(client: Client, server: DevServer, proxy: Proxy) -> None:
        uid = add_pod(server, "a")
        request = requests.bind_pod("default", "a", uid, "n1")
        if error is None:
            await client.send(request)
        else:
            with pytest.raises(error):
                await client.send(request)
        assert node_of(server, "a") == ("n1" if acted else "")

    took = through(script, act)
    assert script.seen == ["POST /api/v1/namespaces/default/pods/a/binding"]
    assert script.answers == ([201] if acted else [])
    silent = fault.answer is Cut.SILENT
    assert took == pytest.approx(30.0 if silent else fault.delay + fault.late, abs=1.0)


def test_the_servers_wish_for_a_pause_arrives() -> None:
    async def act(client: Client, server: DevServer, proxy: Proxy) -> None:
        with pytest.raises(TooManyRequests) as caught:
            await client.send(requests.list_page(POD), deadline=1.0)
        assert caught.value.retry_after == 7.0

    through(Script(Fault(passes=False, answer=Answer(429, "TooManyRequests", retry_after=7))), act)


async def watched(client: Client, server: DevServer) -> tuple[list[str], Exception | None]:
    """What a watch tells of two pods, and how it ends."""
    stream = await client.open_watch(requests.watch(POD, version=str(server.store.revision), timeout=5), idle=1000.0)
    add_pod(server, "a")
    add_pod(server, "b")
    told: list[str] = []
    problem: Exception | None = None
    try:
        while events := await stream.read():
            told.extend(name_in(event) for event in events)
    except (APIError, NetworkError) as error:
        problem = error
    stream.close()
    return told, problem


def name_in(event: WatchEvent) -> str:
    return str(msgspec.json.decode(event.object)["metadata"].get("name", event.type))


def _again(lines: list[bytes]) -> Tampered:
    return Tampered([lines[0], lines[0], *lines[1:]], delay=1.0)


@pytest.mark.parametrize(
    ("tamper", "told", "problem"),
    [
        (Tampered, ["a", "b"], type(None)),
        (_again, ["a", "a", "b"], type(None)),
        (lambda lines: Tampered(lines[::-1]), ["b", "a"], type(None)),
        (lambda lines: Tampered(lines[:1], end=Cut.RESET), ["a"], NetworkError),
        (lambda lines: Tampered(lines, end=Cut.SHORT), ["a"], NetworkError),
        (lambda lines: Tampered(lines, end=Cut.SILENT), ["a", "b"], NetworkError),
        (lambda lines: Tampered([lines[0], gone_line()], end=Cut.RESET), ["a"], Gone),
    ],
)
def test_a_watch_and_what_becomes_of_it(
    tamper: Callable[[list[bytes]], Tampered], told: list[str], problem: type[Exception]
) -> None:
    async def act(client: Client, server: DevServer, proxy: Proxy) -> None:
        seen, ended = await watched(client, server)
        assert [name for name in seen if name != "BOOKMARK"] == told
        assert isinstance(ended, problem)

    through(Script(lines=tamper), act)


def test_nobody_gets_through_while_it_is_down_and_then_on_the_same_port() -> None:
    async def act(client: Client, server: DevServer, proxy: Proxy) -> None:
        before = proxy.url
        await client.send(requests.list_page(POD))
        await proxy.down()
        with pytest.raises(NetworkError) as caught:
            await client.send(requests.list_page(POD))
        assert not caught.value.sent
        await proxy.up()
        assert proxy.url == before
        await client.send(requests.list_page(POD))

    through(Script(), act)


def test_what_waits_in_a_proxy_that_goes_down_never_arrives() -> None:
    async def act(client: Client, server: DevServer, proxy: Proxy) -> None:
        uid = add_pod(server, "a")
        binding = asyncio.ensure_future(client.send(requests.bind_pod("default", "a", uid, "n1")))
        await asyncio.sleep(1.0)
        await proxy.down()
        with suppress(NetworkError):
            await binding
        await asyncio.sleep(10.0)
        assert node_of(server, "a") == ""

    through(Script(Fault(delay=5.0)), act)
