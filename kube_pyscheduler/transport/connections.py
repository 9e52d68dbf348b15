"""Kept HTTP/1.1 connections for short requests, with as little work for each request as possible.

Every scheduled pod costs two requests, and a general HTTP client spends more on one of them than a scheduling cycle
takes. Here the head of a request is put together once for all requests alike, a C parser reads the answer, and the
body is handed on as it came. Watches, which stream, are not sent through here.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Any, Final, NamedTuple, cast

import httptools

from kube_pyscheduler.transport.errors import NetworkError

KEEP_IDLE: Final = 60.0
"""Seconds for which an unused connection may be used again: less than the 90 s after which API servers close theirs,
because a request that crosses such a close has an unknown fate."""

CONNECT_TIMEOUT: Final = 30.0
"""Seconds to connect. Source: apimachinery/pkg/util/net/http.go, the dialer of SetTransportDefaults."""


class Reply(NamedTuple):
    """An answer. ``retry_after`` is the header's value in seconds, None without."""

    status: int
    body: bytes
    retry_after: float | None = None


class Stale(NetworkError):
    """A kept connection turned out to be closed: the request has most likely not been looked at."""


class Connections:
    """Connections to one server, as many as there are requests at a time: callers bound their concurrency."""

    def __init__(self, host: str, port: int, *, tls: ssl.SSLContext | None, server_name: str = "") -> None:
        self._host = host
        self._port = port
        self._tls = tls
        self._server_name = server_name
        self._loop = asyncio.get_running_loop()
        self._idle: list[_Connection] = []
        """The one used last is at the end and is used first, so that a quiet time lets the others end."""
        self._open: set[_Connection] = set()

    async def send(self, request: bytes, deadline: float, *, fresh: bool = False) -> Reply:
        """Send a whole request and return the answer to it, within ``deadline`` seconds; with ``fresh`` on a new
        connection. Raises NetworkError, Stale among them."""
        connection = (None if fresh else self._take()) or await self._connect(deadline)
        answer = connection.send(request)
        alarm = self._loop.call_later(deadline, connection.fail, f"no answer within {deadline:.0f} s")
        try:
            return await answer
        except asyncio.CancelledError:
            connection.fail("given up")
            raise
        finally:
            alarm.cancel()

    async def close(self) -> None:
        """Close all connections, also those in use."""
        waiting = [connection.lost for connection in self._open]
        for connection in tuple(self._open):
            connection.fail("the session was closed")
        if waiting:
            await asyncio.wait(waiting)

    def _take(self) -> _Connection | None:
        """The connection used last, unless it has been idle for so long that the server may be closing it."""
        oldest = self._loop.time() - KEEP_IDLE
        while self._idle:
            connection = self._idle.pop()
            if connection.idle_since >= oldest and not connection.is_closing():
                return connection
            connection.fail("idle for too long")
        return None

    async def _connect(self, deadline: float) -> _Connection:
        try:
            async with asyncio.timeout(min(deadline, CONNECT_TIMEOUT)):
                _, connection = await self._loop.create_connection(
                    lambda: _Connection(self),
                    self._host,
                    self._port,
                    ssl=self._tls,
                    server_hostname=(self._server_name or None) if self._tls else None,
                )
        except (OSError, TimeoutError) as error:
            why = str(error) or "timed out"
            raise NetworkError(f"cannot connect to {self._host}:{self._port}: {why}", sent=False) from error
        return connection

    # -- called by the connections ---------------------------------------------------------------------------------

    def opened(self, connection: _Connection) -> None:
        self._open.add(connection)

    def free(self, connection: _Connection) -> None:
        connection.idle_since = self._loop.time()
        self._idle.append(connection)

    def ended(self, connection: _Connection) -> None:
        self._open.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)


class _Connection(asyncio.Protocol):
    """One connection: one request at a time."""

    def __init__(self, owner: Connections) -> None:
        loop = asyncio.get_running_loop()
        self.idle_since = 0.0
        self.lost: asyncio.Future[None] = loop.create_future()
        self._owner = owner
        self._new_future = loop.create_future
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport
        self._answer: asyncio.Future[Reply] | None = None
        self._requests = 0
        self._begun = False
        self._retry_after: float | None = None
        self._body: list[bytes] = []

    def send(self, request: bytes) -> asyncio.Future[Reply]:
        """Write the request; the future of its answer, which may fail with NetworkError."""
        answer: asyncio.Future[Reply] = self._new_future()
        self._answer = answer
        self._requests += 1
        self._begun = False
        self._transport.write(request)
        return answer

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def fail(self, why: str) -> None:
        """End the connection and the request on it."""
        self._fail(why)
        self._transport.abort()

    def _fail(self, why: str, cause: BaseException | None = None, *, stale: bool = False) -> None:
        answer, self._answer = self._answer, None
        if answer is not None and not answer.done():
            error = (Stale if stale else NetworkError)(why, sent=True)
            error.__cause__ = cause
            answer.set_exception(error)

    # -- asyncio's calls -------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        keep_alive(transport.get_extra_info("socket"))
        self._owner.opened(self)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(f"not an HTTP answer: {error}", error)
            self._transport.abort()

    def connection_lost(self, error: BaseException | None) -> None:
        self._owner.ended(self)
        stale = self._requests > 1 and not self._begun
        self._fail(str(error) if error else "the server closed the connection", error, stale=stale)
        if not self.lost.done():
            self.lost.set_result(None)

    # -- the parser's calls ----------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._begun = True
        self._retry_after = None
        self._body = []

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"retry-after" and value.isdigit():
            self._retry_after = float(value)

    def on_body(self, data: bytes) -> None:
        self._body.append(data)

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:
            return
        answer, self._answer = self._answer, None
        if answer is None or not self._parser.should_keep_alive():
            self._transport.close()
        else:
            self._owner.free(self)
        if answer is not None and not answer.done():
            body = self._body
            answer.set_result(Reply(status, body[0] if len(body) == 1 else b"".join(body), self._retry_after))


def keep_alive(connected: Any) -> None:
    """Make a socket notice a dead peer: it probes after 30 s of silence, every 10 s, and gives up after the third.

    Source: the 30 s of client-go's dialer; its HTTP/2 pings find a dead connection in 45 s.
    """
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
