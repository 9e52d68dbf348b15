"""Writes Events in the background: bounded in number, in memory and in requests on their way."""

from __future__ import annotations

import asyncio
import random
import socket
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, NoReturn

import msgspec

from kube_pyscheduler.kit.backoff import Backoff
from kube_pyscheduler.kit.clock import Clock, RealClock
from kube_pyscheduler.kit.tasks import Tasks
from kube_pyscheduler.kit.verbosity import Log
from kube_pyscheduler.recorder.event import Content, Reference, event_name, event_object, namespace_of
from kube_pyscheduler.recorder.series import Entry, Phase, SeriesTable
from kube_pyscheduler.transport import requests
from kube_pyscheduler.transport.client import Sender
from kube_pyscheduler.transport.errors import AlreadyExists, APIError, NetworkError, NotFound, ServerError

log = Log(__name__)

QUEUE_LIMIT: Final = 10_000
"""Events that may wait; further ones are dropped. About 1 KiB each."""

PARALLEL_WRITES: Final = 16
"""Requests on their way at the same time."""

ATTEMPTS: Final = 5
"""How often one Event is sent while the server does not answer."""

SWEEP_PERIOD: Final = 60.0
"""Seconds between two looks for series that ended."""


@dataclass(slots=True)
class Counts:
    """``written``: requests that succeeded; ``dropped``: events the full queue refused; ``failed``: given up."""

    written: int = 0
    dropped: int = 0
    failed: int = 0


class Recorder:
    """See the module's docstring. Writers run in ``tasks`` while there is something to write."""

    def __init__(
        self,
        client: Sender,
        tasks: Tasks,
        *,
        host: str = "",
        queue_limit: int = QUEUE_LIMIT,
        parallel: int = PARALLEL_WRITES,
        clock: Clock | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        uniform: Callable[[], float] = random.random,
    ) -> None:
        self.counts = Counts()
        self._client = client
        self._tasks = tasks
        self._host = host or socket.gethostname()
        self._queue_limit = queue_limit
        self._parallel = parallel
        self._clock = clock or RealClock()
        self._sleep = sleep
        self._uniform = uniform
        self._queue: deque[Entry] = deque()
        self._writers: set[asyncio.Task[None]] = set()
        self._table = SeriesTable()
        self._last_nanoseconds = 0
        self._last_problem: tuple[int, str] | None = None

    def event(
        self,
        regarding: Reference,
        type_: str,
        reason: str,
        action: str,
        note: str,
        *,
        controller: str,
        related: Reference | None = None,
        repeats: bool = True,
    ) -> None:
        """Tell the readers of ``regarding``. Never blocks, never fails.

        With ``repeats`` an equal event of the last minutes becomes a series with this one, and one about the same with
        another note that has not been sent yet is overtaken. Without, it is not remembered: for what happens once.
        """
        content = Content(regarding, type_, reason, action, note, controller, f"{controller}-{self._host}", related)
        wall, now = self._clock.now(), self._clock.monotonic()
        known = self._table.find(content) if repeats else None
        if known is not None and self._table.repeat(known, content, wall, now):
            if known.phase is Phase.KNOWN and known.written == 1 and not known.queued:
                self._enqueue(known)
            return
        entry = Entry(content, event_name(regarding.name, self._nanoseconds(wall)), wall, now)
        if self._enqueue(entry) and repeats:
            self._table.add(entry)

    async def sweep_for_ever(self) -> NoReturn:
        """Write the final counts of series that ended. To be run as a task."""
        while True:
            await self._sleep(SWEEP_PERIOD)
            for entry in self._table.sweep(self._clock.monotonic()):
                self._enqueue(entry)

    async def drain(self) -> None:
        """Return when everything has been written or given up. The caller limits the time."""
        while self._writers:
            await asyncio.wait(self._writers)

    # -- the queue -----------------------------------------------------------------------------------------------------

    def _nanoseconds(self, wall: float) -> int:
        """The time, never the same twice: it names an Event."""
        self._last_nanoseconds = max(int(wall * 1e9), self._last_nanoseconds + 1)
        return self._last_nanoseconds

    def _enqueue(self, entry: Entry) -> bool:
        if len(self._queue) >= self._queue_limit:
            self.counts.dropped += 1
            return False
        entry.queued = True
        self._queue.append(entry)
        if len(self._writers) < self._parallel:
            writer = self._tasks.start(self._write_queue(), name="event writer")
            self._writers.add(writer)
            writer.add_done_callback(self._writers.discard)
        return True

    async def _write_queue(self) -> None:
        while self._queue:
            entry = self._queue.popleft()
            entry.queued = False
            if entry.phase is Phase.WAITING:
                entry.phase = Phase.CREATING
                await self._create(entry)
            else:
                await self._update(entry)

    # -- writing -------------------------------------------------------------------------------------------------------

    async def _create(self, entry: Entry) -> None:
        count = entry.count
        if not await self._persist(self._creation(entry)):
            self._table.forget(entry)
            return
        entry.phase, entry.written, entry.written_at = Phase.KNOWN, count, self._clock.monotonic()
        if entry.count > count:
            self._enqueue(entry)

    async def _update(self, entry: Entry) -> None:
        count, series = entry.count, entry.series()
        if series is None or count <= entry.written:
            return
        body = msgspec.json.encode({"series": series.wire()})
        patch = requests.patch_event(namespace_of(entry.content), entry.name, body)
        if await self._persist(patch, otherwise=self._creation(entry)):
            entry.written, entry.written_at = count, self._clock.monotonic()

    @staticmethod
    def _creation(entry: Entry) -> requests.Request:
        event = event_object(entry.content, entry.name, entry.first_at, entry.series())
        return requests.create_event(namespace_of(entry.content), msgspec.json.encode(event))

    async def _persist(self, request: requests.Request, otherwise: requests.Request | None = None) -> bool:
        """Send until answered, a few times; ``otherwise`` where there is nothing to patch any more."""
        backoff = Backoff(1.0, 10.0, uniform=self._uniform)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await self._client.send(request)
            except AlreadyExists:
                pass  # An earlier attempt of ours did it.
            except (NetworkError, ServerError) as error:
                if attempt == ATTEMPTS:
                    return self._give_up(error)
                await self._sleep(backoff.next())
                continue
            except NotFound as error:
                if otherwise is None:
                    return self._give_up(error)
                request, otherwise = otherwise, None
                continue
            except APIError as error:
                return self._give_up(error)
            self.counts.written += 1
            return True
        return False

    def _give_up(self, error: APIError | NetworkError) -> bool:
        self.counts.failed += 1
        problem = (error.code, error.reason) if isinstance(error, APIError) else (0, "")
        if problem != self._last_problem:
            log.error("Events cannot be written", problem=str(error))
        self._last_problem = problem
        return False
