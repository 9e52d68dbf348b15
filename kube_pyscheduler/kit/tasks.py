"""Background tasks with an owner: they have names, a crash reaches the owner, closing leaves none behind."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, NoReturn, Self, TypeVar

from kube_pyscheduler.kit.verbosity import Log

T = TypeVar("T")
log = Log(__name__)


class TaskCrashed(Exception):
    """A task failed, or one that should run for ever ended. The cause is chained."""


class Ended(Exception):
    """Ends a task because of the world outside, not of a mistake: whoever raises it has said why."""


class Tasks:
    """The tasks of one owner, who awaits ``crashed()`` somewhere and closes the group when done.

    As a context manager it closes itself: every task is cancelled and waited for.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._crash: TaskCrashed | None = None
        self._crash_seen = asyncio.Event()
        self._closing = False

    def start(self, work: Coroutine[Any, Any, T], *, name: str, forever: bool = False) -> asyncio.Task[T]:
        """Run ``work`` in the background. With ``forever`` also its quiet end counts as a crash."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended_forever if forever else self._ended)
        return task

    def __len__(self) -> int:
        return len(self._tasks)

    async def crashed(self) -> NoReturn:
        """Wait for the first crash of any task, past ones included, and raise it as TaskCrashed."""
        await self._crash_seen.wait()
        assert self._crash is not None
        raise self._crash

    async def close(self) -> None:
        """Cancel what still runs and wait until it is gone."""
        self._closing = True
        while self._tasks:
            running = tuple(self._tasks)
            for task in running:
                task.cancel()
            await asyncio.wait(running)
            self._tasks.difference_update(running)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._report(task, "failed", error)

    def _ended_forever(self, task: asyncio.Task[Any]) -> None:
        self._ended(task)
        if not self._closing and (task.cancelled() or task.exception() is None):
            self._report(task, "ended early", None)

    def _report(self, task: asyncio.Task[Any], problem: str, cause: BaseException | None) -> None:
        if not isinstance(cause, Ended):
            log.error("Task crashed", cause, task=task.get_name(), problem=problem)
        if self._crash is None:
            self._crash = TaskCrashed(f"task {task.get_name()} {problem}" + (f": {cause!r}" if cause else ""))
            self._crash.__cause__ = cause
            self._crash_seen.set()
