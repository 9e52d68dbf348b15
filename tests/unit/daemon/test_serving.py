from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web

from kube_pyscheduler.daemon.health import Check, Health
from kube_pyscheduler.daemon.metrics import Metrics
from kube_pyscheduler.daemon.serving import Guard, Listener, ListenError, make_app

UNHEALTHY = Health({"livez": (), "readyz": (Check("informer-sync", lambda: "pods: not listed yet"),)})


class NobodyMayPass:
    async def refusal(self, request: web.Request) -> web.Response | None:
        return web.Response(status=403, text=f"no {request.path}")


@contextlib.asynccontextmanager
async def serving(health: Health = UNHEALTHY, guard: Guard | None = None) -> AsyncIterator[aiohttp.ClientSession]:
    listener = Listener(make_app(health, Metrics(), guard=guard, config=lambda: {"parallelism": 16}))
    host, port = await listener.start("127.0.0.1", 0)
    try:
        async with aiohttp.ClientSession(f"http://{host}:{port}") as session:
            yield session
    finally:
        await listener.stop()


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/livez", 200, "ok"),
        ("/livez?verbose", 200, "[+]ping ok\nlivez check passed\n"),
        ("/livez/ping", 200, "ok"),
        ("/readyz", 500, "[-]informer-sync failed: reason withheld\nreadyz check failed\n"),
        ("/readyz?exclude=informer-sync", 200, "ok"),
        ("/readyz/informer-sync", 500, "internal server error: pods: not listed yet\n"),
        ("/readyz/nonsense", 404, "404 page not found\n"),
        ("/healthz", 404, "404 page not found\n"),
        ("/", 404, "404 page not found\n"),
        ("/configz", 200, '{"componentconfig": {"parallelism": 16}}'),
    ],
)
async def test_paths(path: str, status: int, text: str) -> None:
    async with serving() as session, session.get(path) as response:
        assert (response.status, await response.text()) == (status, text)
        assert response.headers["X-Content-Type-Options"] == "nosniff"


async def test_metrics_are_text() -> None:
    async with serving() as session, session.get("/metrics") as response:
        assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        assert "scheduler_preemption_attempts_total 0.0" in await response.text()


async def test_nothing_can_be_posted() -> None:
    async with serving() as session, session.post("/metrics") as response:
        assert response.status == 405


async def test_the_guard_is_asked_first_also_about_paths_that_are_not_there() -> None:
    async with serving(guard=NobodyMayPass()) as session:
        for path in ("/metrics", "/livez", "/nonsense"):
            async with session.get(path) as response:
                assert (response.status, await response.text()) == (403, f"no {path}")


async def test_a_port_in_use_is_said_in_a_sentence() -> None:
    app = make_app(UNHEALTHY, Metrics())
    first, second = Listener(app), Listener(make_app(UNHEALTHY, Metrics()))
    _, port = await first.start("127.0.0.1", 0)
    with pytest.raises(ListenError, match=f"cannot listen on 127.0.0.1 port {port}: Address already in use"):
        await second.start("127.0.0.1", port)
    await first.stop()


async def test_an_address_that_is_not_ours_is_said_in_a_sentence() -> None:
    with pytest.raises(ListenError, match=r"cannot listen on 192\.0\.2\.1 port 1: "):
        await Listener(make_app(UNHEALTHY, Metrics())).start("192.0.2.1", 1)


async def test_a_port_can_be_shared() -> None:
    first, second = Listener(make_app(UNHEALTHY, Metrics())), Listener(make_app(UNHEALTHY, Metrics()))
    _, port = await first.start("127.0.0.1", 0, share_port=True)
    assert await second.start("127.0.0.1", port, share_port=True) == ("127.0.0.1", port)
    await first.stop()
    await second.stop()
