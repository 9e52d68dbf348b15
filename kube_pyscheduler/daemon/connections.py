"""Ways to the API server: pools of connections with our credentials, and a count of what goes through them."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

from kube_pyscheduler.daemon.options import Options
from kube_pyscheduler.daemon.version import DECIDES_AS, VERSION
from kube_pyscheduler.transport.credentials import Credentials, Source
from kube_pyscheduler.transport.errors import NetworkError
from kube_pyscheduler.transport.requests import Request
from kube_pyscheduler.transport.session import Reply, Session

USER_AGENT = f"kube-pyscheduler/{VERSION} (Kubernetes {DECIDES_AS})"


class Counting(Protocol):
    def request(self, code: str, method: str, host: str) -> None:
        """A request was answered with ``code``, or not at all: ``<error>``."""


class CountedSession(Session):
    """Tells ``observer`` of every request."""

    def __init__(self, credentials: Credentials, observer: Counting) -> None:
        super().__init__(credentials, user_agent=USER_AGENT)
        self._observer = observer
        self._host = urlsplit(credentials.access.server).netloc

    async def request(self, request: Request, deadline: float) -> Reply:
        try:
            reply = await super().request(request, deadline)
        except NetworkError:
            self._observer.request("<error>", request.method, self._host)
            raise
        self._observer.request(str(reply.status), request.method, self._host)
        return reply


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
