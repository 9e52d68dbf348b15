"""QPS and burst: how many requests a client may send."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from kube_pyscheduler.kit.clock import Clock, RealClock

DEFAULT_QPS = 50.0
DEFAULT_BURST = 100
"""Source: pkg/scheduler/apis/config/v1/defaults.go, ClientConnection."""


class TokenBucket:
    """``burst`` requests at once, ``qps`` a second in the long run; waiters are served in the order of their calls.

    Starts full. Tokens may be owed: a waiter takes its token at once and sleeps until it exists.
    Source: client-go/util/flowcontrol/throttle.go.
    """

    def __init__(
        self,
        qps: float,
        burst: int,
        *,
        clock: Clock | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._qps = qps
        self._burst = float(burst)
        self._clock = clock or RealClock()
        self._sleep = sleep
        self._tokens = self._burst
        self._filled_at = self._clock.monotonic()

    def reserve(self) -> float:
        """Take a token; the seconds to wait before using it."""
        now = self._clock.monotonic()
        tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._qps) - 1.0
        self._filled_at = now
        self._tokens = tokens
        return 0.0 if tokens >= 0.0 else -tokens / self._qps

    async def wait(self) -> None:
        """Return when a request may be sent."""
        delay = self.reserve()
        if delay > 0.0:
            await self._sleep(delay)


def limiter(qps: float, burst: int, *, clock: Clock | None = None) -> TokenBucket | None:
    """The limiter for configured values: 0 stands for the default, negative ``qps`` for no limit (None)."""
    if qps < 0:
        return None
    return TokenBucket(qps or DEFAULT_QPS, burst or DEFAULT_BURST, clock=clock)
