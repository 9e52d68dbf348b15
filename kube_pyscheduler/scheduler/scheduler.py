"""The scheduler as one thing: everything between watch events and bindings, put together over the ports."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from kube_pyscheduler.cache.cache import Cache
from kube_pyscheduler.cache.dump import dump_cache
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.engine.decision import Decision
from kube_pyscheduler.engine.engine import Engine
from kube_pyscheduler.framework.handle import Work
from kube_pyscheduler.framework.interfaces import Preempting, Refreshing
from kube_pyscheduler.framework.profile import Profile
from kube_pyscheduler.kit.clock import Clock, RealClock
from kube_pyscheduler.kit.rng import Rng
from kube_pyscheduler.kit.tasks import Tasks
from kube_pyscheduler.kit.verbosity import Log
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.scheduler.audit import Audit
from kube_pyscheduler.scheduler.binding_cycle import PARALLEL_BINDINGS, BindingCycles
from kube_pyscheduler.scheduler.cycle_observer import CycleObserver
from kube_pyscheduler.scheduler.dispatcher import SendPatch, StatusDispatcher
from kube_pyscheduler.scheduler.event_handlers import EventHandlers
from kube_pyscheduler.scheduler.failure import FailureHandler
from kube_pyscheduler.scheduler.handles import BindHandle, CycleHandle
from kube_pyscheduler.scheduler.ports import (
    Binder,
    EventSink,
    Evictor,
    ObjectPort,
    Observer,
    PodLister,
    PodReader,
    Truth,
)
from kube_pyscheduler.scheduler.preemption import Preemption
from kube_pyscheduler.scheduler.refresh import refresh_forever
from kube_pyscheduler.scheduler.scheduling_loop import Decide, SchedulingLoop
from kube_pyscheduler.scheduler.waiting_pods import WaitingPods
from kube_pyscheduler.scheduling_queue.dump import dump_queue
from kube_pyscheduler.scheduling_queue.priority_queue import (
    INITIAL_BACKOFF,
    MAX_BACKOFF,
    MAX_UNSCHEDULABLE,
    PriorityQueue,
)

log = Log(__name__)

GRACE = 30.0
"""Seconds that bindings get to finish when the scheduler stops."""


@dataclass(frozen=True, slots=True)
class Ports:
    """The world outside. ``pods``: all pods, as the store of their informer has them. ``patch_status``: how a status
    patch is sent, see ``dispatcher``."""

    binder: Binder
    patch_status: SendPatch
    events: EventSink
    observer: Observer
    pods: PodLister
    objects: ObjectPort
    reader: PodReader
    evictor: Evictor
    truth: Truth


class Scheduler:
    """Give it watch events with ``handle`` from the beginning; it decides from ``start`` to ``stop``.

    ``profiles`` by scheduler name. ``rng`` breaks ties. Backoffs in seconds, and ``max_unschedulable``:
    after how long a pod is tried again that no event helped. ``decide`` replaces the engine. Nothing of
    it is thread-safe: it belongs to one event loop.
    """

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        ports: Ports,
        *,
        rng: Rng,
        clock: Clock | None = None,
        initial_backoff: float = INITIAL_BACKOFF,
        max_backoff: float = MAX_BACKOFF,
        max_unschedulable: float = MAX_UNSCHEDULABLE,
        parallel_bindings: int = PARALLEL_BINDINGS,
        decide: Decide | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._profiles = dict(profiles)
        self._ports = ports
        self._rng = rng
        self._clock = clock = clock or RealClock()
        self._sleep = sleep
        self._tasks = Tasks()
        self._refreshers: dict[Refreshing, asyncio.Task[NoReturn]] = {}
        self._is_started = False
        self.cache = Cache()
        self.queue = PriorityQueue(
            profiles,
            self.cache.listers,
            initial_backoff=initial_backoff,
            max_backoff=max_backoff,
            max_unschedulable=max_unschedulable,
            observer=ports.observer,
            timer=clock.monotonic,
            on_ready=self._wake,
        )
        self.waiting = WaitingPods()
        self.status = StatusDispatcher(ports.patch_status, self._tasks, clock, sleep=sleep)
        failures = FailureHandler(
            self.queue, ports.pods, self.status, ports.events, ports.observer, clock, self._profiles
        )
        self.bindings = BindingCycles(
            cache=self.cache,
            queue=self.queue,
            waiting=self.waiting,
            failures=failures,
            binder=ports.binder,
            objects=ports.objects,
            status=self.status,
            events=ports.events,
            observer=ports.observer,
            clock=clock,
            tasks=self._tasks,
            parallel=parallel_bindings,
            on_room=self._wake,
        )
        self.preemption = Preemption(
            queue=self.queue,
            cache=self.cache,
            pods=ports.pods,
            evictor=ports.evictor,
            bindings=self.bindings,
            status=self.status,
            events=ports.events,
            observer=ports.observer,
            tasks=self._tasks,
            clock=clock,
        )
        self._handle = CycleHandle(
            self.queue.nominator,
            self.waiting,
            lambda pods: self.queue.activate(pods, clock.monotonic()),
            self._start_work,
            clock,
        )
        self._cycle_observer = CycleObserver(ports.observer, clock)
        self._engine = Engine(self.cache.table, self.cache.listers, self._handle, self._cycle_observer)
        self._introduce_preemption(profiles.values())
        self.loop = SchedulingLoop(
            profiles=self._profiles,
            queue=self.queue,
            cache=self.cache,
            decide=decide or self._decide,
            handle=self._handle,
            waiting=self.waiting,
            bindings=self.bindings,
            failures=failures,
            preemption=self.preemption,
            events=ports.events,
            observer=ports.observer,
            cycle_observer=self._cycle_observer,
            clock=clock,
        )
        self._handlers = EventHandlers(
            profiles=self._profiles,
            cache=self.cache,
            queue=self.queue,
            bindings=self.bindings,
            preemption=self.preemption,
            status=self.status,
            observer=ports.observer,
            clock=clock,
        )
        self.audit = Audit(
            profiles=self._profiles,
            cache=self.cache,
            queue=self.queue,
            pods=ports.pods,
            reader=ports.reader,
            truth=ports.truth,
            observer=ports.observer,
            clock=clock,
            sleep=sleep,
        )

    # Events and decisions

    @property
    def kinds(self) -> list[str]:
        """The kinds whose events ``handle`` wants, as in ``kind:``."""
        return self._handlers.kinds()

    def handle(self, kind: str, old: Any, new: Any) -> None:
        """A watch event, in order, with the informer's store already changed. ``old`` is None for an added object,
        ``new`` is None for a deleted one."""
        self._handlers.handle(kind, old, new)

    def prepare(self, profiles: Iterable[Profile]) -> None:
        """Let the plugins of profiles that ``reload`` is to bring build what takes long. Raises what they raise."""
        if self._is_started:
            self._engine.prepare(profiles)

    def reload(self, profiles: Mapping[str, Profile]) -> None:
        """Decide with other profiles from now on; one that is there already goes on undisturbed. Pods in flight finish
        with the plugins they started with."""
        new = profiles.keys() - self._profiles.keys()
        self._introduce_preemption(profiles.values())
        self._let_go(profiles)
        self._profiles.clear()
        self._profiles.update(profiles)
        self._engine.keep(profiles.values())
        self.queue.reload(profiles, self._clock.monotonic())
        for pod in self._ports.pods:
            if pod.spec.scheduler_name in new and not pod.spec.node_name:
                self._handlers.pod(None, pod)
        if self._is_started:
            self._start_refreshers()

    def set_backoff(self, initial: float, maximum: float) -> None:
        """Seconds, see ``PriorityQueue``; for pods that fail from now on."""
        self.queue.set_backoff(initial, maximum)

    def _let_go(self, profiles: Container[str]) -> None:
        """Pods that wait for a profile other than these are somebody else's."""
        for queued in list(self.queue):
            if queued.profile not in profiles:
                self.queue.delete(queued.pod, self._clock.monotonic())
                self.status.forget(queued.uid)

    def dump(self) -> Iterator[str]:
        """Nodes with their pods, the queue, and the pods on their way, a line each, for people."""
        yield from dump_cache(self.cache)
        yield from dump_queue(self.queue, self._clock.monotonic())
        yield f"Binding: {len(self.bindings)} pods, {len(self.waiting)} of them held by Permit"
        yield f"Status patches to send: {len(self.status)}"

    def _introduce_preemption(self, profiles: Iterable[Profile]) -> None:
        for profile in profiles:
            for plugin in (*profile.post_filter, *profile.pre_enqueue):
                if isinstance(plugin, Preempting):
                    plugin.preemptions = self.preemption

    def _decide(self, profile: Profile, info: PodInfo) -> Decision:
        return self._engine.schedule(profile, info, self._rng)

    def _wake(self) -> None:
        self.loop.wake()

    # Running

    def start(self) -> None:
        """Decide from now on. Somebody must await ``crashed``."""
        self._is_started = True
        self._engine.prepare(self._profiles.values())
        self._tasks.start(self.loop.run(), name="scheduling loop")
        self._tasks.start(self.audit.run(), name="audit", forever=True)
        self._start_refreshers()

    async def crashed(self) -> NoReturn:
        """Raises TaskCrashed when the scheduler itself is broken: the process should end."""
        await self._tasks.crashed()

    async def stop(self, grace: float = GRACE) -> None:
        """Pop no more, let the Bindings that were sent and the status patches finish for ``grace`` seconds in all, end
        everything else."""
        end = self._clock.monotonic() + grace
        self.loop.stop()
        await self.bindings.drain(grace)
        await self.status.drain(max(end - self._clock.monotonic(), 0.0))
        await self.abort()

    async def abort(self) -> None:
        """End everything at once: nothing is sent any more when this returns."""
        self._is_started = False
        self.loop.stop()
        await self._tasks.close()

    def _start_refreshers(self) -> None:
        """One for every plugin that wants it, none for others."""
        wanted = dict.fromkeys(plugin for profile in self._profiles.values() for plugin in profile.refreshing)
        for plugin in [plugin for plugin in self._refreshers if plugin not in wanted]:
            self._refreshers.pop(plugin).cancel()
        handle = self._outer_handle()
        for plugin in wanted:
            if plugin not in self._refreshers:
                refreshing = refresh_forever(plugin, handle, self._sleep)
                self._refreshers[plugin] = self._tasks.start(refreshing, name=f"refresh {plugin.name}")

    def _outer_handle(self) -> BindHandle:
        ports = self._ports
        return BindHandle(self.cache.listers, ports.binder, ports.objects, ports.events, self._clock)

    def _start_work(self, what: str, pod: Pod | None, work: Work) -> None:
        self._tasks.start(self._work(what, pod, work), name=what)

    async def _work(self, what: str, pod: Pod | None, work: Work) -> None:
        try:
            await work(self._outer_handle())
        except Exception as raised:
            log.error("Work of a plugin failed", raised, what=what, pod=pod.key if pod is not None else "")
            if pod is not None:
                self.queue.retry_later(pod, self._clock.monotonic())
