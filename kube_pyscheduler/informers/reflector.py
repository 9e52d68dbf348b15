"""List and watch as a state machine: one step at a time, recovering from everything the network can do.

=========  =================================  =============================================================
state      on success                         on failure
=========  =================================  =============================================================
Empty      first page → Listing or Listed     Empty
Listing    next page → Listing or Listed      continue token expired → Empty (in one piece); refused → Empty;
                                              no answer, or busy → Listing
Listed     watch opened → Watching            version expired, or refused too often → Empty; else Listed
Watching   events → Watching; end → Listed    version expired → Empty; else Listed at the last version seen
           silent from beginning to end → Empty
=========  =================================  =============================================================

A step returns the next state and what came out of it. Nothing here waits between attempts and nothing is stored: the
informer does both.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeAlias, TypeVar

import msgspec

from kube_pyscheduler.informers.reading import Reader, identify
from kube_pyscheduler.informers.store import Identity
from kube_pyscheduler.kit.clock import Clock
from kube_pyscheduler.objects.decode import NOT_JSON
from kube_pyscheduler.objects.kinds import Kind
from kube_pyscheduler.objects.meta import Object, is_older
from kube_pyscheduler.transport import requests
from kube_pyscheduler.transport.client import Client
from kube_pyscheduler.transport.errors import (
    APIError,
    Gone,
    NetworkError,
    NotFound,
    ServerError,
    Silent,
    TooManyRequests,
)
from kube_pyscheduler.transport.watch import WatchEvent, WatchStream

T = TypeVar("T", bound=Object)

PAGE_SIZE: Final = 500
"""Objects a page. Source: client-go/tools/pager/pager.go."""

LIST_DEADLINE: Final = 120.0
"""Seconds for a page; also for the whole of a list in one piece."""

WATCH_TIMEOUT: Final = (300, 600)
"""Seconds after which the server is asked to end a watch: random in this range, so that restarts spread.
Source: client-go/tools/cache/reflector.go."""

SILENCE: Final = 150.0
"""Seconds without a word after which a watch counts as dead, although its connection may look alive: servers send a
bookmark every minute. Source: defaultBookmarkFrequency in apiserver/pkg/storage/cacher/cacher.go."""

SHORT_WATCH: Final = 1.0
"""A watch that ends within so many seconds without an event counts as failed. Source: reflector.go."""

REFUSALS: Final = 5
"""Refused or broken watches in a row at one version, after which everything is listed again."""

DECODE_BATCH: Final = 100
"""Objects decoded before the event loop gets its turn: a few milliseconds of pods."""


@dataclass(frozen=True, slots=True)
class Empty:
    """Nothing is known. ``paged`` is False after a continue token expired: the next list is asked for in one piece."""

    paged: bool = True


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """Amid a paged list; ``objects`` and ``unreadable`` collect what came so far, by key."""

    token: str
    objects: dict[str, T]
    unreadable: dict[str, Identity]


@dataclass(frozen=True, slots=True)
class Listed:
    """Everything up to ``version`` is known; no watch is open. ``refusals`` counts failed ones since."""

    version: str
    refusals: int = 0


@dataclass(frozen=True, slots=True)
class Watching:
    """``version`` is the last seen one. ``alive``: the stream has brought something."""

    version: str
    stream: WatchStream = field(compare=False)
    opened_at: float
    refusals: int = 0
    alive: bool = False


State: TypeAlias = Empty | Listing[T] | Listed | Watching


@dataclass(frozen=True, slots=True)
class Replaced(Generic[T]):
    """A complete list: the objects by key, and the identities of those that could not be read."""

    objects: dict[str, T]
    unreadable: dict[str, Identity]


@dataclass(frozen=True, slots=True)
class Applied(Generic[T]):
    """An object was added or modified; only its identity where it could not be read."""

    obj: T | Identity


@dataclass(frozen=True, slots=True)
class Deleted:
    identity: Identity


@dataclass(frozen=True, slots=True)
class Changed(Generic[T]):
    """What a watch brought, in order; empty for bookmarks alone."""

    events: list[Applied[T] | Deleted]


@dataclass(frozen=True, slots=True)
class Failed:
    """An attempt failed; wait a little before the next step."""

    error: Exception


Outcome: TypeAlias = Replaced[T] | Changed[T] | Failed | None


_NEVER_HEARD: Final[tuple[Empty, Changed[Any]]] = Empty(), Changed([])
"""Not even a bookmark came. That is how a server answers a version which it has yet to reach, as after its data were
restored from a backup; a list finds out."""


class ListMeta(msgspec.Struct, frozen=True):
    resource_version: str | None = msgspec.field(name="resourceVersion", default=None)
    continue_: str | None = msgspec.field(name="continue", default=None)


class ListPage(msgspec.Struct, frozen=True):
    metadata: ListMeta
    items: list[msgspec.Raw] | None = None


_PAGE: Final = msgspec.json.Decoder(ListPage)


class Reflector(Generic[T]):
    """Follows one kind. ``uniform`` gives numbers in [0, 1) for the watch timeouts."""

    def __init__(
        self,
        client: Client,
        kind: Kind[T],
        reader: Reader[T],
        *,
        clock: Clock,
        field_selector: str = "",
        uniform: Callable[[], float] = random.random,
    ) -> None:
        self._client = client
        self._kind = kind
        self._reader = reader
        self._clock = clock
        self._field_selector = field_selector
        self._uniform = uniform

    async def step(self, state: State[T]) -> tuple[State[T], Outcome[T]]:
        """One request, or one arrival on an open watch. A stream that is left behind has been closed."""
        match state:
            case Empty(paged=paged):
                return await self._list(state, Listing("", {}, {}), PAGE_SIZE if paged else 0)
            case Listing():
                return await self._list(state, state, PAGE_SIZE)
            case Listed():
                return await self._open(state)
            case Watching():
                return await self._follow(state)

    async def identities(self, only: str = "") -> tuple[str, dict[str, Identity]]:
        """The version of a fresh list, and of each object no more than which one it is. ``only``: a field selector for
        some of them. Raises as ``Client.send`` and where the list cannot be read."""
        selector = ",".join(filter(None, (self._field_selector, only)))
        found: dict[str, Identity] = {}
        token = ""
        while True:
            request = requests.list_page(self._kind, limit=PAGE_SIZE, continue_token=token, field_selector=selector)
            page = _PAGE.decode(await self._client.send(request, deadline=LIST_DEADLINE))
            for raw in page.items or ():
                identity = identify(raw)
                found[identity.key] = identity
            token = page.metadata.continue_ or ""
            if not token:
                return page.metadata.resource_version or "", found

    async def _list(self, state: State[T], so_far: Listing[T], limit: int) -> tuple[State[T], Outcome[T]]:
        request = requests.list_page(
            self._kind, limit=limit, continue_token=so_far.token, field_selector=self._field_selector
        )
        try:
            page = _PAGE.decode(await self._client.send(request, deadline=LIST_DEADLINE))
        except Gone as error:
            return (Empty(paged=False) if so_far.token else Empty()), Failed(error)
        except (NetworkError, ServerError, TooManyRequests) as error:
            # The page can be had later; a list in one piece may be more than a busy server can give.
            return (state if so_far.token else Empty()), Failed(error)
        except APIError as error:
            return Empty(), Failed(error)
        except NOT_JSON as error:
            return Empty(), Failed(APIError(200, "", f"unreadable list: {error}"))
        objects, unreadable = so_far.objects, so_far.unreadable
        for count, raw in enumerate(page.items or ()):
            if count and count % DECODE_BATCH == 0:
                await asyncio.sleep(0)
            obj = self._reader.read(raw)
            if isinstance(obj, Identity):
                unreadable[obj.key] = obj
            else:
                objects[obj.key] = obj
        if page.metadata.continue_:
            return Listing(page.metadata.continue_, objects, unreadable), None
        if not page.metadata.resource_version:
            return Empty(), Failed(APIError(200, "", "a list without resourceVersion"))
        return Listed(page.metadata.resource_version), Replaced(objects, unreadable)

    async def _open(self, state: Listed) -> tuple[State[T], Outcome[T]]:
        shortest, longest = WATCH_TIMEOUT
        timeout = shortest + int(self._uniform() * (longest - shortest))
        request = requests.watch(
            self._kind, version=state.version, timeout=timeout, field_selector=self._field_selector
        )
        try:
            stream = await self._client.open_watch(request, idle=SILENCE)
        except (APIError, NetworkError) as error:
            return _after(error, state.version, state.refusals), Failed(error)
        return Watching(state.version, stream, self._clock.monotonic(), state.refusals), None

    async def _follow(self, state: Watching) -> tuple[State[T], Outcome[T]]:
        try:
            events = await state.stream.read()
        except (APIError, NetworkError) as error:
            state.stream.close()
            if isinstance(error, Silent) and not state.alive:
                return _NEVER_HEARD
            return _after(error, state.version, state.refusals), Failed(error)
        if not events:
            state.stream.close()
            if state.alive:
                return Listed(state.version), Changed([])
            if self._clock.monotonic() - state.opened_at >= SHORT_WATCH:
                return _NEVER_HEARD
            ended = APIError(200, "", "the watch ended at once")
            return _after(ended, state.version, state.refusals), Failed(ended)
        version = state.version
        changes: list[Applied[T] | Deleted] = []
        for event in events:
            seen = self._take(event, changes)
            if seen and not is_older(seen, version):
                version = seen
        return Watching(version, state.stream, state.opened_at, alive=True), Changed(changes)

    def _take(self, event: WatchEvent, into: list[Applied[T] | Deleted]) -> str:
        """File one event; its version, "" where that cannot be read."""
        if event.type in ("ADDED", "MODIFIED"):
            obj = self._reader.read(event.object)
            into.append(Applied(obj))
            return obj.version if isinstance(obj, Identity) else obj.metadata.resource_version
        identity = identify(event.object)
        if event.type == "DELETED":
            into.append(Deleted(identity))
        return identity.version


def _after(error: APIError | NetworkError, version: str, refusals: int) -> Empty | Listed:
    """Where to go on after a failed watch. A network failure or a busy server says nothing about the version; another
    refusal may."""
    if isinstance(error, (Gone, NotFound)):
        return Empty()
    if isinstance(error, (NetworkError, TooManyRequests)):
        return Listed(version, refusals)
    return Listed(version, refusals + 1) if refusals + 1 < REFUSALS else Empty()
