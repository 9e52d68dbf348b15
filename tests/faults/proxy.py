"""A proxy in front of an API server that does to each request what a script says, down to the bytes.

It speaks HTTP/1.1 by hand, because what it has to send is what no library would.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, NamedTuple, Protocol, Self
from urllib.parse import parse_qsl, urlsplit

LIMIT = 64 * 1024 * 1024
"""Bytes of a head or a line."""

KEEPALIVE = 60.0
"""Seconds after which a silent connection is reset, as a kernel that probes its peer would."""


class Asked(NamedTuple):
    """A request. ``number`` counts them; ``query`` is decoded; ``body`` is as it came; ``token``: whose it is."""

    number: int
    method: str
    path: str
    query: dict[str, str]
    body: bytes
    token: str = ""

    @property
    def is_watch(self) -> bool:
        return "watch" in self.query

    def __str__(self) -> str:
        return f"{'WATCH' if self.is_watch else self.method} {self.path}"


class Cut(Enum):
    """How a connection ends badly."""

    RESET = auto()
    """At once."""
    SHORT = auto()
    """In the middle of the body, or of a chunk."""
    SILENT = auto()
    """Nothing comes any more; reset after ``KEEPALIVE`` seconds."""


class Answer(NamedTuple):
    """An answer that the server did not give."""

    status: int
    reason: str = ""
    retry_after: int | None = None

    def encode(self) -> bytes:
        body = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": f"injected {self.status}",
            "reason": self.reason,
            "code": self.status,
        }
        more = "" if self.retry_after is None else f"Retry-After: {self.retry_after}\r\n"
        return _message(f"HTTP/1.1 {self.status} Injected\r\nContent-Type: application/json\r\n{more}", body)


@dataclass(frozen=True, slots=True)
class Fault:
    """What becomes of a request: it is passed on after ``delay`` seconds, or never; the answer comes ``late`` seconds
    after that, and is the server's own where ``answer`` is None."""

    delay: float = 0.0
    passes: bool = True
    late: float = 0.0
    answer: Answer | Cut | None = None


@dataclass(frozen=True, slots=True)
class Tampered:
    """What becomes of the lines that a watch brought together: sent after ``delay`` seconds, followed by ``end``
    (``Cut.SHORT``: amid the last line)."""

    lines: Sequence[bytes]
    delay: float = 0.0
    end: Cut | None = None


FAITHFUL = Fault()


class Witness(Protocol):
    """Who is told what happens."""

    def saw(self, asked: Asked) -> None:
        """A request came."""

    def did(self, asked: Asked, what: Fault | Tampered) -> None:
        """Something was done to it, or to what a watch brought."""

    def answered(self, asked: Asked, status: int) -> None:
        """The server answered with this status, whatever becomes of the answer."""


class Script(Protocol):
    def request(self, asked: Asked) -> Fault:
        """What to do with a request, watches included."""

    def lines(self, asked: Asked, lines: list[bytes]) -> Tampered:
        """What to do with lines of a watch."""


def gone_line(message: str = "too old resource version") -> bytes:
    """The line with which a server ends a watch whose version it does not know any more."""
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 410}
    return json.dumps({"type": "ERROR", "object": {**status, "reason": "Expired", "message": message}}).encode() + b"\n"


