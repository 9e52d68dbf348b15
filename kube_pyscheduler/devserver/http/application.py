"""The aiohttp application: which handler answers which path, and errors as metav1.Status."""

from __future__ import annotations

import logging

from aiohttp import web

from kube_pyscheduler.devserver import errors
from kube_pyscheduler.devserver.http import request_info
from kube_pyscheduler.devserver.http.access import authenticate, authorize, authorize_path, impersonate
from kube_pyscheduler.devserver.http.answers import refusal
from kube_pyscheduler.devserver.http.context import Context
from kube_pyscheduler.devserver.http.discovery import Discovery
from kube_pyscheduler.devserver.http.openapi import OpenAPI
from kube_pyscheduler.devserver.http.reading import Reading
from kube_pyscheduler.devserver.http.writing import Writing

MAX_BODY = 3 * 1024 * 1024
"""Bytes of a request body. Source: staging/src/k8s.io/apiserver/pkg/server/config.go."""

_log = logging.getLogger(__name__)


class Handler:
    """Answers every request of one server."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._reading = Reading(context)
        self._writing = Writing(context)
        self._discovery = Discovery(context.table)
        self._openapi = OpenAPI(context.table)

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self._route(request)
        except errors.StatusError as error:
            return refusal(error)
        except web.HTTPRequestEntityTooLarge:
            return refusal(errors.StatusError(413, "RequestEntityTooLarge", f"limit is {MAX_BODY}"))
        except Exception as error:
            _log.exception("%s %s failed", request.method, request.path)
            return refusal(errors.StatusError(500, "InternalError", f"Internal error occurred: {error!r}"))

    async def _route(self, request: web.Request) -> web.StreamResponse:
        user = impersonate(self._context, authenticate(self._context, request), request)
        segments = request.path.strip("/").split("/")
        info = self._resource_request(request, segments)
        if info is None:
            authorize_path(self._context, user, request.method, request.path)
            if request.method not in ("GET", "HEAD"):
                raise errors.method_not_allowed()
            answering = self._openapi if segments[0] == "openapi" else self._discovery
            return answering.answer(request, segments)
        authorize(self._context, user, info, request)
        match info.verb:
            case "get":
                return self._reading.get(request, info)
            case "list":
                return self._reading.list_collection(request, info)
            case "watch":
                return await self._reading.watch(request, info)
            case "create":
                self._reading.refuse_streaming(info)
                return await self._writing.create(request, info, user)
            case "update":
                return await self._writing.update(request, info, user)
            case "patch":
                return await self._writing.patch(request, info, user)
            case "delete":
                return await self._writing.delete(request, info)
            case _:
                return await self._writing.delete_collection(request, info)

    def _resource_request(self, request: web.Request, segments: list[str]) -> request_info.RequestInfo | None:
        """The request for a resource; None when the path is not below a group's version."""
        depth = {"api": 2, "apis": 3}.get(segments[0])
        if depth is None or len(segments) <= depth:
            return None
        watching = request.query.get("watch") in ("true", "1")
        return request_info.parse(request.method, segments, self._context.table, watch=watching)


def build(context: Context) -> web.Application:
    """The application of one server."""
    application = web.Application(client_max_size=MAX_BODY)
    application.router.add_route("*", "/{path:.*}", Handler(context).__call__)
    return application
