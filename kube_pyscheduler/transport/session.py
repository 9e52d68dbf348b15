"""One pool of connections to one API server, with our credentials on every request.

Foreign exceptions end here: what aiohttp raises becomes NetworkError.
"""

from __future__ import annotations

import asyncio
import functools
import socket
from collections.abc import Coroutine
from typing import Any, Final, NamedTuple, Self

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from kube_pyscheduler.kit.verbosity import Log
from kube_pyscheduler.transport.credentials import Access, Credentials
from kube_pyscheduler.transport.errors import NetworkError, Silent
from kube_pyscheduler.transport.requests import JSON, Request

log = Log(__name__)

KEEP_IDLE: Final = 60.0
"""Seconds an unused connection stays open: less than the 90 s after which API servers close theirs, because a request
that crosses such a close has an unknown fate."""

CONNECT_TIMEOUT: Final = 30.0
"""Seconds to connect. Source: apimachinery/pkg/util/net/http.go, the dialer of SetTransportDefaults."""

OLD_POOL_LIFE: Final = 60.0
"""Seconds that requests may still use the old connections after the client certificate changed."""


class Reply(NamedTuple):
    """An answer. ``retry_after`` is the header's value in seconds, None without."""

    status: int
    body: bytes
    retry_after: float | None = None


class Session:
    """Use it as a context manager, or close it.

    It opens as many connections as there are requests in flight; callers bound their concurrency. A request that is
    not idempotent is never sent twice, not even when a kept connection turns out to be dead.
    """

    def __init__(self, credentials: Credentials, *, user_agent: str) -> None:
        self._credentials = credentials
        self._user_agent = user_agent
        self._access = credentials.access
        self._headers: dict[str, CIMultiDict[str]] = {}
        self._background: set[asyncio.Task[Any]] = set()
        self._http: aiohttp.ClientSession

    async def __aenter__(self) -> Self:
        self._http = await self._open_pool()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        for task in tuple(self._background):
            task.cancel()
        if self._background:
            await asyncio.wait(self._background)
        await self._http.close()

    async def request(self, request: Request, deadline: float) -> Reply:
        """Send and read the answer, whatever its status, within ``deadline`` seconds. A 401 is answered by renewing
        the credentials and sending once more. Raises NetworkError."""
        response = await self._send(request, _total(deadline))
        try:
            body = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise NetworkError(f"{request.method} {request.path}: {_describe(error)}", sent=True) from error
        if response.status < 300:
            return Reply(response.status, body)
        return Reply(response.status, body, _retry_after(response))

    async def stream(self, request: Request, idle: float) -> Stream:
        """Send and return the open response; ``idle`` seconds of silence break it. Otherwise as ``request``."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT, sock_read=idle)
        return Stream(await self._send(request, timeout))

    async def _send(self, request: Request, timeout: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        if self._credentials.due:
            self._in_background(self._renew(None))
        before = self._credentials.clock.monotonic()
        response = await self._send_once(request, timeout)
        if response.status == 401:
            response.close()
            await self._renew(before)
            response = await self._send_once(request, timeout)
        return response

    async def _send_once(self, request: Request, timeout: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        access = self._access
        target = f"{access.server}{request.path}?{request.query}" if request.query else access.server + request.path
        headers = self._headers.get(request.content_type) or self._new_headers(request.content_type)
        try:
            return await self._http.request(
                request.method,
                URL(target, encoded=True),
                data=request.body,
                headers=headers,
                timeout=timeout,
                allow_redirects=False,
                server_hostname=access.server_name or None,
            )
        except (aiohttp.ClientError, TimeoutError, OSError, RuntimeError) as error:
            # A RuntimeError is uvloop's way to say that a connection was closed meanwhile.
            sent = not isinstance(error, (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError))
            raise NetworkError(f"{request.method} {request.path}: {_describe(error)}", sent=sent) from error

    def _new_headers(self, content_type: str) -> CIMultiDict[str]:
        headers = CIMultiDict({"Accept": JSON, "Content-Type": content_type, "User-Agent": self._user_agent})
        if self._access.authorization:
            headers["Authorization"] = self._access.authorization
        self._headers[content_type] = headers
        return headers

    # -- credentials ---------------------------------------------------------------------------------------------------

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _renew(self, not_read_since: float | None) -> None:
        await self._credentials.renew(not_read_since=not_read_since)
        old, new = self._access, self._credentials.access
        if new == old:
            return
        self._access = new
        self._headers.clear()
        if _connects_differently(old, new):
            log.info(0, "The certificates changed, opening new connections", server=new.server)
            old_pool, self._http = self._http, await self._open_pool()
            self._in_background(_retire(old_pool))

    async def _open_pool(self) -> aiohttp.ClientSession:
        access = self._access
        context = await asyncio.to_thread(access.ssl_context)
        connector = aiohttp.TCPConnector(
            ssl=context or True, limit=0, keepalive_timeout=KEEP_IDLE, socket_factory=_open_socket
        )
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("Accept-Encoding",),
            auto_decompress=False,
            proxy=access.proxy or None,
        )


class Stream:
    """The body of an open response, in pieces as they arrive."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status

    async def read(self) -> bytes:
        """Some bytes, b"" at the end. Raises NetworkError, Silent when nothing came for too long."""
        try:
            return await self._response.content.readany()
        except aiohttp.ServerTimeoutError as error:
            raise Silent(f"{self._response.url.path}: nothing came for too long", sent=True) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise NetworkError(f"{self._response.url.path}: {_describe(error)}", sent=True) from error

    async def read_all(self) -> Reply:
        """The whole of a short answer. Raises NetworkError."""
        pieces: list[bytes] = []
        while piece := await self.read():
            pieces.append(piece)
        return Reply(self.status, b"".join(pieces), _retry_after(self._response))

    def close(self) -> None:
        self._response.close()


def _connects_differently(old: Access, new: Access) -> bool:
    return (new.digest, new.server, new.server_name, new.verify, new.proxy) != (
        old.digest,
        old.server,
        old.server_name,
        old.verify,
        old.proxy,
    )


async def _retire(pool: aiohttp.ClientSession) -> None:
    try:
        await asyncio.sleep(OLD_POOL_LIFE)
    finally:
        await pool.close()


class _Handed(socket.socket):
    """A socket whose descriptor belongs to the event loop, and is not closed with this object.

    Where a connection is reset while it is being set up, uvloop closes the descriptor and leaves this object behind.
    A second close would hit whoever has got the same number since, and libuv then aborts the process.
    """

    def __del__(self) -> None:
        self.detach()


def _open_socket(address: Any) -> socket.socket:
    """A socket that notices a dead peer: it probes after 30 s of silence, every 10 s, and gives up after the third.

    Source: the 30 s of client-go's dialer; its HTTP/2 pings find a dead connection in 45 s.
    """
    family, kind, protocol, *_rest = address
    opened = _Handed(family, kind, protocol)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            opened.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return opened


@functools.lru_cache(maxsize=16)
def _total(deadline: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=deadline, sock_connect=CONNECT_TIMEOUT)


def _retry_after(response: aiohttp.ClientResponse) -> float | None:
    wish = response.headers.get("Retry-After", "")
    return float(wish) if wish.isdecimal() else None


def _describe(error: BaseException) -> str:
    return str(error) or type(error).__name__
