"""Keeps the store of one kind true, and tells handlers in order what changed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Generic, NoReturn, Protocol, TypeVar

from kube_pyscheduler.informers.reading import Reader, SalvageRule
from kube_pyscheduler.informers.reflector import (
    Applied,
    Changed,
    Deleted,
    Empty,
    Failed,
    Reflector,
    Replaced,
    State,
    Watching,
)
from kube_pyscheduler.informers.store import Change, Identity, Store, Writer
from kube_pyscheduler.kit.backoff import Backoff
from kube_pyscheduler.kit.clock import Clock, RealClock
from kube_pyscheduler.kit.verbosity import Log
from kube_pyscheduler.objects.kinds import Kind
from kube_pyscheduler.objects.meta import Object
from kube_pyscheduler.transport.client import Client
from kube_pyscheduler.transport.errors import APIError, Forbidden, NotFound

T = TypeVar("T", bound=Object)
log = Log(__name__)

BACKOFF_INITIAL: Final = 0.8
BACKOFF_MAXIMUM: Final = 30.0
"""Seconds between attempts. Source: client-go/tools/cache/reflector.go."""

ABSENT_RETRY: Final = 60.0
"""Seconds after which a kind that is not served, or that we may not see, is looked for again."""

REFUSALS: Final = 4
"""Refusals in a row after which we count as not allowed to see a kind: a server that has just started refuses
everything for two or three seconds, until it knows everybody's rights. The fourth comes after five or more."""

DELIVERY_BATCH: Final = 200
"""Changes of a list that are handed out before the event loop gets its turn."""

Handler = Callable[[T | None, T | None], None]
"""Called with (old, new) after the store has changed: None is old of an added, new of a deleted object. Not async."""


class Observer(Protocol):
    """What informers count. ``kind`` is as in ``kind:``."""

    def malformed(self, kind: str) -> None:
        """An object could not be read."""

    def listed(self, kind: str) -> None:
        """All objects were listed."""

    def failed(self, kind: str) -> None:
        """A list or watch failed and will be tried again."""


class NoObserver:
    """Counts nothing."""

    def malformed(self, kind: str) -> None: ...

    def listed(self, kind: str) -> None: ...

    def failed(self, kind: str) -> None: ...


