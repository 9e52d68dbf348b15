"""GET ?watch=true: a stream of JSON lines, from a resourceVersion or with initial events, with bookmarks.

Source: staging/src/k8s.io/apiserver/pkg/storage/cacher/{cacher.go,cache_watcher.go} and
pkg/endpoints/handlers/watch.go.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Iterator, Mapping

from aiohttp import web

from kube_pyscheduler.devserver import errors
from kube_pyscheduler.devserver.event_views import stored_as
from kube_pyscheduler.devserver.http.listing import check_revision, number, refuse_options
from kube_pyscheduler.devserver.http.representation import Render, encode
from kube_pyscheduler.devserver.problems import Problems
from kube_pyscheduler.devserver.resources import Resource
from kube_pyscheduler.devserver.selectors import Predicate
from kube_pyscheduler.devserver.store import ADDED, DELETED, MODIFIED, Change, Store, Stored

DEFAULT_TIMEOUT = 1800
"""Seconds; a watch without timeoutSeconds lasts between this and twice as long.

Source: --min-request-timeout of kube-apiserver.
"""
BACKLOG_LIMIT = 100_000
"""Changes; a client that falls further behind is cut off and has to list again."""
INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_LINES = {kind: f'{{"type":"{kind}","object":'.encode() for kind in (ADDED, MODIFIED, DELETED, "BOOKMARK", "ERROR")}


class Watch:
    """One open watch: changes queue up here until the stream has written them.

    ``shown_kind`` is the (kind, apiVersion) of the objects as they are rendered.
    """

    def __init__(
        self,
        store: Store,
        resource: Resource,
        namespace: str,
        predicate: Predicate | None,
        render: Render,
        shown_kind: tuple[str, str],
    ) -> None:
        self._store = store
        self._resource = stored_as(resource)
        self._kind, self._api_version = shown_kind
        self._namespace = namespace
        self._predicate = predicate
        self._render = render
        self._queue: deque[Change] = deque()
        self._wake = asyncio.Event()
        self._after = 0
        self._initial: list[Stored] = []
        self._end_of_initial = False
        self._started_at = store.revision
        self.closed = False

    def start(self, query: Mapping[str, str]) -> Callable[[], None]:
        """Begin where the query says; the result ends the subscription. 410 when that is no longer possible."""
        send_initial = query.get("sendInitialEvents")
        match = query.get("resourceVersionMatch", "")
        problems = Problems()
        if send_initial is not None and match != "NotOlderThan":
            problems.forbidden(
                "resourceVersionMatch", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            )
        elif send_initial is None and match:
            problems.forbidden(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            )
        refuse_options(problems)
        wanted = number(query, "resourceVersion")
        if send_initial == "true" or (send_initial is None and not wanted):
            check_revision(self._store, wanted)
            self._initial = list(self._store.snapshot(self._resource, self._store.revision))
            self._end_of_initial = send_initial == "true"
        elif wanted:
            self._after = wanted
            self._queue.extend(self._store.changes_since(self._resource, wanted))
        return self._store.subscribe(self._resource, self._receive)

    def close(self) -> None:
        self.closed = True
        self._wake.set()

    def _receive(self, change: Change) -> None:
        if len(self._queue) >= BACKLOG_LIMIT:
            self.close()
        else:
            self._queue.append(change)
            self._wake.set()

    async def wait(self, seconds: float) -> None:
        """Until something is to be sent, the watch is closed, or the time is up."""
        if self._queue or self.closed:
            return
        self._wake.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            pass

    def initial_lines(self, *, bookmarks: bool) -> Iterator[bytes]:
        """The state at the start as ADDED lines, and the bookmark that ends them when it was asked for."""
        for stored in self._initial:
            if self._concerns(stored):
                yield _line(ADDED, self._render(stored))
        self._initial = []
        if self._end_of_initial and bookmarks:
            yield self._bookmark_line(self._started_at, {INITIAL_EVENTS_END: "true"})

    def pending_lines(self) -> list[bytes]:
        """The lines of all changes that have queued up."""
        lines: list[bytes] = []
        queue = self._queue
        while queue:
            change = queue.popleft()
            if change.revision <= self._after:
                continue
            if self._namespace and change.new.key[0] != self._namespace:
                continue
            if self._predicate is None:
                lines.append(_line(change.kind, self._render(change.new)))
            elif line := self._selected_line(change, self._predicate):
                lines.append(line)
        return lines

    def bookmark(self) -> bytes:
        """Says that everything up to the current revision has been sent; only right when nothing is pending."""
        return self._bookmark_line(self._store.revision, {})

    def _bookmark_line(self, revision: int, annotations: dict[str, str]) -> bytes:
        metadata: dict[str, object] = {"resourceVersion": str(revision), "creationTimestamp": None}
        if annotations:
            metadata["annotations"] = annotations
        obj = {"kind": self._kind, "apiVersion": self._api_version, "metadata": metadata}
        return _line("BOOKMARK", encode(obj))

    def _concerns(self, stored: Stored) -> bool:
        if self._namespace and stored.key[0] != self._namespace:
            return False
        return self._predicate is None or self._predicate(stored.obj)

    def _selected_line(self, change: Change, predicate: Predicate) -> bytes | None:
        """Objects that come into the selection are ADDED, those that leave it are DELETED in their last state."""
        before = change.old is not None and predicate(change.old.obj)
        now = change.kind != DELETED and predicate(change.new.obj)
        if now:
            return _line(MODIFIED if before else ADDED, self._render(change.new))
        if not before or change.old is None:
            return None
        last = change.old.obj
        metadata = {**last["metadata"], "resourceVersion": str(change.revision)}
        gone = Stored(change.old.key, {**last, "metadata": metadata}, change.revision)
        return _line(DELETED, self._render(gone))


def _line(kind: str, obj: bytes) -> bytes:
    return b"".join((_LINES[kind], obj, b"}\n"))


async def stream_watch(
    request: web.Request, watch: Watch, query: Mapping[str, str], bookmark_seconds: float
) -> web.StreamResponse:
    """Answer the request with the watch until its timeout, its end, or the client's."""
    bookmarks = query.get("allowWatchBookmarks") in ("true", "1")
    timeout = number(query, "timeoutSeconds") or DEFAULT_TIMEOUT * (1 + random.random())
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Cache-Control": "no-cache, private"})
    try:
        stop = watch.start(query)
    except errors.StatusError as error:
        if error.code != 410:
            raise
        # The real server answers 200 and tells it in the stream.
        await response.prepare(request)
        await response.write(_line("ERROR", encode(error.status())))
        return response
    clock = asyncio.get_running_loop().time
    deadline = clock() + timeout
    next_bookmark = min(clock() + bookmark_seconds, deadline - 2)
    try:
        await response.prepare(request)
        first = b"".join(watch.initial_lines(bookmarks=bookmarks))
        if first:
            await response.write(first)
        while not watch.closed and (now := clock()) < deadline:
            if bookmarks and now >= next_bookmark:
                next_bookmark = now + bookmark_seconds
                await response.write(b"".join(watch.pending_lines()) + watch.bookmark())
            await watch.wait(min(deadline, next_bookmark if bookmarks else deadline) - now)
            if lines := watch.pending_lines():
                await response.write(b"".join(lines))
    except ConnectionError:
        pass  # The client went away; there is nobody left to tell.
    finally:
        stop()
    return response
