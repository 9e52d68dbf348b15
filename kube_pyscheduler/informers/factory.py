"""The informers of all kinds that are asked for."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from typing import Any, Final, TypeVar, cast

from kube_pyscheduler.informers.informer import Informer, Observer
from kube_pyscheduler.informers.reading import stays_on_its_node
from kube_pyscheduler.kit.clock import Clock
from kube_pyscheduler.kit.tasks import Tasks
from kube_pyscheduler.objects.kinds import KINDS, POD, Kind
from kube_pyscheduler.objects.meta import Object
from kube_pyscheduler.transport.client import Client

T = TypeVar("T", bound=Object)

LIVE_PODS: Final = "status.phase!=Succeeded,status.phase!=Failed"
"""Finished pods are not listed; a pod that finishes leaves the watch as deleted.
Source: pkg/scheduler/scheduler.go, NewInformerFactory."""


class Informers:
    """One informer for each of ``kinds``; those in ``optional`` may be absent or hidden.

    All kinds are listed at once; their first lists are handed out one after another, in the order of ``kinds``.
    """

    def __init__(
        self,
        client: Client,
        kinds: Iterable[Kind[Any]] = KINDS,
        *,
        optional: Collection[Kind[Any]] = (),
        observer: Observer | None = None,
        clock: Clock | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        uniform: Callable[[], float] = random.random,
    ) -> None:
        self._informers: dict[str, Informer[Any]] = {}
        previous: list[Informer[Any]] = []
        for kind in kinds:
            informer: Informer[Any] = Informer(
                client,
                kind,
                field_selector=LIVE_PODS if kind == POD else "",
                optional=kind in optional,
                salvage=stays_on_its_node if kind == POD else None,
                after=previous,
                observer=observer,
                clock=clock,
                sleep=sleep,
                uniform=uniform,
            )
            self._informers[kind.name] = informer
            previous = [informer]

    def __iter__(self) -> Iterator[Informer[Any]]:
        return iter(self._informers.values())

    def of(self, kind: Kind[T]) -> Informer[T]:
        """The informer of a kind. KeyError for one that was not asked for."""
        return cast("Informer[T]", self._informers[kind.name])

    def start(self, tasks: Tasks) -> None:
        """Run all informers as tasks of this owner. Handlers must have been added."""
        for informer in self:
            tasks.start(informer.run(), name=f"informer {informer.kind.plural}", forever=True)

    async def synced(self) -> None:
        """Return when every first list has been handed out."""
        for informer in self:
            await informer.synced.wait()

    async def relist(self) -> None:
        """List all kinds anew; then we know all that was true when this was called."""
        await asyncio.gather(*(informer.relist() for informer in self))
