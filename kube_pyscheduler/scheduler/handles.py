"""What plugins may reach: the handles of both phases, over the queue, the waiting pods and the ports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kube_pyscheduler.framework import handle as contract
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.framework.status import Status, error
from kube_pyscheduler.kit.clock import Clock
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.scheduler.placement import Placement
from kube_pyscheduler.scheduler.ports import Binder, BindOutcome, EventSink, ObjectPort
from kube_pyscheduler.scheduler.waiting_pods import WaitingPods


class CycleHandle:
    """For scheduling cycles. ``activate_now``: how pods are moved to activeQ outside a cycle. ``start_work``: how work
    is begun in the background."""

    def __init__(
        self,
        nominator: contract.Nominator,
        waiting: WaitingPods,
        activate_now: Callable[[Iterable[Pod]], None],
        start_work: Callable[[str, Pod | None, contract.Work], None],
        clock: Clock,
    ) -> None:
        self.nominator = nominator
        self._waiting = waiting
        self._activate_now = activate_now
        self._start_work = start_work
        self._clock = clock
        self._wanted: list[Pod] | None = None

    def waiting_pod(self, uid: str) -> contract.WaitingPod | None:
        """The held pod with this uid."""
        return self._waiting.get(uid)

    def waiting_pods(self) -> list[contract.WaitingPod]:
        """All held pods."""
        return list(self._waiting.all())

    def activate(self, pods: list[Pod]) -> None:
        """Move waiting pods to activeQ when this cycle ends well; outside a cycle, at once."""
        if self._wanted is None:
            self._activate_now(pods)
        else:
            self._wanted.extend(pods)

    def later(self, what: str, pod: Pod | None, work: contract.Work) -> None:
        """Do work that calls the API, in the background."""
        self._start_work(what, pod, work)

    def wall_time(self) -> float:
        """Seconds since the Unix epoch."""
        return self._clock.now()

    def begin_cycle(self) -> None:
        """Keep what plugins want activated."""
        self._wanted = []

    def end_cycle(self) -> list[Pod]:
        """What plugins wanted activated since ``begin_cycle``."""
        wanted, self._wanted = self._wanted, None
        return wanted or []


class BindHandle:
    """For the binding cycle of one pod, and, without a placement, for refreshes."""

    __slots__ = ("_binder", "_clock", "_events", "_is_free", "_objects", "_placement", "listers")

    def __init__(
        self,
        listers: Listers,
        binder: Binder,
        objects: ObjectPort,
        events: EventSink,
        clock: Clock,
        placement: Placement | None = None,
        is_free: Callable[[], bool] = lambda: True,
    ) -> None:
        self.listers = listers
        self._is_free = is_free
        self._binder = binder
        self._objects = objects
        self._events = events
        self._clock = clock
        self._placement = placement

    async def bind(self, pod: Pod, node: str) -> Status | None:
        """Post the Binding, and find out what became of it. None is success."""
        result = await self._binder.bind(pod, node, self._is_free)
        if self._placement is not None:
            self._placement.result = result
        if result.outcome is BindOutcome.BOUND:
            return None
        return error(result.message or f"binding rejected: {result.outcome.value}")

    async def read(self, kind: str, namespace: str, name: str) -> Any:
        """The object as the server has it, None where it has none. Raises what the port raises."""
        return await self._objects.read(kind, namespace, name)

    async def create(self, kind: str, namespace: str, body: dict[str, Any]) -> Any:
        """Make an object; returns it as it was made. Raises what the port raises."""
        return await self._objects.create(kind, namespace, body)

    async def patch(
        self,
        kind: str,
        namespace: str,
        name: str,
        patch: dict[str, Any],
        *,
        status: bool = False,
        strategic: bool = False,
    ) -> Any:
        """Patch an object, or its status; returns it as it is then. Raises what the port raises."""
        return await self._objects.patch(kind, namespace, name, patch, status=status, strategic=strategic)

    async def delete(self, kind: str, namespace: str, name: str, uid: str) -> None:
        """Delete the object with this uid. Raises what the port raises."""
        await self._objects.delete(kind, namespace, name, uid)

    def event(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None:
        """Tell the pod's readers."""
        self._events.event(pod, type_, reason, action, note)

    async def until(self, kind: str, key: str, predicate: Callable[[Any], bool], timeout: float) -> bool:
        """Wait until the informer's object (None when absent) satisfies ``predicate``; False after ``timeout`` s."""
        return await self._objects.until(kind, key, predicate, timeout)

    async def until_any(
        self, watched: Sequence[tuple[str, str]], predicate: Callable[..., bool], timeout: float
    ) -> bool:
        """As ``until`` for several objects, (kind, key) each, which ``predicate`` gets in this order."""
        return await self._objects.until_any(watched, predicate, timeout)

    def now(self) -> float:
        """Monotonic seconds."""
        return self._clock.monotonic()

    def wall_time(self) -> float:
        """Seconds since the Unix epoch."""
        return self._clock.now()