class Informer(Generic[T]):
    """One kind. Add the handlers, then ``run()`` for ever in a task.

    ``optional`` kinds may be absent (404) or hidden (403): that is said once, and the kind counts as empty until it is
    seen. ``after``: whose first list is handed out before ours. ``synced`` is set once the first list has been handed
    out; ``problem`` says why the store may be stale, "" while all is well.
    """

    def __init__(
        self,
        client: Client,
        kind: Kind[T],
        *,
        field_selector: str = "",
        optional: bool = False,
        salvage: SalvageRule | None = None,
        after: Sequence[Informer[Object]] = (),
        observer: Observer | None = None,
        clock: Clock | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        uniform: Callable[[], float] = random.random,
    ) -> None:
        self.kind = kind
        self.synced = asyncio.Event()
        self.problem = "not listed yet"
        self._optional = optional
        self._after = after
        self._observer: Observer = observer or NoObserver()
        self._sleep = sleep
        self._backoff = Backoff(BACKOFF_INITIAL, BACKOFF_MAXIMUM, uniform=uniform)
        self._writer: Writer[T] = Writer()
        self._handlers: list[Handler[T]] = []
        self._following: asyncio.Task[NoReturn] | None = None
        self._handing_out = asyncio.Lock()
        self._listed = asyncio.Event()
        self._refusals = 0
        self._missing = ""
        """Why we go on without this kind, as we have said, "" while we do not."""
        reader = Reader(
            kind, self._writer.store, salvage=salvage, malformed=lambda: self._observer.malformed(kind.name)
        )
        self._reflector = Reflector(
            client, kind, reader, clock=clock or RealClock(), field_selector=field_selector, uniform=uniform
        )

    @property
    def store(self) -> Store[T]:
        return self._writer.store

    def add_handler(self, handler: Handler[T]) -> None:
        """Tell ``handler`` every change, after the handlers added before it. Only before ``run``."""
        self._handlers.append(handler)

    async def run(self) -> NoReturn:
        """List and watch until cancelled."""
        while True:
            self._following = asyncio.create_task(self._follow(), name=f"following {self.kind.plural}")
            try:
                await asyncio.wait((self._following,))
            except asyncio.CancelledError:
                self._following.cancel()
                await asyncio.wait((self._following,))
                raise
            if not self._following.cancelled():
                self._following.result()

    async def relist(self) -> None:
        """List everything anew, at once, and return when that has been handed out: then we know all that was true when
        this was called."""
        # Not amid a list that is being handed out: its changes would be told to nobody any more.
        async with self._handing_out:
            self._listed.clear()
            if self._following is not None:
                self._following.cancel()
        await self._listed.wait()

    async def identities(self, only: str = "") -> tuple[str, dict[str, Identity]]:
        """What there is at the server now, whatever the store holds: the version of a fresh list, and which objects;
        ``only`` those of this field selector. Raises as ``Client.send`` and where the list cannot be read."""
        return await self._reflector.identities(only)

    async def _follow(self) -> NoReturn:
        state: State[T] = Empty()
        try:
            while True:
                state, outcome = await self._reflector.step(state)
                match outcome:
                    case Changed(events=events):
                        self._well()
                        for event in events:
                            self._take(event)
                    case Replaced():
                        await self._replace(outcome)
                    case Failed(error=error):
                        await self._wait_after(error, absent=isinstance(state, Empty))
        finally:
            if isinstance(state, Watching):
                state.stream.close()

    def _take(self, event: Applied[T] | Deleted) -> None:
        if isinstance(event, Deleted):
            self._tell(self._writer.remove(event.identity))
        elif isinstance(event.obj, Identity):
            self._tell(self._drop_predecessor(event.obj))
        else:
            self._tell(self._writer.apply(event.obj))

    def _drop_predecessor(self, unreadable: Identity) -> list[Change[T]]:
        """An unreadable object leaves its last good version alone, but not what had its name before."""
        held = self.store.get(unreadable.key)
        if held is None or not unreadable.uid or unreadable.uid == held.metadata.uid:
            return []
        return self._writer.remove(unreadable)

    async def _replace(self, listed: Replaced[T]) -> None:
        self._observer.listed(self.kind.name)
        for informer in self._after:
            await informer.synced.wait()
        keep = {
            key
            for key, unreadable in listed.unreadable.items()
            if (held := self.store.get(key)) is not None and unreadable.uid in ("", held.metadata.uid)
        }
        async with self._handing_out:
            changes = self._writer.replace(listed.objects, keep)
            for start in range(0, len(changes), DELIVERY_BATCH):
                self._tell(changes[start : start + DELIVERY_BATCH])
                await asyncio.sleep(0)
        self._listed.set()
        self._well(synced=True)

    def _tell(self, changes: Sequence[Change[T]]) -> None:
        for old, new in changes:
            for handler in self._handlers:
                try:
                    handler(old, new)
                except Exception as error:
                    log.error("An event handler failed", error, kind=self.kind.name)

    def _well(self, *, synced: bool = False) -> None:
        """The server answers. A list alone does not calm the backoff: its watch may fail at once, again and again."""
        if synced:
            self.synced.set()
        else:
            self._backoff.reset()
        self.problem = self._missing = ""
        self._refusals = 0

    async def _wait_after(self, error: Exception, *, absent: bool) -> None:
        self._observer.failed(self.kind.name)
        is_hidden = self._optional and isinstance(error, Forbidden)
        self._refusals = self._refusals + 1 if is_hidden else 0
        if absent and self._optional and (isinstance(error, NotFound) or self._refusals >= REFUSALS):
            await self._wait_for_kind(error)
            return
        delay = self._backoff.next()
        if isinstance(error, APIError) and error.retry_after:
            delay = max(delay, min(error.retry_after, BACKOFF_MAXIMUM))
        self.problem = str(error)
        facts: dict[str, Any] = {"kind": self.kind.name, "problem": self.problem, "retry_seconds": round(delay, 1)}
        if is_hidden:
            log.info(2, "List or watch refused", **facts)
        else:
            log.error("List or watch failed", **facts)
        await self._sleep(delay)

    async def _wait_for_kind(self, error: Exception) -> None:
        problem = str(error)
        if problem != self._missing:
            log.error("Going on without a kind that is absent or hidden", kind=self.kind.name, problem=problem)
        if isinstance(error, NotFound):
            self._tell(self._writer.replace({}))
        self.problem = self._missing = problem
        self.synced.set()
        self._listed.set()
        await self._sleep(ABSENT_RETRY)
