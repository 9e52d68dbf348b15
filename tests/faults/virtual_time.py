"""An event loop whose time leaps: when nobody has anything to do, it is at once as late as the next timer.

Connections stay within the process, and what would run in a thread runs in place. So what happens depends on nothing
but the seed, and a minute of waiting costs nothing.
"""

from __future__ import annotations

import asyncio
import random
import selectors
import socket
import uuid
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

from kube_pyscheduler.kit.clock import RealClock
from tests.faults.network import Address, Network, ProtocolFactory

T = TypeVar("T")

EPOCH = 1_700_000_000.0
"""Seconds since the epoch at which wall clocks start."""

LOOK = 10e-6
"""Seconds that pass whenever somebody looks at a clock, as if computing took its time."""


class _Leaping(selectors.DefaultSelector):
    """Never waits while there is a timer: lets ``leap`` move the time instead."""

    leap: Callable[[float], None]

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            return super().select(None)
        ready = super().select(0)
        if not ready and timeout > 0:
            self.leap(timeout)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """See the module. ``wall_offset``: seconds by which wall clocks are off; change it to let them jump."""

    def __init__(self) -> None:
        self._now = 1_000.0
        self.wall_offset = 0.0
        selector = _Leaping()
        selector.leap = self._leap
        super().__init__(selector)
        self._network = Network(self)
        self._addresses: dict[socket.socket, Address] = {}

    def time(self) -> float:
        return self._now

    def monotonic(self) -> float:
        """For clocks: looking takes a moment."""
        self._now += LOOK
        return self._now

    def wall(self) -> float:
        return EPOCH + self._now + self.wall_offset

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done

    async def create_server(self, factory: ProtocolFactory, host: Any = None, port: Any = None, **_: Any) -> Any:  # type: ignore[override]
        return self._network.listen(factory, host, port)

    async def sock_connect(self, sock: socket.socket, address: Any) -> None:
        """The socket only stands for the connection that ``create_connection`` makes."""
        self._network.check(address)
        self._addresses[sock] = address

    async def create_connection(  # type: ignore[override]
        self, factory: ProtocolFactory, host: Any = None, port: Any = None, *, sock: Any = None, **_: Any
    ) -> Any:
        address = (host, port)
        if sock is not None:
            address = self._addresses.pop(sock)
            sock.close()
        return self._network.connect(factory, address)

    def _leap(self, seconds: float) -> None:
        self._now += seconds


@contextmanager
def virtual_clocks(loop: VirtualLoop, seed: int) -> Iterator[None]:
    """All clocks of the product show the loop's time, and all chance comes from ``seed``."""
    rng = random.Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RealClock, "monotonic", lambda _self: loop.monotonic())
        patch.setattr(RealClock, "now", lambda _self: loop.wall())
        patch.setattr(uuid, "uuid4", lambda: uuid.UUID(int=rng.getrandbits(128), version=4))
        patch.setattr(random, "SystemRandom", lambda: rng)
        random.seed(seed)
        yield


def run(main: Callable[[VirtualLoop], Coroutine[Any, Any, T]], seed: int) -> T:
    """Run ``main`` in virtual time from its beginning."""
    loop = VirtualLoop()
    with virtual_clocks(loop, seed), asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(main(loop))
