"""Binding a pod so that its outcome is known: a lost answer is looked up, never guessed and never sent twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from kube_pyscheduler.kit.backoff import Backoff
from kube_pyscheduler.objects.kinds import POD
from kube_pyscheduler.transport import requests
from kube_pyscheduler.transport.client import Client
from kube_pyscheduler.transport.errors import Conflict, NetworkError, ServerError

LOOKS: Final = 5
"""How often the pod is looked at after a lost answer before its fate is reported as unknown."""


async def bind_pod(
    client: Client,
    *,
    namespace: str,
    name: str,
    uid: str,
    node: str,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Bind the pod of this uid to ``node``.

    Returns when it is bound there, also where only the answer got lost or an earlier try had done it. Raises Conflict
    when it is bound elsewhere, being deleted, or another pod has its name; NotFound when it is gone; any other
    APIError, or NetworkError when it is not bound, or still unknown after a few looks at it.
    """
    try:
        await client.send(requests.bind_pod(namespace, name, uid, node))
    except (NetworkError, ServerError, Conflict) as error:
        if isinstance(error, NetworkError) and not error.sent:
            raise
        found = await _node_of(client, namespace, name, uid, sleep)
        if found == node:
            return
        if found and not isinstance(error, Conflict):
            raise Conflict(409, "Conflict", f"pod {namespace}/{name} is already assigned to node {found}") from error
        raise


async def _node_of(
    client: Client, namespace: str, name: str, uid: str, sleep: Callable[[float], Awaitable[None]]
) -> str:
    """The node of the pod with this uid, "" while it has none. Raises NotFound when there is no such pod (any more)."""
    backoff = Backoff(0.2, 3.0)
    for look in range(1, LOOKS + 1):
        try:
            pod = POD.decoder.salvage(await client.send(requests.get_pod(namespace, name)))
            break
        except (NetworkError, ServerError):
            if look == LOOKS:
                raise
            await sleep(backoff.next())
    return "" if pod is None or pod.metadata.uid != uid else pod.spec.node_name
