"""What people are told who want to know what the scheduler knows: by SIGUSR2 in the log, by HTTP on the secure port.

Source of the signal and of its two answers: pkg/scheduler/backend/cache/debugger/debugger.go.
"""

from __future__ import annotations

from aiohttp import web

from kube_pyscheduler.kit.tasks import Tasks
from kube_pyscheduler.kit.verbosity import Log
from kube_pyscheduler.scheduler.scheduler import Scheduler

log = Log(__name__)


class Debugger:
    """Dumps what the scheduler keeps, and compares it with what the API server has. Its work runs in ``tasks``."""

    def __init__(self, scheduler: Scheduler, tasks: Tasks) -> None:
        self._scheduler = scheduler
        self._tasks = tasks

    def on_signal(self) -> None:
        """Log the dump, a record a line, and after it what the comparison finds."""
        for line in self._scheduler.dump():
            log.info(0, "Dump", line=line)
        self._tasks.start(self._log_comparison(), name="comparison")

    async def _log_comparison(self) -> None:
        # What differs is logged as it is found.
        log.info(0, "Compared with the API server", result=(await self._compare()).splitlines()[-1])

    async def _compare(self) -> str:
        """A line for each difference, and a last one that says how many there are."""
        try:
            found = await self._scheduler.audit.compare()
        except Exception as error:
            log.error("Cannot compare with what the API server has", error)
            return f"cannot compare: {error}\n"
        lines = [f"{one.what} {one.kind} {one.name} here={one.here} {one.note}".rstrip() for one in found]
        return "\n".join((*lines, f"{len(found)} differences\n"))

    # HTTP

    async def show_dump(self, _request: web.Request) -> web.Response:
        return web.Response(text="\n".join(self._scheduler.dump()) + "\n")

    async def show_comparison(self, _request: web.Request) -> web.Response:
        """Takes as long as a difference must last in order to count."""
        return web.Response(text=await self._compare())
