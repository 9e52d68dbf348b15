"""The HTTP servers: health and metrics in the clear on 10251; over TLS on 10259 the same, the configuration, and what
the scheduler knows."""

from __future__ import annotations

import os
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from aiohttp import web

from kube_pyscheduler.daemon.health import Answer, Health

SHUTDOWN_SECONDS = 5.0
"""How long open requests may take when the server stops. Source: cmd/kube-scheduler/app/server.go."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Exposition(Protocol):
    def expose(self, accept: str = "") -> tuple[bytes, str]:
        """Metrics in the format of an Accept header, and its content type."""


class ListenError(Exception):
    """An address cannot be listened on."""


class Guard(Protocol):
    async def refusal(self, request: web.Request) -> web.Response | None:
        """The answer for who may not see this path; None for who may."""


def make_app(
    health: Health,
    metrics: Exposition,
    *,
    guard: Guard | None = None,
    config: Callable[[], Any] | None = None,
    more: Mapping[str, Handler] | None = None,
) -> web.Application:
    """``guard``: asked before every request. ``config``: what /configz shows; without it there is no such path.
    ``more``: further paths, for GET."""

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        refusal = await guard.refusal(request) if guard is not None else None
        response = refusal if refusal is not None else await handler(request)
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Cache-Control"] = "no-cache, private"
        return response

    async def whole_group(request: web.Request) -> web.Response:
        query = request.query
        return _text(
            health.answer(request.path.strip("/"), verbose="verbose" in query, exclude=query.getall("exclude", []))
        )

    async def one_check(request: web.Request) -> web.Response:
        return _text(health.answer_one(request.path.split("/")[1], request.match_info["check"]))

    async def show_metrics(request: web.Request) -> web.Response:
        body, content_type = metrics.expose(request.headers.get("Accept", ""))
        response = web.Response(body=body, headers={"Content-Type": content_type})
        response.enable_compression()
        return response

    app = web.Application(middlewares=[guarded, _plain_errors])
    for group in health.groups:
        app.router.add_get(f"/{group}", whole_group)
        app.router.add_get(f"/{group}/{{check}}", one_check)
    app.router.add_get("/metrics", show_metrics)
    if config is not None:
        show = config

        async def show_config(_request: web.Request) -> web.Response:
            return web.json_response({"componentconfig": show()})

        app.router.add_get("/configz", show_config)
    for path, handler in (more or {}).items():
        app.router.add_get(path, handler)
    return app


class Listener:
    """One server on one address."""

    def __init__(self, app: web.Application) -> None:
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)

    async def start(
        self, host: str, port: int, *, tls: ssl.SSLContext | None = None, share_port: bool = False
    ) -> tuple[str, int]:
        """Listen on ``host`` (an address; "0.0.0.0" and "::" are all) and return what came of it. ``share_port``: let
        other processes listen on it too. Raises ListenError."""
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port, ssl_context=tls, reuse_port=share_port or None)
        try:
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
            raise ListenError(f"cannot listen on {host} port {port}: {reason}") from error
        address = self._runner.addresses[0]
        return address[0], address[1]

    async def stop(self) -> None:
        """Stop listening, and give open requests a moment to finish."""
        await self._runner.cleanup()


@web.middleware
async def _plain_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refusals of the router, in the plain words of Go's servers."""
    try:
        return await handler(request)
    except web.HTTPNotFound:
        return _text(Answer(404, "404 page not found\n"))
    except web.HTTPMethodNotAllowed:
        return _text(Answer(405, "Method Not Allowed\n"))


def _text(answer: Answer) -> web.Response:
    return web.Response(status=answer.status, text=answer.text)
