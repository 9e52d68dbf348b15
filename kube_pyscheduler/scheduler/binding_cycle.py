"""Binding cycles: one task a pod, from waiting for Permit to PostBind.

Source: bindingCycle and handleBindingCycleError in pkg/scheduler/schedule_one.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kube_pyscheduler.cache.cache import Cache
from kube_pyscheduler.framework.cluster_event import EVENT_ASSIGNED_POD_DELETE
from kube_pyscheduler.framework.interfaces import Plugin, PreBind
from kube_pyscheduler.framework.status import Code, Status, error
from kube_pyscheduler.kit.clock import Clock
from kube_pyscheduler.kit.tasks import Tasks
from kube_pyscheduler.kit.verbosity import Log
from kube_pyscheduler.scheduler.failure import Failure, FailureHandler
from kube_pyscheduler.scheduler.handles import BindHandle
from kube_pyscheduler.scheduler.placement import Placement, Step
from kube_pyscheduler.scheduler.ports import Binder, BindOutcome, EventSink, ObjectPort, Observer, StatusWriter
from kube_pyscheduler.scheduler.reservation import is_overfull, refusal, take_back
from kube_pyscheduler.scheduler.waiting_pods import WaitingPods
from kube_pyscheduler.scheduling_queue.priority_queue import PriorityQueue

log = Log(__name__)

_OUT_OF_OUR_HANDS = (BindOutcome.BOUND_ELSEWHERE, BindOutcome.GONE, BindOutcome.NOT_OURS)

PARALLEL_BINDINGS = 64
"""Pods in Bind at the same time."""


class BindingCycles:
    """All pods between assume and bound. ``on_room`` is called when one leaves that ``is_full`` had counted."""

    def __init__(
        self,
        *,
        cache: Cache,
        queue: PriorityQueue,
        waiting: WaitingPods,
        failures: FailureHandler,
        binder: Binder,
        objects: ObjectPort,
        status: StatusWriter,
        events: EventSink,
        observer: Observer,
        clock: Clock,
        tasks: Tasks,
        parallel: int = PARALLEL_BINDINGS,
        on_room: Callable[[], None] = lambda: None,
    ) -> None:
        self._cache = cache
        self._queue = queue
        self._waiting = waiting
        self._failures = failures
        self._binder = binder
        self._objects = objects
        self._status = status
        self._events = events
        self._observer = observer
        self._clock = clock
        self._tasks = tasks
        self._parallel = parallel
        self._on_room = on_room
        self._slots = asyncio.Semaphore(parallel)
        self._running: dict[str, tuple[Placement, asyncio.Task[None]]] = {}
        self._binding = 0

    def __len__(self) -> int:
        """Pods in their binding cycle."""
        return len(self._running)

    @property
    def is_full(self) -> bool:
        """Whether as many pods wait for a slot in Bind as have one: deciding more of them would be idle talk."""
        return self._binding >= 2 * self._parallel

    def start(self, placement: Placement) -> None:
        """Bind the pod in the background. It must be assumed and reserved."""
        if placement.profile.pre_bind:
            placement.pre_bind, placement.refused = _pre_flight(placement)
        if placement.held is None and not placement.pre_bind and placement.refused is None:
            self._enter_bind(placement)
        task = self._tasks.start(self._run(placement), name="binding")
        self._running[placement.info.uid] = (placement, task)

    def cancel(self, uid: str, why: str) -> bool:
        """Give up the binding of a pod that is not yet in Bind: it goes back to the queue. False if it is too late, or
        no such pod is being bound."""
        found = self._running.get(uid)
        if found is None or found[0].step is Step.BIND:
            return False
        placement, task = found
        if placement.step is Step.PRE_BIND and not placement.cancelled:
            task.cancel()
        placement.cancelled = placement.cancelled or why
        if placement.held is not None:
            placement.held.preempt("", why)
        return True

    def is_target(self, node: str) -> bool:
        """Whether pods are on their way to this node."""
        return any(placement.node == node for placement, _task in self._running.values())

    def contest(self, node: str) -> None:
        """Others filled the node: pods whose Binding was not sent yet have to look again before it is."""
        for placement, _task in self._running.values():
            if placement.node == node:
                placement.contested = True

    async def drain(self, seconds: float) -> None:
        """Let the pods in Bind finish, for so many seconds; the others are given up at once, without a word."""
        for placement, task in self._running.values():
            if placement.step is not Step.BIND:
                task.cancel()
        tasks = [task for _placement, task in self._running.values()]
        if tasks:
            _done, late = await asyncio.wait(tasks, timeout=seconds)
            for task in late:
                task.cancel()
            await asyncio.wait(tasks)
        for placement, _task in self._running.values():
            # Their tasks were cancelled before they began.
            take_back(placement, self._cache)
        self._running.clear()

    # One pod

    async def _run(self, placement: Placement) -> None:
        try:
            try:
                status = await self._bind(placement)
            except asyncio.CancelledError:
                if not placement.cancelled:
                    take_back(placement, self._cache)
                    raise
                status = error(placement.cancelled)
            except Exception as raised:
                log.error("Binding cycle failed", raised, pod=placement.info.key, node=placement.node)
                status = error(str(raised) or repr(raised))
            self._finish(placement, status)
        finally:
            self._running.pop(placement.info.uid, None)
            self._waiting.release(placement.info.uid)
            if placement.step is Step.BIND:
                self._binding -= 1
                self._on_room()

    async def _bind(self, placement: Placement) -> Status | None:
        """None is success."""
        handle = BindHandle(
            self._cache.listers,
            self._binder,
            self._objects,
            self._events,
            self._clock,
            placement,
            is_free=lambda: self._cache.has_node(placement.node) and not is_overfull(self._cache, placement.node),
        )
        if placement.step is not Step.BIND:
            status = await self._before_bind(placement, handle)
            if status is not None:
                return status
            self._enter_bind(placement)
        async with self._slots:
            obstacle = self._obstacle(placement)
            if obstacle:
                return error(f"node {placement.node} {obstacle} before the pod could be bound")
            start = self._clock.monotonic()
            status = await self._ask_binders(placement, handle)
            code = Code.SUCCESS if status is None else status.code
            seconds = self._clock.monotonic() - start
            self._observer.extension_point(placement.profile.name, "Bind", code.label, seconds)
            return status

    def _obstacle(self, placement: Placement) -> str:
        """What happened to the node since it was chosen, "" if the pod can still be bound to it."""
        if not self._cache.has_node(placement.node):
            return "was deleted"
        return "was filled by others" if placement.contested and is_overfull(self._cache, placement.node) else ""

    async def _before_bind(self, placement: Placement, handle: BindHandle) -> Status | None:
        if placement.refused is not None:
            return placement.refused
        info, node = placement.info, placement.node
        # Tells autoscalers and the next scheduler where the pod is going, as this may take a while.
        self._status.patch_status(info.pod, nominated_node=node)
        if placement.held is not None and not (verdict := await self._permitted(placement)).is_success:
            return verdict
        if placement.cancelled:
            return error(placement.cancelled)
        placement.step = Step.PRE_BIND
        self._queue.done(info.uid)
        start = self._clock.monotonic()
        status = None
        for plugin in placement.pre_bind:
            asked = self._clock.monotonic()
            status = await plugin.pre_bind(handle, placement.ctx.state, info, node)
            self._answered(plugin, "PreBind", status, asked)
            if status is not None and not status.is_success:
                break
        code = Code.SUCCESS if status is None else status.code
        seconds = self._clock.monotonic() - start
        self._observer.extension_point(placement.profile.name, "PreBind", code.label, seconds)
        if status is not None and not status.is_success:
            if status.is_rejected:
                return status.by(plugin.name)
            return error(f'running PreBind plugin "{plugin.name}": {status.message}')
        return error(placement.cancelled) if placement.cancelled else None

    async def _ask_binders(self, placement: Placement, handle: BindHandle) -> Status | None:
        for plugin in placement.profile.bind:
            asked = self._clock.monotonic()
            status = await plugin.bind(handle, placement.ctx.state, placement.info, placement.node)
            self._answered(plugin, "Bind", status, asked)
            if status is None or status.is_success:
                return None
            if status.code == Code.SKIP:
                continue
            if status.is_rejected:
                return status.by(plugin.name)
            return error(f'running Bind plugin "{plugin.name}": {status.message}')
        return error("no Bind plugin took the pod")

    def _answered(self, plugin: Plugin, point: str, status: Status | None, asked: float) -> None:
        code = Code.SUCCESS if status is None else status.code
        self._observer.plugin(plugin.name, point, code.label, self._clock.monotonic() - asked)

    def _enter_bind(self, placement: Placement) -> None:
        placement.step = Step.BIND
        self._binding += 1
        self._queue.done(placement.info.uid)

    async def _permitted(self, placement: Placement) -> Status:
        assert placement.held is not None
        start = self._clock.monotonic()
        log.info(4, "Pod waiting on permit", pod=placement.info.key)
        verdict = await placement.held.verdict()
        self._waiting.release(placement.info.uid)
        self._observer.permit_wait(verdict.code.label, self._clock.monotonic() - start)
        if verdict.is_success or verdict.is_rejected:
            return verdict
        return error(f"waiting on permit for pod: {verdict.message}").by(verdict.plugin)

    # How it ends

    def _finish(self, placement: Placement, status: Status | None) -> None:
        result = placement.result
        if result is not None and result.outcome is BindOutcome.BOUND:
            self._bound(placement)
        elif result is not None and result.outcome in _OUT_OF_OUR_HANDS:
            self._lost(placement, result.outcome, result.message)
        elif result is not None and result.outcome is BindOutcome.GATED:
            self._give_up(placement)
            self._failures.requeue(placement.queued)
        elif status is None:
            self._bound(placement)
        else:
            self._failed(placement, status)

    def _bound(self, placement: Placement) -> None:
        queued, pod = placement.queued, placement.info.pod
        now = self._clock.monotonic()
        self._cache.finish_binding(placement.info.uid, now)
        self._status.forget(placement.info.uid)
        meta = pod.metadata
        note = f"Successfully assigned {meta.namespace}/{meta.name} to {placement.node}"
        self._events.event(pod, "Normal", "Scheduled", "Binding", note)
        self._observer.attempt(placement.profile.name, "scheduled", now - placement.started)
        first = queued.initial_attempt_timestamp
        self._observer.scheduled(queued.attempts, None if first is None else now - first, queued.was_flushed)
        if log.v(2):
            log.info(
                2,
                "Successfully bound pod to node",
                pod=placement.info.key,
                node=placement.node,
                evaluatedNodes=placement.decision.evaluated,
                feasibleNodes=placement.decision.feasible,
            )
            if queued.was_flushed:
                refused_by = sorted(queued.rejectors)
                log.info(4, "Pod scheduled after flush from unschedulablePods", pod=placement.info.key, by=refused_by)
        for plugin in placement.profile.post_bind:
            try:
                plugin.post_bind(placement.ctx.state, placement.info, placement.node)
            except Exception as raised:
                log.error("Plugin failed", raised, plugin=plugin.name, pod=placement.info.key)

    def _lost(self, placement: Placement, outcome: BindOutcome, message: str) -> None:
        """The pod is somebody else's, or nobody's: nothing is said of it, and others may have its node."""
        log.info(1, "Failed to bind pod", pod=placement.info.key, outcome=outcome.value, reason=message)
        seconds = self._clock.monotonic() - placement.started
        self._observer.attempt(placement.profile.name, "error", seconds)
        if outcome is BindOutcome.BOUND_ELSEWHERE:
            self._observer.conflict("bound_elsewhere")
        self._give_up(placement)
        self._queue.done(placement.info.uid)
        self._status.forget(placement.info.uid)

    def _failed(self, placement: Placement, status: Status) -> None:
        log.info(1, "Failed to bind pod", pod=placement.info.key, err=status.message)
        if placement.step is not Step.PERMIT:
            # Only what refuses a pod up to Permit may be lifted by events; this is tried again after a backoff.
            self._give_up(placement)
            self._failures.handle(placement.queued, Failure(status, placement.started))
            return
        reading, diagnosis = refusal(status)
        failure = Failure(reading, placement.started, diagnosis)
        if diagnosis is None:
            self._give_up(placement)
            self._failures.handle(placement.queued, failure)
        else:
            # In this order, so that a refused pod is not woken by its own end.
            take_back(placement, self._cache)
            self._failures.handle(placement.queued, failure)
            self._node_given_back(placement, spare=placement.info.uid)

    def _give_up(self, placement: Placement) -> None:
        take_back(placement, self._cache)
        self._node_given_back(placement)

    def _node_given_back(self, placement: Placement, spare: str = "") -> None:
        now = self._clock.monotonic()
        self._queue.move_all(
            EVENT_ASSIGNED_POD_DELETE,
            placement.info.pod,
            None,
            now,
            (lambda pod: pod.metadata.uid != spare) if spare else None,
        )


def _pre_flight(placement: Placement) -> tuple[tuple[PreBind, ...], Status | None]:
    """The PreBind plugins that have work to do, or why the pod must be given up.

    Source: RunPreBindPreFlights in pkg/scheduler/framework/runtime/framework.go.
    """
    work = []
    for plugin in placement.profile.pre_bind:
        try:
            status = plugin.pre_bind_pre_flight(placement.ctx.state, placement.info, placement.node)
        except Exception as raised:
            log.error("Plugin failed", raised, plugin=plugin.name, pod=placement.info.key)
            status = error(str(raised))
        if status is None or status.is_success:
            work.append(plugin)
        elif status.code != Code.SKIP:
            return (), error(f'running PreBindPreFlight "{plugin.name}": {status.message}')
    return tuple(work), None
