"""The verbs on resources: from a parsed request to a response."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from aiohttp import web

from kube_pyscheduler.devserver import errors
from kube_pyscheduler.devserver.event_views import stored_as, to_core
from kube_pyscheduler.devserver.http.context import Context
from kube_pyscheduler.devserver.http.listing import list_page
from kube_pyscheduler.devserver.http.negotiation import JSON, Accepted, accepted, decode_body
from kube_pyscheduler.devserver.http.representation import in_media_type, render_list, renderer
from kube_pyscheduler.devserver.http.request_info import RequestInfo
from kube_pyscheduler.devserver.http.watching import Watch, stream_watch
from kube_pyscheduler.devserver.patching.json_patch import json_patch, merge_patch
from kube_pyscheduler.devserver.patching.strategic import strategic_merge
from kube_pyscheduler.devserver.resources import PODS, Resource
from kube_pyscheduler.devserver.schema.types import type_of
from kube_pyscheduler.devserver.selectors import parse_selectors
from kube_pyscheduler.devserver.store import Object, Stored

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


def _table(items: list[Stored]) -> Object:
    columns = [
        {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0},
        {"name": "Age", "type": "string", "format": "", "description": "", "priority": 0},
    ]
    rows = [
        {
            "cells": [stored.obj["metadata"]["name"], stored.obj["metadata"].get("creationTimestamp")],
            "object": {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": stored.obj["metadata"],
            },
        }
        for stored in items
    ]
    return {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "columnDefinitions": columns, "rows": rows}


def answer(body: bytes, form: Accepted, status: int = 200) -> web.Response:
    return web.Response(body=in_media_type(body, form), status=status, content_type=form.media_type)


def answer_object(obj: Any, status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(obj), status=status, content_type=JSON)


SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}


class Verbs:
    """Handles one parsed request; ``context`` holds the server's parts."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._registry = context.registry

    async def handle(self, request: web.Request, info: RequestInfo) -> web.StreamResponse:
        form = accepted(request.headers.get("Accept"))
        match info.verb:
            case "get":
                return self._get(info, form)
            case "list":
                return self._list(request, info, form)
            case "watch":
                return await self._watch(request, info, form)
            case "create":
                return self._create(info, form, await self._read(request))
            case "update":
                return self._update(info, form, await self._read(request))
            case "patch":
                return self._patch(info, form, request.content_type, await request.read())
            case "delete":
                stored = self._registry.delete(stored_as(info.resource), info.namespace, info.name)
                return self._answer(info.resource, form, stored)
        raise errors.method_not_allowed()

    async def _read(self, request: web.Request) -> Object:
        return decode_body(request.headers.get("Content-Type", ""), await request.read())

    def _answer(self, resource: Resource, form: Accepted, obj: Object, status: int = 200) -> web.Response:
        stored = Stored(("", ""), obj, 0)
        return answer(renderer(resource, form, _table)(stored), form, status)

    def _get(self, info: RequestInfo, form: Accepted) -> web.Response:
        stored = self._store.find(stored_as(info.resource), info.namespace, info.name)
        if stored is None:
            raise errors.not_found(info.resource.key, info.name)
        return answer(renderer(info.resource, form, _table)(stored), form)

    def _list(self, request: web.Request, info: RequestInfo, form: Accepted) -> web.Response:
        query = request.query
        predicate = parse_selectors(query.get("labelSelector", ""), query.get("fieldSelector", ""), info.resource)
        page = list_page(self._store, stored_as(info.resource), info.namespace, query, predicate)
        return answer(render_list(info.resource, page, form, _table), form)

    async def _watch(self, request: web.Request, info: RequestInfo, form: Accepted) -> web.StreamResponse:
        query = request.query
        predicate = parse_selectors(query.get("labelSelector", ""), query.get("fieldSelector", ""), info.resource)
        render = renderer(info.resource, form, _table)
        watch = Watch(self._store, stored_as(info.resource), info.namespace, predicate, render)
        self._context.watches.add(watch)
        try:
            return await stream_watch(request, watch, query, self._context.bookmark_seconds)
        finally:
            self._context.watches.discard(watch)

    def _create(self, info: RequestInfo, form: Accepted, body: Object) -> web.Response:
        if info.resource is PODS and info.subresource == "binding":
            self._registry.bind(info.namespace, info.name, body)
            return answer_object({**SUCCESS, "code": 201}, 201)
        body = self._placed(info, body)
        return self._answer(info.resource, form, self._registry.create(stored_as(info.resource), body), 201)

    def _update(self, info: RequestInfo, form: Accepted, body: Object) -> web.Response:
        body = self._placed(info, body)
        updated = self._registry.update(stored_as(info.resource), body, subresource=info.subresource)
        return self._answer(info.resource, form, updated)

    def _patch(self, info: RequestInfo, form: Accepted, content_type: str, body: bytes) -> web.Response:
        change = self._change(info.resource, content_type, body)
        updated = self._registry.modify(
            stored_as(info.resource), info.namespace, info.name, change, subresource=info.subresource
        )
        return self._answer(info.resource, form, updated)

    def _change(self, resource: Resource, content_type: str, body: bytes) -> Callable[[Object], Object]:
        try:
            patch = msgspec.json.decode(body)
        except msgspec.DecodeError as error:
            raise errors.bad_request(f"error decoding patch: {error}") from None
        match content_type:
            case "application/merge-patch+json":
                return lambda current: merge_patch(current, patch)
            case "application/json-patch+json":
                return lambda current: json_patch(current, patch)
            case "application/strategic-merge-patch+json":
                kind = type_of(resource.group, resource.version, resource.kind)
                if kind is not None:
                    return lambda current: strategic_merge(current, patch, kind)
        raise errors.unsupported_media_type((JSON_PATCH, MERGE, STRATEGIC))

    def _placed(self, info: RequestInfo, body: Object) -> Object:
        """The body with the namespace and name of the path; 400 when it says otherwise."""
        metadata = dict(body.get("metadata") or {})
        if info.resource.namespaced:
            if metadata.get("namespace") not in (None, "", info.namespace):
                raise errors.bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request"
                )
            metadata["namespace"] = info.namespace
        if info.name and metadata.setdefault("name", info.name) != info.name:
            raise errors.bad_request(
                f"the name of the object ({metadata['name']}) does not match the name on the URL ({info.name})"
            )
        body = {**body, "metadata": metadata}
        return to_core(body) if stored_as(info.resource) is not info.resource else body
