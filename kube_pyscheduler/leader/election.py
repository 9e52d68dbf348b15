"""The rules of leader election: who leads, judged from a lease record and local monotonic time alone.

The timestamps in a record are never compared with a clock; they only show that the holder has written again. Whoever
does not hold the lease lets its whole duration pass, without seeing a change, before taking it.
Source: client-go/tools/leaderelection/leaderelection.go.
"""

from __future__ import annotations

import math
import socket
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from kube_pyscheduler.kit.timestamps import rfc3339_micro

JITTER_FACTOR: Final = 1.2
"""How much of a retry period a candidate may wait in addition."""

RELEASED_DURATION: Final = 1
"""``leaseDurationSeconds`` of a released lease: not null, and as short as the API allows."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds. A lease not renewed for ``lease_duration`` may be taken; a leader that could not renew it for
    ``renew_deadline`` stops; there are ``retry_period`` between attempts. Raises ValueError where these contradict."""

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        for name in ("lease_duration", "renew_deadline", "retry_period"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if self.lease_duration <= self.renew_deadline:
            raise ValueError("lease_duration must be greater than renew_deadline")
        if self.renew_deadline <= JITTER_FACTOR * self.retry_period:
            raise ValueError(f"renew_deadline must be greater than retry_period * {JITTER_FACTOR}")

    @property
    def request_deadline(self) -> float:
        """Seconds for one request, so that a dead connection leaves time for another attempt.
        Source: client-go/tools/leaderelection/resourcelock/interface.go, NewFromKubeconfig."""
        return max(self.renew_deadline / 2, min(1.0, self.renew_deadline))


@dataclass(frozen=True, slots=True)
class Record:
    """What a Lease says. Times are as on the wire; unreadable fields are "" or 0."""

    holder: str = ""
    duration: float = 0.0
    acquire_time: str = ""
    renew_time: str = ""
    transitions: int = 0

    @classmethod
    def of(cls, lease: Mapping[str, Any]) -> Record:
        """The record of a decoded Lease, which may be malformed."""
        spec = lease.get("spec")
        fields = spec if isinstance(spec, Mapping) else {}
        return cls(
            holder=_text(fields.get("holderIdentity")),
            duration=float(_int(fields.get("leaseDurationSeconds"))),
            acquire_time=_text(fields.get("acquireTime")),
            renew_time=_text(fields.get("renewTime")),
            transitions=_int(fields.get("leaseTransitions")),
        )


@dataclass(frozen=True, slots=True)
class Observed:
    """A record, and the monotonic time at which it was first seen as it is."""

    record: Record
    since: float

    def again(self, record: Record, now: float) -> Observed:
        """After another look: the time starts anew when anything has changed."""
        return self if record == self.record else Observed(record, now)


class Decision(Enum):
    ACQUIRE = "acquire"
    RENEW = "renew"
    WAIT = "wait"
    LOST = "lost"


def decide(observed: Observed, identity: str, timing: Timing, *, leading: bool, now: float) -> Decision:
    """What ``identity`` is to do, given what it has seen and whether it leads. A lease that does not say how long it
    lasts, lasts as long as ours would."""
    record = observed.record
    if record.holder == identity:
        return Decision.RENEW
    expired = now >= observed.since + (record.duration or timing.lease_duration)
    if leading:
        return Decision.LOST if record.holder else Decision.RENEW
    return Decision.ACQUIRE if expired or not record.holder else Decision.WAIT


def claim(previous: Record | None, identity: str, timing: Timing, wall: float) -> dict[str, Any]:
    """The spec to write in order to hold the lease; ``wall`` is in seconds since the epoch."""
    now = rfc3339_micro(wall)
    ours = previous is not None and previous.holder == identity
    transitions = 0 if previous is None else previous.transitions + (0 if ours else 1)
    return {
        "holderIdentity": identity,
        "leaseDurationSeconds": math.ceil(timing.lease_duration),
        "acquireTime": previous.acquire_time if ours and previous and previous.acquire_time else now,
        "renewTime": now,
        "leaseTransitions": transitions,
    }


def release(previous: Record, wall: float) -> dict[str, Any]:
    """The spec that gives the lease back."""
    now = rfc3339_micro(wall)
    return {
        "holderIdentity": "",
        "leaseDurationSeconds": RELEASED_DURATION,
        "acquireTime": now,
        "renewTime": now,
        "leaseTransitions": previous.transitions,
    }


def new_identity() -> str:
    """A name that no other process has: also a restarted process is another candidate."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _int(value: Any) -> int:
    return value if isinstance(value, int) else 0
