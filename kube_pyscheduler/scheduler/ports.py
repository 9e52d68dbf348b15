"""What the scheduler needs of the world, as abstract ports.

The daemon wires them to an API server and to Prometheus; tools and tests provide them in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, Protocol

from kube_pyscheduler.objects.meta import Object
from kube_pyscheduler.objects.pod import Pod


class BindOutcome(Enum):
    """What became of a Binding, after the pod was read back where the answer left a doubt."""

    BOUND = "bound"
    """The pod is on the node we asked for."""
    BOUND_ELSEWHERE = "bound elsewhere"
    """Somebody else put it on another node."""
    GONE = "gone"
    """The pod does not exist any more, is being deleted, or is another one of the same name."""
    GATED = "gated"
    """The pod has scheduling gates (again)."""
    NOT_OURS = "not ours"
    """Nothing was sent, because we do not lead any more: the pod is for the next leader to bind."""
    FAILED = "failed"
    """Not bound, for the reason given; trying again later may help."""


@dataclass(frozen=True, slots=True)
class BindResult:
    outcome: BindOutcome
    message: str = ""


class Binder(Protocol):
    async def bind(self, pod: Pod, node: str, is_free: Callable[[], bool]) -> BindResult:
        """Post the Binding with the pod's uid and find out what became of it. Never posts blindly twice, nor a second
        time unless ``is_free``, the node, by then; raises nothing but cancellation."""


class PodLister(Protocol):
    """The pods as the watch last told, pending ones included."""

    def get(self, key: str) -> Pod | None:
        """By ``namespace/name``."""

    def __iter__(self) -> Iterator[Pod]: ...


class PodReader(Protocol):
    async def read(self, pod: Pod) -> Pod | None:
        """The pod as the API server has it now; None where it is gone or another one has its name. Raises if the
        server cannot tell."""


class ObjectStore(Protocol):
    """The objects of one kind as the watch last told."""

    def get(self, key: str) -> Object | None:
        """By ``namespace/name``, or ``name``."""

    def __iter__(self) -> Iterator[Object]: ...


class Version(NamedTuple):
    uid: str
    version: str


class Listing(NamedTuple):
    """What the API server has: its version, and those of the objects by key."""

    version: str
    objects: Mapping[str, Version]


class Truth(Protocol):
    """The API server itself, beside what its watches told. ``kind`` as in ``kind:``."""

    def told(self, kind: str) -> ObjectStore:
        """What the watch has told so far."""

    async def list(self, kind: str) -> Listing:
        """What there is now, of what the watch should tell. Raises if the server cannot tell."""

    async def waiting(self) -> Listing:
        """The pods without a node, whoever schedules them. Raises as ``list``."""

    async def relist(self, kind: str) -> None:
        """Let the watch begin anew, so that what was not told is."""


class ObjectPort(Protocol):
    """What plugins may ask of the API server while a pod is being bound."""

    async def read(self, kind: str, namespace: str, name: str) -> Any:
        """The object as the server has it, None where it has none. Raises if the server cannot tell."""

    async def create(self, kind: str, namespace: str, body: dict[str, Any]) -> Any:
        """Make an object; returns it as it was made. Raises if that fails."""

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
        """Patch an object, or its status, as a merge or strategically; returns it as it is then. Raises StaleObject
        (of ``framework.handle``) where the patch names another version, and otherwise if it fails."""

    async def delete(self, kind: str, namespace: str, name: str, uid: str) -> None:
        """Delete the object with this uid; one that is gone is a success. Raises if that fails."""

    async def until(self, kind: str, key: str, predicate: Callable[[Any], bool], timeout: float) -> bool:
        """Wait until the informer's object (None when absent) satisfies ``predicate``; False after ``timeout`` s."""

    async def until_any(
        self, watched: Sequence[tuple[str, str]], predicate: Callable[..., bool], timeout: float
    ) -> bool:
        """As ``until`` for several objects, (kind, key) each: ``predicate`` gets all of them, in this order, at once
        and whenever one of them changes. What it raises ends the wait."""


class Evictor(Protocol):
    async def evict(self, victim: Pod, message: str) -> None:
        """Set the DisruptionTarget condition (reason PreemptionByScheduler, with ``message``) and delete the pod of
        this uid. A pod that is gone already is a success. Raises if it fails."""


class StatusWriter(Protocol):
    """Merged per pod, sent in the background; nobody waits for it."""

    def patch_status(
        self,
        pod: Pod,
        *,
        reason: str | None = None,
        message: str = "",
        nominated_node: str | None = None,
        observed_generation: int | None = None,
    ) -> None:
        """Set the PodScheduled condition to False with ``reason`` and ``message`` (where a reason is given), and
        ``status.nominatedNodeName`` (where not None; "" clears it). What would change nothing is not sent."""

    def forget(self, uid: str) -> None:
        """The pod is gone or bound: drop what was not sent yet."""


class EventSink(Protocol):
    def event(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None:
        """Tell the pod's readers. ``type_``: Normal or Warning. Never blocks, never fails."""


class Observer(Protocol):
    """Where measurements go. Durations are seconds. Called on the hot path: must be cheap."""

    def attempt(self, profile: str, result: str, seconds: float) -> None:
        """One attempt ended: ``scheduled``, ``unschedulable`` or ``error``."""

    def algorithm(self, seconds: float) -> None:
        """Filtering, scoring and PostFilter of one attempt."""

    def decided(self, rows_judged: int, nodes: int) -> None:
        """A decision was made about so many nodes, for which kernels judged so many rows anew."""

    def extension_point(self, profile: str, point: str, status: str, seconds: float) -> None:
        """All plugins of one extension point."""

    def plugin(self, plugin: str, point: str, status: str, seconds: float) -> None:
        """One plugin at one extension point, where plugins work on one pod for long: PreBind and Bind."""

    def scheduled(self, attempts: int, sli_seconds: float | None, flushed: bool) -> None:
        """A pod was bound after so many attempts, so long after its first one became possible."""

    def queue_incoming(self, queue: str, event: str, count: int = 1) -> None:
        """Pods entered ``active``, ``backoff`` or ``unschedulable`` because of ``event``."""

    def hint(self, plugin: str, event: str, hint: str, seconds: float) -> None:
        """A QueueingHint was asked; ``hint`` is Queue, QueueSkip or Error."""

    def event_handled(self, event: str, seconds: float) -> None:
        """A cluster event was dealt with."""

    def permit_wait(self, result: str, seconds: float) -> None:
        """A pod left Permit."""

    def preemption_attempted(self) -> None:
        """A pod looked for victims."""

    def preemption(self, victims: int) -> None:
        """A pod has victims, some of which are to be removed."""

    def conflict(self, kind: str) -> None:
        """A foreign decision collided with ours: ``bound_elsewhere`` or ``over_allocatable``."""

    def lost_pod(self) -> None:
        """A pending pod of ours was in no queue and was taken in again."""

    def difference(self, what: str) -> None:
        """Cache, queue or watch differ from what the API server has."""


class NullObserver:
    """Measures nothing."""

    def __getattr__(self, name: str) -> Any:
        return _ignore


def _ignore(*_args: object, **_kwargs: object) -> None:
    return None
