"""What the controllers have to do: now, in the order in which it was asked for, and later."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from kube_pyscheduler.devserver.errors import StatusError
from kube_pyscheduler.kit.clock import Clock
from kube_pyscheduler.kit.heap import KeyedHeap

TURN_SECONDS = 0.005
"""How long the agenda keeps the event loop at a stretch."""
FIRST_RETRY_SECONDS = 0.1
LAST_RETRY_SECONDS = 30.0

logger = logging.getLogger(__name__)

Work = Callable[[Any], None]
Task = tuple[Work, Any]
"""Work and the key of what it is to be done for. A task asked for twice before it runs, runs once."""


class Agenda:
    """Runs tasks on the event loop's thread, soon after they were asked for; several short turns if there are many.

    A task refused by the server (StatusError) is tried again, with growing delays; until then asking for it changes
    nothing, so that one which reports its own failure does not call itself. ``run_due`` does at once what is due, for
    tests that move the clock by hand.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._ready: dict[Task, None] = {}
        self._timed: KeyedHeap[Task, tuple[float, Task]] = KeyedHeap()
        self._failures: dict[Task, int] = {}
        self._turn_asked = False
        self._alarm: asyncio.TimerHandle | None = None
        self._closed = False

    def soon(self, work: Work, key: Any) -> None:
        """Do ``work(key)`` once the change that is being delivered has reached everybody."""
        if (work, key) not in self._failures:
            self._ready[work, key] = None
            self._ask_turn()

    def later(self, seconds: float, work: Work, key: Any) -> None:
        """Do ``work(key)`` in ``seconds``; of several times asked for, the earliest counts."""
        if seconds <= 0:
            self.soon(work, key)
            return
        task = (work, key)
        at = self._clock.monotonic() + seconds
        waiting = self._timed.get(task)
        if waiting is None or at < waiting[0]:
            self._timed.push(task, at, (at, task))
            self._set_alarm()

    def run_due(self) -> None:
        """Do everything that is due now, and what becomes due through it."""
        self._take_timed()
        while self._ready:
            self._run_one()

    def close(self) -> None:
        """Drop everything."""
        self._closed = True
        self._ready.clear()
        if self._alarm is not None:
            self._alarm.cancel()

    def _run_one(self) -> None:
        task = next(iter(self._ready))
        del self._ready[task]
        work, key = task
        try:
            work(key)
        except StatusError as error:
            failures = self._failures[task] = self._failures.get(task, 0) + 1
            logger.info("%s %s: %s; trying again", work.__qualname__, key, error.message)
            self.later(min(FIRST_RETRY_SECONDS * 2 ** min(failures - 1, 16), LAST_RETRY_SECONDS), work, key)
        except Exception:
            logger.exception("%s %s failed", work.__qualname__, key)
        else:
            self._failures.pop(task, None)

    def _take_timed(self) -> None:
        now = self._clock.monotonic()
        while (first := self._timed.peek()) is not None and first[0] <= now:
            self._timed.pop()
            self._ready[first[1]] = None

    def _ask_turn(self) -> None:
        if not self._turn_asked and not self._closed:
            self._turn_asked = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._turn_asked = False
        self._take_timed()
        end = self._loop.time() + TURN_SECONDS
        while self._ready and self._loop.time() < end:
            self._run_one()
        if self._ready:
            self._ask_turn()
        self._set_alarm()

    def _set_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        first = self._timed.peek()
        if first is not None and not self._closed:
            self._alarm = self._loop.call_later(max(first[0] - self._clock.monotonic(), 0.0), self._turn)
