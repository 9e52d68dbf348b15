"""Sends requests: limits their rate, retries what may be retried, turns refusals into errors."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from kube_pyscheduler.kit.backoff import Backoff
from kube_pyscheduler.kit.clock import Clock, RealClock
from kube_pyscheduler.transport import errors
from kube_pyscheduler.transport.limiter import TokenBucket
from kube_pyscheduler.transport.requests import Request
from kube_pyscheduler.transport.session import Reply, Session
from kube_pyscheduler.transport.watch import WatchStream

DEADLINE: Final = 30.0
"""Seconds for an ordinary request and its retries, from the moment the rate limit lets it go."""

REPEATS: Final = (0.05, 1.0)
"""Seconds before a request is sent again, at first and at most, where the server asks for less than that."""


class Sender(Protocol):
    """What sends ordinary requests: a Client, or what stands in for one."""

    async def send(self, request: Request, *, deadline: float = DEADLINE) -> bytes:
        """See ``Client.send``."""


class Client:
    """A way to an API server with a rate limit of its own. Several clients may share a session.

    ``may_write`` is asked right before anything but a GET is sent, after any wait for the rate limit; where it says no,
    the request fails as one that was never sent.

    A request is sent again when the answer is 429 with Retry-After (the server refused to look at it) or, if it is
    idempotent, 5xx with Retry-After. Everything else is the caller's to decide: only it knows what a second try does.
    """

    def __init__(
        self,
        session: Session,
        *,
        limiter: TokenBucket | None = None,
        may_write: Callable[[], bool] | None = None,
        clock: Clock | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._session = session
        self._limiter = limiter
        self._may_write = may_write
        self._clock = clock or RealClock()
        self._sleep = sleep

    async def send(self, request: Request, *, deadline: float = DEADLINE) -> bytes:
        """The body of a 2xx answer, as it came. Raises APIError for any other answer, NetworkError for none."""
        await self._turn(request)
        end = self._clock.monotonic() + deadline
        backoff = Backoff(*REPEATS)
        reply = await self._session.request(request, deadline)
        while reply.status >= 300:
            asked = reply.retry_after
            wait = max(asked or 0.0, backoff.next())
            if asked is None or self._clock.monotonic() + wait >= end or not _may_repeat(request, reply):
                raise errors.from_body(reply.status, reply.body, retry_after=asked)
            await self._sleep(wait)
            await self._turn(request)
            reply = await self._session.request(request, max(end - self._clock.monotonic(), 0.1))
        return reply.body

    async def open_watch(self, request: Request, *, idle: float) -> WatchStream:
        """The stream that answers a watch; ``idle`` seconds of silence break it. Raises as ``send``, never retries."""
        await self._turn(request)
        stream = await self._session.stream(request, idle)
        if stream.status < 300:
            return WatchStream(stream)
        try:
            reply = await stream.read_all()
        finally:
            stream.close()
        raise errors.from_body(reply.status, reply.body, retry_after=reply.retry_after)

    async def _turn(self, request: Request) -> None:
        """Wait until the request may be sent. Raises NetworkError where it may not."""
        if self._limiter is not None:
            await self._limiter.wait()
        if self._may_write is not None and request.method != "GET" and not self._may_write():
            raise errors.MayNotWrite(f"{request.method} {request.path}: we may not write any more")


def _may_repeat(request: Request, reply: Reply) -> bool:
    return reply.status == 429 or (reply.status >= 500 and request.idempotent)
