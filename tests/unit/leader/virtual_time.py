"""Sleeping without waiting: time passes only when the test lets it, and then everything happens in order."""

import asyncio
import heapq
import itertools

from kube_pyscheduler.kit.clock import FakeClock


class VirtualTime:
    """``sleep`` takes the place of ``asyncio.sleep``; every process has the clock it asked for."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = itertools.count()

    async def sleep(self, delay: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.clock.monotonic() + delay, next(self._order), woken))
        await woken

    async def advance(self, seconds: float) -> None:
        """Let time pass, waking the sleepers one after another, each at its time."""
        end = self.clock.monotonic() + seconds
        await _settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            at, _, woken = heapq.heappop(self._sleepers)
            self.clock.advance(max(at - self.clock.monotonic(), 0.0))
            if not woken.done():
                woken.set_result(None)
            await _settle()
        self.clock.advance(end - self.clock.monotonic())


async def _settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)
