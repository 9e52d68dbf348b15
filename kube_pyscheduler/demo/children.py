"""The processes of a demonstration: started with a log of their own, and always stopped."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from kube_pyscheduler.kit.clock import Clock

STOP_SECONDS = 25.0
"""How long a child may take to end before it is killed; the daemon finishes its bindings first."""
POLL_SECONDS = 0.05
LOG_LINES = 40
"""How much of a log is shown when something fails."""
_ENTRY = "from kube_pyscheduler.cli.main import main; main()"


class ChildFailed(Exception):
    """A child ended by itself or did not become ready. ``log`` is the end of what it said."""

    def __init__(self, name: str, what: str, log: str) -> None:
        super().__init__(f"{name} {what}")
        self.log = log


class Child:
    """One running ``kube-pyscheduler``; what it says goes to ``log``."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path) -> None:
        self.name = name
        self.log = log
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    def check(self) -> None:
        """Raises ChildFailed when it has ended."""
        code = self._process.returncode
        if code is not None:
            raise ChildFailed(self.name, f"ended with code {code}", self.last_lines())

    async def ready(self, test: Callable[[], Awaitable[bool]], clock: Clock, seconds: float) -> None:
        """Wait until ``test`` says so. Raises ChildFailed when it ends before, or after that many seconds."""
        end = clock.monotonic() + seconds
        while not await test():
            self.check()
            if clock.monotonic() > end:
                raise ChildFailed(self.name, f"was not ready after {seconds:.0f} s", self.last_lines())
            await asyncio.sleep(POLL_SECONDS)

    def last_lines(self) -> str:
        text = self.log.read_text(encoding="utf-8", errors="replace")
        return "\n".join(text.splitlines()[-LOG_LINES:])

    async def stop(self) -> None:
        """Ask it to end, and kill it when it does not."""
        if self._process.returncode is not None:
            return
        self._process.terminate()
        try:
            await asyncio.wait_for(self._process.wait(), STOP_SECONDS)
        except TimeoutError:
            pass
        finally:
            # Also when we are interrupted a second time.
            if self._process.returncode is None:
                self._process.kill()
        await self._process.wait()


class Children:
    """Starts children; as a context manager it stops them in the end, the last one first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._children: list[Child] = []

    def __iter__(self) -> Iterator[Child]:
        return iter(self._children)

    async def start(self, name: str, *arguments: str) -> Child:
        """Run ``kube-pyscheduler`` with these arguments, by this Python and with this environment."""
        log = self._folder / f"{name}.log"
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                _ENTRY,
                *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                # Ctrl-C is for us alone; we stop the children in order.
                start_new_session=True,
            )
        child = Child(name, process, log)
        self._children.append(child)
        return child

    def check(self) -> None:
        """Raises ChildFailed when one has ended."""
        for child in self._children:
            child.check()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for child in reversed(self._children):
            await child.stop()
