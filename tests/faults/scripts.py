"""What the proxy does when it is to be unkind: chosen by chance, and always something that a network, a load balancer
or an API server in trouble might do."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

from tests.faults.proxy import FAITHFUL, Answer, Asked, Cut, Fault, Tampered, gone_line

LONGEST = 4.0
"""Seconds by which a request is late at most: what is sent by a leader's deadline is done before its lease ends."""

_CODES = (401, 403, 404, 409, 410, 422, 500, 503)
_REASONS = {401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 409: "Conflict", 410: "Expired", 422: "Invalid"}

PRETENCE = Fault(passes=False, answer=Answer(201))
"""Done, says the server, and has forgotten it."""


class Weather:
    """``rate``: the share of requests, and of what watches bring, that suffer. ``lies``: whether servers say that
    bindings are done which they have forgotten. Set ``calm`` and nothing suffers any more."""

    def __init__(self, rng: random.Random, rate: float, *, lies: bool = True) -> None:
        self._rng = rng
        self._rate = rate
        self._lies = lies
        self.calm = False
        self.pretended: set[str] = set()
        """Paths of bindings that were pretended to be done."""

    def request(self, asked: Asked) -> Fault:
        rng = self._rng
        if self.calm or rng.random() >= self._rate:
            return FAITHFUL
        if self._lies and asked.path.endswith("/binding") and rng.random() < 0.05:
            self.pretended.add(asked.path)
            return PRETENCE
        fault = rng.choice(_KINDS)(rng)
        return FAITHFUL if _is_slander(asked, fault) else fault

    def lines(self, asked: Asked, lines: list[bytes]) -> Tampered:
        rng = self._rng
        if self.calm or rng.random() >= self._rate:
            return Tampered(lines)
        return rng.choice(_TAMPERINGS)(rng, lines)


def _is_slander(asked: Asked, fault: Fault) -> bool:
    """Whether a pod would be said to be gone to who asks for it: no server says that of a pod that it has."""
    denies = isinstance(fault.answer, Answer) and fault.answer.status == 404
    return denies and asked.method == "GET" and "/pods/" in asked.path


def _slow(rng: random.Random) -> Fault:
    return Fault(delay=rng.random() * LONGEST)


def _late(rng: random.Random) -> Fault:
    return Fault(late=rng.random() * LONGEST)


def _cut(rng: random.Random) -> Fault:
    """Before or after the server acted."""
    return Fault(delay=rng.random() * 0.2, passes=rng.random() < 0.5, answer=rng.choice(list(Cut)))


def _refused(rng: random.Random) -> Fault:
    code = rng.choice(_CODES)
    return Fault(passes=False, answer=Answer(code, _REASONS.get(code, "")))


def _busy(rng: random.Random) -> Fault:
    answer = Answer(rng.choice((429, 503)), "TooManyRequests", rng.randrange(1, 4))
    return Fault(passes=False, answer=answer)


def _failed_after(rng: random.Random) -> Fault:
    """The server did it, and says that it failed."""
    return Fault(answer=Answer(rng.choice((500, 503, 504)), retry_after=rng.choice((None, 1))))


_KINDS: tuple[Callable[[random.Random], Fault], ...] = (_slow, _late, _cut, _cut, _refused, _busy, _failed_after)


def _delayed(rng: random.Random, lines: list[bytes]) -> Tampered:
    return Tampered(lines, delay=rng.random() * LONGEST)


def _repeated(rng: random.Random, lines: list[bytes]) -> Tampered:
    at = rng.randrange(len(lines))
    return Tampered([*lines[: at + 1], lines[at], *lines[at + 1 :]])


def _swapped(rng: random.Random, lines: list[bytes]) -> Tampered:
    at = rng.randrange(len(lines))
    if at + 1 == len(lines) or not _may_swap(lines[at], lines[at + 1]):
        return Tampered(lines)
    return Tampered([*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]])


def _may_swap(first: bytes, second: bytes) -> bool:
    """Not so that an object changes after its end: nobody could tell that from a new one. Nor bookmarks."""
    kinds = [json.loads(line) for line in (first, second)]
    if any(event["type"] not in ("ADDED", "MODIFIED", "DELETED") for event in kinds):
        return False
    first_uid, second_uid = (event["object"]["metadata"]["uid"] for event in kinds)
    return bool(first_uid != second_uid or kinds[1]["type"] != "DELETED")


def _cut_off(rng: random.Random, lines: list[bytes]) -> Tampered:
    return Tampered(lines[: rng.randrange(len(lines) + 1)] or lines[:1], end=rng.choice(list(Cut)))


def _expired(rng: random.Random, lines: list[bytes]) -> Tampered:
    return Tampered([*lines[: rng.randrange(len(lines) + 1)], gone_line()], end=Cut.RESET)


_TAMPERINGS: tuple[Callable[[random.Random, list[bytes]], Tampered], ...] = (
    _delayed,
    _repeated,
    _swapped,
    _cut_off,
    _expired,
)
