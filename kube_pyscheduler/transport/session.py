"""Everything that goes to one API server, with our credentials on it: short requests and watches.

Foreign exceptions end here: what the HTTP library raises becomes NetworkError.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Coroutine
from typing import Any, Final, Self
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

from kube_pyscheduler.kit.verbosity import Log
from kube_pyscheduler.transport.connections import CONNECT_TIMEOUT, KEEP_IDLE, Connections, Reply, Stale, keep_alive
from kube_pyscheduler.transport.credentials import Access, Credentials
from kube_pyscheduler.transport.errors import NetworkError
from kube_pyscheduler.transport.requests import JSON, Request

log = Log(__name__)

OLD_CONNECTIONS_LIFE: Final = 60.0
"""Seconds that requests may still use the old connections after the client certificate changed."""


class Session:
    """Use it as a context manager, or close it.

    Short requests go through our own lean connections, watches (and everything, where a proxy stands between) through
    aiohttp.
    """

    def __init__(self, credentials: Credentials, *, user_agent: str) -> None:
        self._credentials = credentials
        self._user_agent = user_agent
        self._access = credentials.access
        self._heads: dict[str, bytes] = {}
        self._background: set[asyncio.Task[Any]] = set()
        self._prefix: str
        self._lean: Connections
        self._http: aiohttp.ClientSession

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        for task in tuple(self._background):
            task.cancel()
        if self._background:
            await asyncio.wait(self._background)
        await _close(self._lean, self._http)

    async def request(self, request: Request, deadline: float) -> Reply:
        """Send and read the answer, whatever its status, within ``deadline`` seconds. A 401 is answered by renewing
        the credentials and sending once more. Raises NetworkError."""
        if self._credentials.due:
            self._in_background(self._renew(None))
        before = self._credentials.clock.monotonic()
        reply = await self._ask(request, deadline)
        if reply.status == 401:
            await self._renew(before)
            reply = await self._ask(request, deadline)
        return reply

    async def stream(self, request: Request, idle: float) -> Stream:
        """Send and return the open response; ``idle`` seconds of silence break it. Otherwise as ``request``."""
        if self._credentials.due:
            self._in_background(self._renew(None))
        before = self._credentials.clock.monotonic()
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT, sock_read=idle)
        response = await self._send(request, timeout)
        if response.status == 401:
            response.close()
            await self._renew(before)
            response = await self._send(request, timeout)
        return Stream(response)

    # -- short requests ------------------------------------------------------------------------------------------------

    async def _ask(self, request: Request, deadline: float) -> Reply:
        if self._access.proxy:
            return await self._ask_through_proxy(request, deadline)
        data = self._encode(request)
        try:
            try:
                return await self._lean.send(data, deadline)
            except Stale:
                if not request.idempotent:
                    raise
                return await self._lean.send(data, deadline, fresh=True)
        except NetworkError as error:
            raise NetworkError(f"{request.method} {request.path}: {error}", sent=error.sent) from error

    def _encode(self, request: Request) -> bytes:
        """The whole request as it goes out."""
        head = self._heads.get(request.content_type) or self._new_head(request.content_type)
        query = f"?{request.query}" if request.query else ""
        line = f"{request.method} {self._prefix}{request.path}{query} HTTP/1.1\r\n".encode("ascii")
        body = request.body
        if body is None:
            return b"%b%b\r\n" % (line, head)
        return b"%b%bContent-Length: %d\r\n\r\n%b" % (line, head, len(body), body)

    def _new_head(self, content_type: str) -> bytes:
        headers = {"Host": urlsplit(self._access.server).netloc, **self._headers(content_type)}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode("latin-1")
        self._heads[content_type] = head
        return head

    async def _ask_through_proxy(self, request: Request, deadline: float) -> Reply:
        response = await self._send(request, _total(deadline))
        stream = Stream(response)
        try:
            return await stream.read_all()
        finally:
            response.release()

    # -- through aiohttp -----------------------------------------------------------------------------------------------

    async def _send(self, request: Request, timeout: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        access = self._access
        target = f"{access.server}{request.path}?{request.query}" if request.query else access.server + request.path
        try:
            return await self._http.request(
                request.method,
                URL(target, encoded=True),
                data=request.body,
                headers=self._headers(request.content_type),
                timeout=timeout,
                allow_redirects=False,
                server_hostname=access.server_name or None,
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            sent = not isinstance(error, (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError))
            raise NetworkError(f"{request.method} {request.path}: {_describe(error)}", sent=sent) from error

    def _headers(self, content_type: str) -> dict[str, str]:
        headers = {"Accept": JSON, "Content-Type": content_type, "User-Agent": self._user_agent}
        if self._access.authorization:
            headers["Authorization"] = self._access.authorization
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
        self._heads.clear()
        if _connects_differently(old, new):
            log.info(0, "The certificates changed, opening new connections", server=new.server)
            lean, http = self._lean, self._http
            await self._open()
            self._in_background(_retire(lean, http))

    async def _open(self) -> None:
        access = self._access
        context = await asyncio.to_thread(access.ssl_context)
        parts = urlsplit(access.server)
        assert parts.hostname is not None, "credentials name a host"
        port = parts.port or (443 if parts.scheme == "https" else 80)
        self._prefix = parts.path
        self._lean = Connections(parts.hostname, port, tls=context, server_name=access.server_name)
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=context or True, limit=0, keepalive_timeout=KEEP_IDLE),
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
        connection = response.connection
        if connection is not None and connection.transport is not None:
            keep_alive(connection.transport.get_extra_info("socket"))

    async def read(self) -> bytes:
        """Some bytes, b"" at the end. Raises NetworkError."""
        try:
            return await self._response.content.readany()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise NetworkError(f"{self._response.url.path}: {_describe(error)}", sent=True) from error

    async def read_all(self) -> Reply:
        """The whole of a short answer. Raises NetworkError."""
        pieces: list[bytes] = []
        while piece := await self.read():
            pieces.append(piece)
        wish = self._response.headers.get("Retry-After", "")
        return Reply(self.status, b"".join(pieces), float(wish) if wish.isdecimal() else None)

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


async def _retire(lean: Connections, http: aiohttp.ClientSession) -> None:
    try:
        await asyncio.sleep(OLD_CONNECTIONS_LIFE)
    finally:
        await _close(lean, http)


async def _close(lean: Connections, http: aiohttp.ClientSession) -> None:
    await lean.close()
    await http.close()


@functools.lru_cache(maxsize=16)
def _total(deadline: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=deadline, sock_connect=CONNECT_TIMEOUT)


def _describe(error: BaseException) -> str:
    return str(error) or type(error).__name__