class Proxy:
    """``async with Proxy(url, script, witness) as proxy``."""

    def __init__(self, server_url: str, script: Script, witness: Witness) -> None:
        parts = urlsplit(server_url)
        self._upstream = (parts.hostname, parts.port)
        self._script = script
        self._witness = witness
        self._number = 0
        self._port = 0
        self._open: dict[asyncio.StreamWriter, asyncio.Task[Any]] = {}
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def up(self) -> None:
        """Listen, on the same port as before."""
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port, limit=LIMIT)
            self._port = self._server.sockets[0].getsockname()[1]

    async def down(self) -> None:
        """Refuse connections, and break those that are open: what was not passed on yet never will be."""
        if self._server is not None:
            self._server.close()
            self._server = None
        await self.reset()

    async def reset(self) -> None:
        """Break all connections."""
        tasks = tuple(self._open.values())
        for writer, task in tuple(self._open.items()):
            writer.transport.abort()
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def __aenter__(self) -> Self:
        await self.up()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.down()

    # One connection

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open[writer] = task
        upstream: asyncio.StreamWriter | None = None
        try:
            source, upstream = await asyncio.open_connection(*self._upstream, limit=LIMIT)
            while await self._exchange(reader, writer, source, upstream):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            # Whoever broke off; and a cancelled handler is one that has been told to.
            pass
        finally:
            del self._open[writer]
            writer.transport.abort()
            if upstream is not None:
                upstream.transport.abort()

    async def _exchange(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        source: asyncio.StreamReader,
        upstream: asyncio.StreamWriter,
    ) -> bool:
        """One request and its answer; whether the connection goes on."""
        head = await reader.readuntil(b"\r\n\r\n")
        length = _length(head)
        body = await reader.readexactly(length) if length else b""
        asked = self._read(head, body)
        self._witness.saw(asked)
        fault = self._script.request(asked)
        if fault != FAITHFUL:
            self._witness.did(asked, fault)
        if fault.delay:
            await asyncio.sleep(fault.delay)
        status, answer = 0, b""
        if fault.passes:
            upstream.write(head + body)
            answer = await source.readuntil(b"\r\n\r\n")
            status = int(answer.split(b" ", 2)[1])
            self._witness.answered(asked, status)
            if b"chunked" in answer and fault.answer is None:
                await self._stream(asked, answer, reader, writer, source)
                return False
            answer += await source.readexactly(_length(answer))
        if fault.late:
            await asyncio.sleep(fault.late)
        return await self._reply(fault.answer, answer, reader, writer)

    async def _reply(
        self, wanted: Answer | Cut | None, answer: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        if isinstance(wanted, Cut):
            if wanted is Cut.SHORT:
                writer.write(answer[: max(len(answer) - 20, 1)])
                await writer.drain()
                # Not aborted but closed, so that what was written arrives.
                writer.close()
            elif wanted is Cut.SILENT:
                await _until_closed(reader)
            return False
        writer.write(answer if wanted is None else wanted.encode())
        await writer.drain()
        return True

    async def _stream(
        self,
        asked: Asked,
        head: bytes,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        source: asyncio.StreamReader,
    ) -> None:
        writer.write(head)
        closed = asyncio.ensure_future(reader.read())
        pump = asyncio.ensure_future(self._pump(asked, reader, writer, source))
        try:
            await asyncio.wait((closed, pump), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (closed, pump):
                task.cancel()
            await asyncio.wait((closed, pump))

    async def _pump(
        self, asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, source: asyncio.StreamReader
    ) -> None:
        rest = b""
        while True:
            size = int(await source.readline(), 16)
            chunk = await source.readexactly(size + 2)
            if size == 0:
                writer.write(b"0\r\n\r\n")
                writer.close()
                return
            *lines, rest = (rest + chunk[:-2]).split(b"\n")
            if not lines:
                continue
            whole = [line + b"\n" for line in lines]
            tampered = self._script.lines(asked, whole)
            if tampered != Tampered(whole):
                self._witness.did(asked, tampered)
            if tampered.delay:
                await asyncio.sleep(tampered.delay)
            data = b"".join(tampered.lines)
            framed = f"{len(data):x}\r\n".encode() + data + b"\r\n"
            if tampered.end is Cut.SHORT:
                writer.write(framed[:-20])
                writer.close()
                return
            if data:
                writer.write(framed)
            if tampered.end is Cut.SILENT:
                await asyncio.sleep(KEEPALIVE)
            if tampered.end is not None:
                writer.close()
                return

    def _read(self, head: bytes, body: bytes) -> Asked:
        method, target, _ = head.split(b" ", 2)
        path, _, query = target.decode().partition("?")
        self._number += 1
        token = _header(head, b"authorization").removeprefix(b"Bearer ").decode()
        return Asked(self._number, method.decode(), path, dict(parse_qsl(query)), body, token)


async def _until_closed(reader: asyncio.StreamReader) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(KEEPALIVE):
            await reader.read()


def _length(head: bytes) -> int:
    return int(_header(head, b"content-length") or 0)


def _header(head: bytes, wanted: bytes) -> bytes:
    """Its value, empty without."""
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == wanted:
            return value.strip()
    return b""


def _message(head: str, body: dict[str, Any]) -> bytes:
    encoded = json.dumps(body).encode()
    return f"{head}Content-Length: {len(encoded)}\r\n\r\n".encode() + encoded
