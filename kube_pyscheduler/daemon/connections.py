"""Ways to the API server: one pool of connections, and a client with a rate limit of its own for each kind of work."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass

from kube_pyscheduler.daemon.options import Options
from kube_pyscheduler.daemon.version import DECIDES_AS, VERSION
from kube_pyscheduler.transport.client import Client
from kube_pyscheduler.transport.credentials import Credentials, Source
from kube_pyscheduler.transport.limiter import limiter
from kube_pyscheduler.transport.session import Session

USER_AGENT = f"kube-pyscheduler/{VERSION} (Kubernetes {DECIDES_AS})"


@dataclass(frozen=True, slots=True)
class Connections:
    """``scheduling``: what the scheduler reads and writes. ``events``: Event objects, which must not delay it.
    ``lease``: leader election, which nothing may delay. ``token_reviews`` and ``access_reviews``: the secure port's."""

    scheduling: Client
    events: Client
    lease: Client
    token_reviews: Client
    access_reviews: Client


async def connect(options: Options, stack: AsyncExitStack) -> Connections:
    """Read the credentials and make the clients; ``stack`` closes them. Raises CredentialsError."""
    connection = options.config.settings.client_connection
    session = await _session(Source(connection.kubeconfig, options.master), stack)
    reviews = [
        Client(session if path in ("", connection.kubeconfig) else await _session(Source(path), stack))
        for path in (options.authentication_kubeconfig, options.authorization_kubeconfig)
    ]
    return Connections(
        scheduling=Client(session, limiter=limiter(connection.qps, connection.burst)),
        events=Client(session, limiter=limiter(connection.qps, connection.burst)),
        lease=Client(session),
        token_reviews=reviews[0],
        access_reviews=reviews[1],
    )


async def _session(source: Source, stack: AsyncExitStack) -> Session:
    credentials = await Credentials.read(source)
    return await stack.enter_async_context(Session(credentials, user_agent=USER_AGENT))
