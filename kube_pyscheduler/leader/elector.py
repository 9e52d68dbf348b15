"""Performs an election: acquires a Lease, holds it, gives it back."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Awaitable, Callable
from typing import Any, Final, NoReturn

import msgspec

from kube_pyscheduler.kit.clock import Clock, RealClock
from kube_pyscheduler.kit.tasks import Ended
from kube_pyscheduler.kit.verbosity import Log
from kube_pyscheduler.leader.election import (
    Decision,
    Observed,
    Record,
    Timing,
    claim,
    decide,
    release,
)
from kube_pyscheduler.transport import requests
from kube_pyscheduler.transport.client import Sender
from kube_pyscheduler.transport.errors import APIError, NetworkError, NotFound

log = Log(__name__)

HEALTH_MARGIN: Final = 20.0
"""Seconds after the end of our lease at which we report ourselves as sick if we still think that we lead.
Source: cmd/kube-scheduler/app/server.go, NewLeaderHealthzAdaptor."""

SPREAD: Final = 0.5
"""How much of a retry period a candidate may wait less, so that candidates do not march in step and a lease that is
given back finds a new leader within one period."""

Announce = Callable[[dict[str, Any], str], None]
"""``(lease, note)``: an Event on the lease that says who "became leader" or "stopped leading"."""


class LeaseLost(Ended):
    """We lead no longer: somebody else holds the lease, or it could not be renewed in time."""


class Elector:
    """One candidate: ``acquire()`` returns when it leads, ``hold()`` then renews until it is cancelled or loses, and
    ``release()`` gives the lease back once nothing acts under it any more.

    The client is best one with its own rate limit, so that no crowd of other requests delays a renewal.
    """

    def __init__(
        self,
        client: Sender,
        *,
        namespace: str,
        name: str,
        identity: str,
        timing: Timing,
        announce: Announce | None = None,
        clock: Clock | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        uniform: Callable[[], float] = random.random,
    ) -> None:
        self.identity = identity
        self._client = client
        self._namespace = namespace
        self._name = name
        self._timing = timing
        self._announce = announce
        self._clock = clock or RealClock()
        self._sleep = sleep
        self._uniform = uniform
        self._lease: dict[str, Any] = {}
        self._observed: Observed | None = None
        self._renewed_at: float | None = None
        """When the last successful claim was sent, while we lead."""

    def is_leader(self) -> bool:
        """Whether we may act now. False from the renew deadline on, even if nobody has noticed that yet."""
        return self._renewed_at is not None and self._clock.monotonic() < self._renewed_at + self._timing.renew_deadline

    def is_healthy(self) -> bool:
        """False when we went on as leader long after the lease ended: the loop must be stuck."""
        limit = self._timing.lease_duration + HEALTH_MARGIN
        return self._renewed_at is None or self._clock.monotonic() <= self._renewed_at + limit

    @property
    def leader(self) -> str:
        """The identity of the holder last seen, "" if none."""
        return self._observed.record.holder if self._observed else ""

    async def acquire(self) -> None:
        """Try until we lead."""
        lock = f"{self._namespace}/{self._name}"
        log.info(0, "Attempting to acquire leader lease", lock=lock, identity=self.identity)
        last_problem = ""
        while True:
            leader = self.leader
            problem = await self._attempt(math.inf)
            if not problem:
                break
            if problem == self._held():
                log.info(4, "Not the leader", lock=lock, problem=problem)
            elif problem != last_problem:
                log.error("Cannot acquire the lease", lock=lock, problem=problem)
            last_problem = problem
            if self.leader != leader:
                log.info(0, "New leader elected", lock=lock, leader=self.leader)
            await self._sleep(self._timing.retry_period * (1.0 - SPREAD * self._uniform()))
        log.info(0, "Successfully acquired lease", lock=lock)
        self._tell("became leader")

    async def hold(self) -> NoReturn:
        """Renew the lease. Raises LeaseLost; then nothing may be done in its name any more. To stop leading, cancel
        this when the work is done, not before."""
        try:
            while True:
                await self._sleep(self._until_renewal())
                await self._renew()
        except LeaseLost as error:
            log.error("Failed to renew lease", lock=f"{self._namespace}/{self._name}", problem=str(error))
            self._renewed_at = None
            self._tell("stopped leading")
            raise

    async def release(self) -> None:
        """Give the lease back if it is still ours, so that another candidate need not wait for its end. Whatever goes
        wrong is logged: then it just ends by itself."""
        if self._renewed_at is None:
            return
        self._renewed_at = None
        end = self._clock.monotonic() + self._timing.renew_deadline
        try:
            if await self._look(end) and self.leader == self.identity:
                await self._write(release(Record.of(self._lease), self._clock.now()), end)
        except (APIError, NetworkError) as error:
            log.error("Failed to release lease", lock=f"{self._namespace}/{self._name}", problem=str(error))
        self._tell("stopped leading")

    def _held(self) -> str:
        return f"the lease is held by {self.leader}"

    def _until_renewal(self) -> float:
        """Counted from when the last claim was sent, so that slow answers do not eat up the time for the next one."""
        assert self._renewed_at is not None
        return max(self._renewed_at + self._timing.retry_period - self._clock.monotonic(), 0.0)

    # -- one attempt -------------------------------------------------------------------------------------------------

    async def _renew(self) -> None:
        """Attempts until one succeeds, closer to each other as the deadline nears. Raises LeaseLost."""
        assert self._renewed_at is not None
        end = self._renewed_at + self._timing.renew_deadline
        period = self._timing.retry_period
        while self._clock.monotonic() < end:
            problem = await self._attempt(end)
            if not problem:
                return
            if self.leader not in ("", self.identity):
                raise LeaseLost(self._held())
            log.error("Cannot renew the lease, trying again", problem=problem)
            left = max(end - self._clock.monotonic(), 0.0)
            await self._sleep(min(period, max(left / 2, period / 10), left))
        raise LeaseLost(f"not renewed for {self._timing.renew_deadline:g} s")

    async def _attempt(self, end: float) -> str:
        """Claim the lease if the rules allow it; "" or what stood in the way. As leader first on the assumption that
        nobody else has touched it. Nothing is sent after ``end``, in monotonic seconds."""
        try:
            if self._renewed_at is not None and await self._claim_unseen(end):
                return ""
            return await self._look_and_claim(end)
        except (APIError, NetworkError) as error:
            return str(error)

    async def _claim_unseen(self, end: float) -> bool:
        try:
            await self._claim(end)
        except (APIError, NetworkError) as error:
            log.info(2, "Failed to update the lease optimistically, looking at it", problem=str(error))
            return False
        return True

    async def _look_and_claim(self, end: float) -> str:
        if await self._look(end):
            assert self._observed is not None
            leading = self._renewed_at is not None
            now = self._clock.monotonic()
            decision = decide(self._observed, self.identity, self._timing, leading=leading, now=now)
            if decision in (Decision.WAIT, Decision.LOST):
                return self._held()
        await self._claim(end)
        return ""

    async def _look(self, end: float) -> bool:
        """Read the lease; False where there is none. Raises APIError, NetworkError."""
        try:
            self._see(await self._send(requests.get_lease(self._namespace, self._name), end))
        except NotFound:
            self._lease = {}
            return False
        return True

    async def _claim(self, end: float) -> None:
        """Write the lease as ours. Raises APIError, NetworkError."""
        before = self._clock.monotonic()
        previous = Record.of(self._lease) if self._lease else None
        await self._write(claim(previous, self.identity, self._timing, self._clock.now()), end)
        self._renewed_at = before

    async def _write(self, spec: dict[str, Any], end: float) -> None:
        if self._lease:
            old = self._lease.get("spec")
            lease = {**self._lease, "spec": {**(old if isinstance(old, dict) else {}), **spec}}
            request = requests.update_lease(self._namespace, self._name, lease)
        else:
            metadata = {"name": self._name, "namespace": self._namespace}
            lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
            request = requests.create_lease(self._namespace, lease)
        self._see(await self._send(request, end))

    async def _send(self, request: requests.Request, end: float) -> bytes:
        left = end - self._clock.monotonic()
        if left <= 0:
            raise NetworkError("no time left to renew the lease", sent=False)
        return await self._client.send(request, deadline=min(self._timing.request_deadline, left))

    def _see(self, body: bytes) -> None:
        try:
            lease = msgspec.json.decode(body, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise APIError(200, "", f"unreadable lease: {error}") from error
        record, now = Record.of(lease), self._clock.monotonic()
        self._lease = lease
        self._observed = self._observed.again(record, now) if self._observed else Observed(record, now)

    def _tell(self, what: str) -> None:
        if self._announce is not None and self._lease:
            self._announce(self._lease, f"{self.identity} {what}")
