"""The aiohttp application: which handler answers which path, and errors as metav1.Status."""

from __future__ import annotations

import logging

import msgspec
from aiohttp import web

from kube_pyscheduler.devserver import errors
from kube_pyscheduler.devserver.http import request_info
from kube_pyscheduler.devserver.http.context import Context
from kube_pyscheduler.devserver.http.negotiation import JSON
from kube_pyscheduler.devserver.http.verbs import Verbs

MAX_BODY = 3 * 1024 * 1024
"""Bytes of a request body. Source: staging/src/k8s.io/apiserver/pkg/server/config.go."""

_log = logging.getLogger(__name__)
_HEALTH = frozenset({"/healthz", "/livez", "/readyz"})
VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.0", "platform": "linux/amd64"}


class Handler:
    """Answers every request of one server."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._verbs = Verbs(context)

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self._route(request)
        except errors.StatusError as error:
            return _refusal(error)
        except web.HTTPRequestEntityTooLarge:
            return _refusal(errors.StatusError(413, "RequestEntityTooLarge", f"limit is {MAX_BODY}"))

    async def _route(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        if path in _HEALTH:
            return web.Response(text="ok")
        if path == "/version":
            return web.json_response(VERSION)
        segments = path.strip("/").split("/")
        if len(segments) < 3 or segments[0] not in ("api", "apis"):
            raise errors.no_such_path()
        watching = request.query.get("watch") in ("true", "1")
        info = request_info.parse(request.method, segments, self._context.table, watch=watching)
        return await self._verbs.handle(request, info)


def _refusal(error: errors.StatusError) -> web.Response:
    headers = {"Retry-After": str(error.retry_after)} if error.retry_after else {}
    body = msgspec.json.encode(error.status())
    return web.Response(body=body, status=error.code, content_type=JSON, headers=headers)


def build(context: Context) -> web.Application:
    """The application of one server."""
    application = web.Application(client_max_size=MAX_BODY)
    application.router.add_route("*", "/{path:.*}", Handler(context))
    return application
