"""get, list and watch."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from kube_pyscheduler.devserver import errors
from kube_pyscheduler.devserver.event_views import stored_as
from kube_pyscheduler.devserver.http.answers import object_answer, text_answer
from kube_pyscheduler.devserver.http.context import Context
from kube_pyscheduler.devserver.http.listing import list_page
from kube_pyscheduler.devserver.http.negotiation import accepted
from kube_pyscheduler.devserver.http.representation import render_list, renderer, shown_kind
from kube_pyscheduler.devserver.http.request_info import RequestInfo
from kube_pyscheduler.devserver.http.watching import Watch, stream_watch
from kube_pyscheduler.devserver.scale import to_scale
from kube_pyscheduler.devserver.selectors import parse_selectors
from kube_pyscheduler.devserver.store import Object, Stored
from kube_pyscheduler.devserver.tables.render import tabulate

_REFUSED = {
    "log": "containers of this server do not run, so there are no logs",
    "exec": "containers of this server do not run, so nothing can be executed in them",
    "attach": "containers of this server do not run, so there is nothing to attach to",
    "portforward": "containers of this server do not run, so there is no port to forward to",
    "proxy": "nodes of this server have no kubelet to talk to",
}


class Reading:
    """Answers requests that change nothing."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store

    def refuse_streaming(self, info: RequestInfo) -> None:
        """501 for the subresources that need a real kubelet."""
        if why := _REFUSED.get(info.subresource):
            raise errors.StatusError(501, "NotImplemented", f"{info.resource.plural}/{info.subresource}: {why}")

    def get(self, request: web.Request, info: RequestInfo) -> web.Response:
        self.refuse_streaming(info)
        form = accepted(request.headers.get("Accept"))
        stored = self._store.find(stored_as(info.resource), info.namespace, info.name)
        if stored is None:
            raise errors.not_found(info.resource.key, info.name)
        if info.subresource == "scale":
            return object_answer(to_scale(stored.obj))
        return text_answer(renderer(info.resource, form, self._table(request, info))(stored), form)

    def list_collection(self, request: web.Request, info: RequestInfo) -> web.Response:
        form = accepted(request.headers.get("Accept"))
        query = request.query
        predicate = parse_selectors(query.get("labelSelector", ""), query.get("fieldSelector", ""), info.resource)
        page = list_page(self._store, stored_as(info.resource), info.namespace, query, predicate)
        return text_answer(render_list(info.resource, page, form, self._table(request, info)), form)

    async def watch(self, request: web.Request, info: RequestInfo) -> web.StreamResponse:
        form = accepted(request.headers.get("Accept"))
        query = request.query
        predicate = parse_selectors(query.get("labelSelector", ""), query.get("fieldSelector", ""), info.resource)
        render = renderer(info.resource, form, self._table(request, info))
        kind = shown_kind(info.resource, form)
        watch = Watch(self._store, info.resource, info.namespace, predicate, render, kind)
        self._context.watches.add(watch)
        try:
            return await stream_watch(request, watch, query, self._context.bookmark_seconds)
        finally:
            self._context.watches.discard(watch)

    def _table(self, request: web.Request, info: RequestInfo) -> Callable[[list[Stored]], Object]:
        include = request.query.get("includeObject", "Metadata")
        now = self._context.registry.clock.now()
        return lambda items: tabulate(info.resource, [stored.obj for stored in items], include=include, now=now)
