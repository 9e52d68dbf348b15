"""A second look, should a watch event ever be missed or mistaken: pods that nobody queues, bindings that nobody
confirms, and whatever else differs from what the API server has.

Source of the comparison: pkg/scheduler/backend/cache/debugger/comparer.go, which compares with the informers only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import NoReturn

from kube_pyscheduler.cache.cache import Cache
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.framework.cluster_event import EVENT_ASSIGNED_POD_DELETE
from kube_pyscheduler.framework.profile import Profile
from kube_pyscheduler.kit.clock import Clock
from kube_pyscheduler.kit.verbosity import Log
from kube_pyscheduler.scheduler.consistency import (
    BEHIND,
    Difference,
    behind,
    node_differences,
    pod_differences,
    untold,
)
from kube_pyscheduler.scheduler.ports import Observer, PodLister, PodReader, Truth
from kube_pyscheduler.scheduling_queue.priority_queue import PriorityQueue

log = Log(__name__)

PAUSE = 60.0
"""Seconds between two audits. A lost pod is found by the second."""

COMPARE_WAITING_EVERY = 5
"""Audits from one look at the API server's pods without a node to the next: there are few of them, as a rule, and one
that the watch does not tell of would wait for ever."""

COMPARE_EVERY = 30
"""Audits from one comparison with fresh lists to the next: the API server has to send all pods for it."""

SECOND_LOOK = 10.0
"""Seconds after which a difference must still be there in order to count: a watch may be that late."""

COMPARED = ("Node", "Pod")
"""The kinds whose objects are kept elsewhere, too."""


class Audit:
    """Run it, or call its methods now and then."""

    def __init__(
        self,
        *,
        profiles: Mapping[str, Profile],
        cache: Cache,
        queue: PriorityQueue,
        pods: PodLister,
        reader: PodReader,
        truth: Truth,
        observer: Observer,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._profiles = profiles
        self._cache = cache
        self._queue = queue
        self._pods = pods
        self._reader = reader
        self._truth = truth
        self._observer = observer
        self._clock = clock
        self._sleep = sleep
        self._comparing = asyncio.Lock()
        self._suspects: set[str] = set()

    async def run(self) -> NoReturn:
        """Audit for ever."""
        number = 0
        while True:
            await self._sleep(PAUSE)
            number += 1
            self.find_lost()
            await self.settle_overdue()
            try:
                if number % COMPARE_EVERY == 0:
                    await self.compare()
                elif number % COMPARE_WAITING_EVERY == 0:
                    await self.compare_waiting()
            except Exception as error:
                log.error("Cannot compare with what the API server has", error)

    def find_lost(self) -> None:
        """Queue the pods of ours that wait for a node and are in no place; such as were so last time too, because a
        pod may be between two places for a moment."""
        now = self._clock.monotonic()
        suspects = set()
        for pod in self._pods:
            uid = pod.metadata.uid
            if (
                pod.spec.node_name
                or pod.spec.scheduler_name not in self._profiles
                or pod.is_terminal
                or pod.is_terminating
                or uid in self._queue
                or self._cache.pod(uid) is not None
            ):
                continue
            if uid not in self._suspects:
                suspects.add(uid)
                continue
            log.error("Pod was in no queue", pod=pod.key, uid=uid)
            self._observer.lost_pod()
            self._queue.add(pod, now)
        self._suspects = suspects

    async def settle_overdue(self) -> None:
        """Ask the API server about bound pods that the watch has not confirmed in time."""
        for info in self._cache.overdue(self._clock.monotonic()):
            try:
                await self._settle(info)
            except Exception as error:
                log.error("Cannot find out what became of a binding", error, pod=info.key)

    async def _settle(self, info: PodInfo) -> None:
        latest = await self._reader.read(info.pod)
        uid, now = info.uid, self._clock.monotonic()
        if not self._cache.is_assumed(uid):
            return
        if latest is not None and latest.spec.node_name == info.pod.spec.node_name and not latest.is_terminal:
            # True, and the watch is merely slow.
            self._cache.finish_binding(uid, now)
            return
        log.info(1, "Binding was not confirmed", pod=info.key, node=info.pod.spec.node_name)
        self._cache.forget(uid)
        self._queue.move_all(EVENT_ASSIGNED_POD_DELETE, info.pod, None, now)
        if latest is not None and not latest.is_terminal:
            if latest.spec.node_name:
                self._cache.set_pod(latest)
            elif latest.spec.scheduler_name in self._profiles:
                self._queue.add(latest, now)

    async def compare(self) -> list[Difference]:
        """What our watches have not told in time, or cache and queue have otherwise than they told; logged and counted.
        Watches that are behind begin anew. Raises what the lists raise."""
        return await self._confirmed(self._look)

    async def compare_waiting(self) -> list[Difference]:
        """The same for what our watch has not told of pods without a node."""
        return await self._confirmed(self._look_at_waiting)

    async def _confirmed(self, look: Callable[[], Awaitable[Iterable[Difference]]]) -> list[Difference]:
        async with self._comparing:
            suspects = set(await look())
            if not suspects:
                return []
            await self._sleep(SECOND_LOOK)
            found = [difference for difference in await look() if difference in suspects]
        for difference in found:
            log.error(
                "The API server has it otherwise",
                what=difference.what,
                name=difference.name,
                here=difference.here,
                note=difference.note,
            )
            self._observer.difference(difference.what)
        for kind in COMPARED:
            if any(difference.what == BEHIND and difference.kind == kind for difference in found):
                await self._truth.relist(kind)
        self._count_lost(difference for difference in found if difference.kind == "Pod")
        return found

    def _count_lost(self, found: Iterable[Difference]) -> None:
        """Count the waiting pods of ours that we had not heard of until now."""
        for difference in found:
            pod = self._pods.get(difference.name)
            is_new = difference.what == BEHIND and not difference.here
            if is_new and pod and not pod.spec.node_name and pod.spec.scheduler_name in self._profiles:
                self._observer.lost_pod()

    async def _look_at_waiting(self) -> Iterable[Difference]:
        return untold("Pod", await self._truth.waiting(), self._truth.told("Pod"))

    async def _look(self) -> list[Difference]:
        found: list[Difference] = []
        for kind in COMPARED:
            found.extend(behind(kind, await self._truth.list(kind), self._truth.told(kind)))
        # Each part takes a tenth of a second or two in a large cluster; others may have their turn in between.
        await asyncio.sleep(0)
        found.extend(node_differences(self._truth.told("Node"), self._cache))
        await asyncio.sleep(0)
        found.extend(pod_differences(self._truth.told("Pod"), self._cache, self._queue, self._profiles))
        return found
