"""Starts and stops a server on a real socket."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from aiohttp import web

from kube_pyscheduler.devserver.http import application
from kube_pyscheduler.devserver.http.context import Context
from kube_pyscheduler.devserver.registry import Registry
from kube_pyscheduler.devserver.resources import ResourceTable
from kube_pyscheduler.devserver.store import Store


@dataclass(slots=True)
class DevServer:
    """A running server. Read objects from ``store``, write them through ``registry`` (admission applies)."""

    url: str
    token: str
    """Bearer token of an administrator."""
    store: Store
    registry: Registry
    context: Context
    runner: web.AppRunner

    async def stop(self) -> None:
        """End all watches and close the socket."""
        for watch in tuple(self.context.watches):
            watch.close()
        await self.runner.cleanup()


async def serve(
    *, address: str = "127.0.0.1", port: int = 0, bookmark_seconds: float = 60.0, history_limit: int = 20_000
) -> DevServer:
    """Start a server; port 0 takes a free one."""
    store = Store(history_limit=history_limit)
    table = ResourceTable()
    registry = Registry(store, table)
    context = Context(store, table, registry, bookmark_seconds)
    runner = web.AppRunner(application.build(context), handler_cancellation=True, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, address, port)
    await site.start()
    bound_port = runner.addresses[0][1]
    return DevServer(
        url=f"http://{address}:{bound_port}",
        token=secrets.token_urlsafe(24),
        store=store,
        registry=registry,
        context=context,
        runner=runner,
    )
