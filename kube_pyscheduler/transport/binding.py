"""Binding a pod so that its outcome is known: a lost answer is looked up, never guessed and never sent twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Final

from kube_pyscheduler.kit.backoff import Backoff
from kube_pyscheduler.objects.kinds import POD
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.transport import requests
from kube_pyscheduler.transport.client import Sender
from kube_pyscheduler.transport.errors import (
    APIError,
    Conflict,
    NetworkError,
    NotFound,
    ServerError,
    TooManyRequests,
)

LOOKS: Final = 5
"""How often we may be refused a look at the pod before its fate is reported as unknown."""

LOOK_PAUSES: Final = (0.2, 5.0)
"""Seconds between two looks, at first and at most."""


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
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Fate:
    """Bind the pod of this uid to ``node`` and say what became of it.

    While the server does not answer this goes on: only it knows. Raises APIError where the server refused for another
    reason, or refuses us the look at the pod; and NetworkError or ServerError where no answer came and the pod is not
    bound.
    """
    try:
        await client.send(requests.bind_pod(namespace, name, uid, node))
    except NotFound:
        return Fate.GONE
    except (NetworkError, ServerError, Conflict) as error:
        if isinstance(error, NetworkError) and not error.sent:
            raise
        pod = await _look(client, namespace, name, sleep)
        if pod is None or pod.uid != uid:
            return Fate.GONE
        if pod.spec.node_name:
            return Fate.BOUND if pod.spec.node_name == node else Fate.ELSEWHERE
        if pod.is_terminating:
            return Fate.GONE
        if pod.spec.scheduling_gates:
            return Fate.GATED
        raise
    return Fate.BOUND


async def _look(client: Sender, namespace: str, name: str, sleep: Callable[[float], Awaitable[None]]) -> Pod | None:
    """The pod as it is now, as far as it is readable; None where there is none."""
    backoff = Backoff(*LOOK_PAUSES)
    refusals = 0
    while True:
        try:
            return await _get(client, namespace, name)
        except (NetworkError, ServerError, TooManyRequests):
            pass
        except APIError:
            refusals += 1
            if refusals == LOOKS:
                raise
        await sleep(backoff.next())


async def _get(client: Sender, namespace: str, name: str) -> Pod | None:
    try:
        pod: Pod | None = POD.decoder.salvage(await client.send(requests.get_pod(namespace, name)))
    except NotFound:
        return None
    return pod
