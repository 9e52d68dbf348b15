"""Starts and stops a server on a real socket."""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from aiohttp import web

from kube_pyscheduler.devserver.access.rbac import Authorizer
from kube_pyscheduler.devserver.access.reviews import Reviews
from kube_pyscheduler.devserver.access.tokens import Tokens
from kube_pyscheduler.devserver.access.users import ADMIN, ANONYMOUS, User
from kube_pyscheduler.devserver.bootstrap import bootstrap
from kube_pyscheduler.devserver.controllers.controllers import Controllers
from kube_pyscheduler.devserver.controllers.environment import Settings
from kube_pyscheduler.devserver.custom_resources import CustomResources
from kube_pyscheduler.devserver.garbage import GarbageCollector
from kube_pyscheduler.devserver.http import application
from kube_pyscheduler.devserver.http.context import Context
from kube_pyscheduler.devserver.registry import Registry
from kube_pyscheduler.devserver.resources import ResourceTable
from kube_pyscheduler.devserver.store import Store
from kube_pyscheduler.devserver.tls import make_tls
from kube_pyscheduler.kit.clock import Clock, RealClock

IDLE_SECONDS = 180
"""How long an idle connection stays open. Source: IdleTimeout in apiserver/pkg/server/secure_serving.go, doubled."""
STOP_SECONDS = 2
"""How long a stopping server waits for requests in flight."""


@dataclass(slots=True)
class DevServer:
    """A running server. Read objects from ``store``, write them through ``registry`` (admission applies)."""

    url: str
    token: str
    """Bearer token of an administrator."""
    authority: bytes
    """PEM text of the certificate authority to trust; empty without TLS."""
    store: Store
    registry: Registry
    context: Context
    runner: web.AppRunner
    controllers: Controllers | None
    """None where the server was asked for without."""

    async def stop(self) -> None:
        """Stop the controllers, end all watches and close the socket."""
        if self.controllers is not None:
            self.controllers.close()
        for watch in tuple(self.context.watches):
            watch.close()
        await self.runner.cleanup()


async def serve(
    *,
    address: str = "127.0.0.1",
    port: int = 0,
    tokens: Mapping[str, User] | None = None,
    rbac: bool = False,
    tls: bool = False,
    bookmark_seconds: float = 60.0,
    history_limit: int = 20_000,
    clock: Clock | None = None,
    controllers: Settings | None = None,
) -> DevServer:
    """Start a server; port 0 takes a free one.

    Clients of Kubernetes send their token over TLS only. So on a loopback address without ``tls`` a request without
    a token comes from an administrator; everywhere else it gets 401, but for health and version. A token that is
    sent must be known.

    ``tokens`` are static bearer tokens beside the administrator's; ``rbac`` makes Roles and bindings count, without
    it every known user may do everything; ``tls`` serves HTTPS with a fresh certificate; ``history_limit`` is in
    changes a resource (see ``Store``); ``controllers`` says which controllers and kubelets run, None is none.
    """
    clock = clock or RealClock()
    admin_token = secrets.token_urlsafe(24)
    store = Store(history_limit=history_limit)
    table = ResourceTable()
    registry = Registry(store, table, clock=clock)
    bootstrap(registry)
    GarbageCollector(registry)
    CustomResources(registry)
    known = Tokens(store, clock, {admin_token: ADMIN, **(tokens or {})})
    authorizer = Authorizer(store, enforce=rbac)
    reviews = Reviews(store, known, authorizer)
    server_tls = make_tls(address) if tls else None
    tokenless = ADMIN if not tls and _is_loopback(address) else ANONYMOUS
    context = Context(store, table, registry, known, authorizer, reviews, tokenless, bookmark_seconds)
    runner = web.AppRunner(
        application.build(context),
        handler_cancellation=True,
        access_log=None,
        keepalive_timeout=IDLE_SECONDS,
        shutdown_timeout=STOP_SECONDS,
    )
    await runner.setup()
    site = web.TCPSite(runner, address, port, ssl_context=server_tls.context if server_tls else None)
    await site.start()
    bound_port = runner.addresses[0][1]
    scheme = "https" if tls else "http"
    host = f"[{address}]" if ":" in address else address
    return DevServer(
        url=f"{scheme}://{host}:{bound_port}",
        token=admin_token,
        authority=server_tls.authority if server_tls else b"",
        store=store,
        registry=registry,
        context=context,
        runner=runner,
        controllers=None if controllers is None else Controllers(registry, controllers),
    )


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"
