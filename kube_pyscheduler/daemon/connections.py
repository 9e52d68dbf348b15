"""Ways to the API server: pools of connections with our credentials, and a count of what goes through them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Protocol, TypeVar
from urllib.parse import urlsplit

from kube_pyscheduler.daemon.options import Options
from kube_pyscheduler.daemon.version import DECIDES_AS, VERSION
from kube_pyscheduler.transport.credentials import Credentials, Source
from kube_pyscheduler.transport.errors import NetworkError
from kube_pyscheduler.transport.requests import Request
from kube_pyscheduler.transport.session import Reply, Session, Stream

Answer = TypeVar("Answer", Reply, Stream)

USER_AGENT = f"kube-pyscheduler/{VERSION} (Kubernetes {DECIDES_AS})"


class Counting(Protocol):
    def request(self, code: str, method: str, host: str, seconds: float) -> None:
        """A request was answered with ``code`` after so long, or not at all: ``<error>``. A watch is answered when it
        begins."""


class CountedSession(Session):
    """Tells ``observer`` of every request."""

    def __init__(self, credentials: Credentials, observer: Counting) -> None:
        super().__init__(credentials, user_agent=USER_AGENT)
        self._observer = observer
        self._host = urlsplit(credentials.access.server).netloc

    async def request(self, request: Request, deadline: float) -> Reply:
        return await self._observed(request, super().request, deadline)

    async def stream(self, request: Request, idle: float) -> Stream:
        return await self._observed(request, super().stream, idle)

    async def _observed(
        self, request: Request, send: Callable[[Request, float], Awaitable[Answer]], seconds: float
    ) -> Answer:
        now = self._credentials.clock.monotonic
        start = now()
        try:
            answer = await send(request, seconds)
        except NetworkError:
            self._observer.request("<error>", request.method, self._host, now() - start)
            raise
        self._observer.request(str(answer.status), request.method, self._host, now() - start)
        return answer


@dataclass(frozen=True, slots=True)
class Sessions:
    """``scheduler``: its own way to the API server. The others are for the reviews of who reads the secure port; they
    may be the same."""

    scheduler: Session
    token_reviews: Session
    access_reviews: Session


async def connect(options: Options, observer: Counting, stack: AsyncExitStack) -> Sessions:
    """Read the credentials and make the pools of connections; ``stack`` closes them. Raises CredentialsError."""

    async def session(source: Source) -> Session:
        return await stack.enter_async_context(CountedSession(await Credentials.read(source), observer))

    own = options.config.settings.client_connection.kubeconfig
    scheduler = await session(Source(own, options.master))
    return Sessions(
        scheduler,
        *[
            scheduler if path in ("", own) else await session(Source(path))
            for path in (options.authentication_kubeconfig, options.authorization_kubeconfig)
        ],
    )
