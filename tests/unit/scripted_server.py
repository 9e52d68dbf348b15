"""An HTTP server on a real socket that answers what the test has scripted, in order, and remembers what it was asked.

A request for which nothing is scripted (yet) waits until something is.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Self

import pytest
from aiohttp import web

from kube_pyscheduler.kit.clock import Clock, RealClock
from kube_pyscheduler.transport.credentials import Access, Credentials, Source
from kube_pyscheduler.transport.session import Session

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Seen(NamedTuple):
    """A request. ``method`` is WATCH for a GET with ``watch`` in its query."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


def reply(code: int, body: Any = None, **headers: str) -> Answer:
    """Answer with JSON (bytes are sent as they are)."""

    async def answer(_: web.Request) -> web.Response:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return web.Response(
            status=code,
            body=data,
            content_type="application/json",
            headers={name.replace("_", "-"): value for name, value in headers.items()},
        )

    return answer


def status(code: int, reason: str, message: str = "", **headers: str) -> Answer:
    """Answer with a failure Status."""
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return reply(code, {**body, "reason": reason, "message": message, "code": code}, **headers)


async def drop(request: web.Request) -> web.StreamResponse:
    """Reset the connection instead of answering."""
    assert request.transport is not None
    request.transport.abort()
    await asyncio.Event().wait()
    raise AssertionError("unreachable")


class LiveWatch:
    """The answer to a watch that the test goes on writing to."""

    def __init__(self, *events: dict[str, Any]) -> None:
        self._chunks: asyncio.Queue[bytes | str] = asyncio.Queue()
        for event in events:
            self.send(event)

    def send(self, event: dict[str, Any]) -> None:
        self.send_bytes(json.dumps(event).encode() + b"\n")

    def send_bytes(self, chunk: bytes) -> None:
        self._chunks.put_nowait(chunk)

    def end(self) -> None:
        self._chunks.put_nowait("end")

    def reset(self) -> None:
        self._chunks.put_nowait("reset")

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        while True:
            chunk = await self._chunks.get()
            if isinstance(chunk, bytes):
                await response.write(chunk)
            elif chunk == "end":
                return response
            else:
                await drop(request)


class ScriptedServer:
    """``async with ScriptedServer() as server``; ``url`` is its address."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.url = ""
        self._answers: dict[tuple[str, str], deque[Answer]] = defaultdict(deque)
        self._changed = asyncio.Condition()
        self._handlers: set[asyncio.Task[Any]] = set()
        self._runner: web.AppRunner

    def script(self, method: str, path: str, *answers: Answer) -> None:
        """Answer the next requests of this kind so. Call it again to append."""
        self._answers[method, path].extend(answers)
        self._wake()

    async def saw(self, method: str, path: str, count: int = 1) -> list[Seen]:
        """The requests of this kind, once there were at least ``count``."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self._matching(method, path)) >= count)
        return self._matching(method, path)

    def count(self, method: str, path: str) -> int:
        return len(self._matching(method, path))

    def _matching(self, method: str, path: str) -> list[Seen]:
        return [seen for seen in self.seen if (seen.method, seen.path) == (method, path)]

    def _wake(self) -> None:
        async def notify() -> None:
            async with self._changed:
                self._changed.notify_all()

        self._notifying = asyncio.ensure_future(notify())

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        try:
            return await self._answer(request)
        finally:
            self._handlers.discard(task)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        method = "WATCH" if "watch" in request.query else request.method
        raw = await request.read()
        body = json.loads(raw) if raw else None
        self.seen.append(Seen(method, request.path, dict(request.query), dict(request.headers), body))
        self._wake()
        answers = self._answers[method, request.path]
        async with self._changed:
            await self._changed.wait_for(lambda: len(answers) > 0)
            answer = answers.popleft()
        return await answer(request)

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, handle_signals=False, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._handlers:
            task.cancel()
        await self._runner.cleanup()


def session_to(url: str, *, clock: Clock | None = None, **access: Any) -> Session:
    """A session to this server, with fixed credentials."""
    fixed = Credentials(Source(master=url), Access(server=url, **access), clock or RealClock())
    return Session(fixed, user_agent="test")


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged, a text a record with its fields."""
    return [
        f"{record.getMessage()} {getattr(record, 'fields', {})} {record.exc_text or ''}" for record in caplog.records
    ]


class Sleeps:
    """Stands in for ``asyncio.sleep``: remembers the delays and lets no time pass."""

    def __init__(self) -> None:
        self.delays: list[float] = []

    async def __call__(self, delay: float) -> None:
        self.delays.append(delay)
        await asyncio.sleep(0)
