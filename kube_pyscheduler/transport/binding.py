"""Binding a pod so that its outcome is known: a lost answer is looked up, never guessed, and nothing is sent twice
without a look."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Final

from kube_pyscheduler.kit.backoff import Backoff
from kube_pyscheduler.kit.clock import Clock, RealClock
from kube_pyscheduler.objects.decode import DecodeError
from kube_pyscheduler.objects.kinds import POD
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.transport import requests
from kube_pyscheduler.transport.client import Sender
from kube_pyscheduler.transport.errors import (
    APIError,
    Conflict,
    Forbidden,
    MayNotWrite,
    NetworkError,
    NotFound,
    ServerError,
    TooManyRequests,
)

PATIENCE: Final = 30.0
"""Seconds after which a Binding is not sent again: the decision is too old by then."""

LOOKS: Final = 7
"""How often we may be refused a look at the pod before its fate is reported as unknown: that is after eight seconds or
more. A server that has just started refuses everything for two or three."""

ABSENCES: Final = 2
"""How often the pod must be said not to exist: to free the node of one that is bound would overfill it, and not all
that answers 404 is an API server."""

PAUSES: Final = (0.2, 5.0)
"""Seconds between two looks, and between two tries, at first and at most."""


class Fate(Enum):
    """What became of a pod that was to be bound."""

    BOUND = "bound"
    """It is on the node it was meant for."""
    ELSEWHERE = "elsewhere"
    """It is on another node."""
    GONE = "gone"
    """It is gone, being deleted, or another pod has its name."""
    GATED = "gated"
    """It has scheduling gates."""


async def bind_pod(
    client: Sender,
    *,
    namespace: str,
    name: str,
    uid: str,
    node: str,
    is_free: Callable[[], bool] = lambda: True,
    clock: Clock | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Fate:
    """Bind the pod of this uid to ``node`` and say what became of it.

    A pod that a look shows to be still waiting is tried again if the node ``is_free`` still: as long as the server is
    away, and once where it refused, because a server that has just started refuses all until it knows everybody's
    rights. While it does not answer the look goes on: only it knows. Raises APIError where it refused again or for
    another reason, or refuses us the look at the pod; and NetworkError or ServerError where no answer came in time and
    the pod is not bound.
    """
    clock = clock or RealClock()
    end = clock.monotonic() + PATIENCE
    backoff = Backoff(*PAUSES)
    refused = False
    while True:
        try:
            await client.send(requests.bind_pod(namespace, name, uid, node))
            return Fate.BOUND
        except NotFound:
            return Fate.GONE
        except MayNotWrite:
            raise
        except (NetworkError, ServerError, Conflict, Forbidden) as error:
            if not isinstance(error, NetworkError) or error.sent:
                fate = _fate(await _look(client, namespace, name, sleep), uid, node)
                if fate is not None:
                    return fate
            has_answered = isinstance(error, APIError)
            if isinstance(error, Conflict) or (has_answered and refused):
                raise
            refused = has_answered
            await sleep(backoff.next())
            if clock.monotonic() >= end or not is_free():
                raise


def _fate(pod: Pod | None, uid: str, node: str) -> Fate | None:
    """What became of the pod with this uid, meant for ``node``, if this is what is found under its name; None: it
    still waits."""
    if pod is None or pod.uid != uid:
        return Fate.GONE
    if pod.spec.node_name:
        return Fate.BOUND if pod.spec.node_name == node else Fate.ELSEWHERE
    if pod.is_terminating:
        return Fate.GONE
    return Fate.GATED if pod.spec.scheduling_gates else None


async def _look(client: Sender, namespace: str, name: str, sleep: Callable[[float], Awaitable[None]]) -> Pod | None:
    """The pod as it is now, as far as it is readable; None where there is none."""
    backoff = Backoff(*PAUSES)
    refusals = absences = 0
    while True:
        try:
            return await _get(client, namespace, name)
        except (NetworkError, ServerError, TooManyRequests):
            pass
        except NotFound:
            absences += 1
            if absences == ABSENCES:
                return None
        except APIError:
            refusals += 1
            if refusals == LOOKS:
                raise
        await sleep(backoff.next())


async def _get(client: Sender, namespace: str, name: str) -> Pod:
    body = await client.send(requests.get_pod(namespace, name))
    try:
        pod: Pod | None = POD.decoder.salvage(body)
    except DecodeError as error:
        raise APIError(200, "", f"unreadable pod: {error.problem}") from error
    if pod is None:
        raise APIError(200, "", "unreadable pod")
    return pod
