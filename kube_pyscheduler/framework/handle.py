"""What plugins may reach, by phase: what is illegal in a phase is not on its handle."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from kube_pyscheduler.framework.listers import Listers

if TYPE_CHECKING:
    from kube_pyscheduler.columns.pod_info import PodInfo
    from kube_pyscheduler.framework.status import Status
    from kube_pyscheduler.objects.pod import Pod


class StaleObject(Exception):
    """A write was refused because the object was changed since it was read."""


class Nominator(Protocol):
    """Pods that were promised a node."""

    @property
    def generation(self) -> int:
        """Grows with every change."""

    def promised(self, pod: Pod) -> str:
        """The node promised to the pod, or "": the last word of the scheduler, else what the pod's status says."""

    def nominated_on(self, node: str) -> list[PodInfo]:
        """The pods promised ``node``."""

    def nodes(self) -> list[str]:
        """Nodes with promises."""


class WaitingPod(Protocol):
    """A pod that Permit holds."""

    pod: Pod

    def allow(self, plugin: str) -> None:
        """This plugin is content; the pod goes on when all are."""

    def reject(self, plugin: str, message: str) -> bool:
        """Give the pod up. False if it was decided already."""


class SchedulingHandle(Protocol):
    """For the scheduling cycle: no I/O, no waiting."""

    @property
    def nominator(self) -> Nominator:
        """The promises in force."""

    def waiting_pod(self, uid: str) -> WaitingPod | None:
        """The held pod with this uid."""

    def waiting_pods(self) -> list[WaitingPod]:
        """All held pods."""

    def activate(self, pods: list[Pod]) -> None:
        """Move waiting pods to activeQ when this cycle ends well."""

    def later(self, what: str, pod: Pod | None, work: Work) -> None:
        """Do work that calls the API, in the background. Where it fails, that is logged as a failed ``what``, and
        ``pod`` is tried again after a backoff."""

    def wall_time(self) -> float:
        """Seconds since the Unix epoch."""


class Preemptions(Protocol):
    """What carries preemptions out."""

    def attempted(self) -> None:
        """A pod looked for victims."""

    def is_running(self, uid: str) -> bool:
        """Whether this pod's victims are still being told to go, so that it need not be tried."""

    def is_evicting(self, uid: str) -> bool:
        """Whether this pod is being told to go, or was, and is not yet gone."""


class NoPreemptions:
    """Nothing is carried out."""

    def attempted(self) -> None:
        return None

    def is_running(self, uid: str) -> bool:
        return False

    def is_evicting(self, uid: str) -> bool:
        return False


class BindingHandle(Protocol):
    """For the binding cycle and for refreshes: may call the API and wait."""

    listers: Listers

    async def bind(self, pod: Pod, node: str) -> Status | None:
        """Post the Binding, and find out what became of it. None is success."""

    async def read(self, kind: str, namespace: str, name: str) -> Any:
        """The object as the server has it, None where it has none. Raises what the port raises."""

    async def create(self, kind: str, namespace: str, body: dict[str, Any]) -> Any:
        """Make an object; returns it as it was made. Raises what the port raises."""

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
        where the patch names another version, and what the port raises."""

    async def delete(self, kind: str, namespace: str, name: str, uid: str) -> None:
        """Delete the object with this uid; one that is gone is a success. Raises what the port raises."""

    def event(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None:
        """Tell the pod's readers. ``type_``: Normal or Warning."""

    async def until(self, kind: str, key: str, predicate: Callable[[Any], bool], timeout: float) -> bool:
        """Wait until the informer's object (None when absent) satisfies ``predicate``; False after ``timeout`` s."""

    async def until_any(
        self, watched: Sequence[tuple[str, str]], predicate: Callable[..., bool], timeout: float
    ) -> bool:
        """As ``until`` for several objects, (kind, key) each: ``predicate`` gets all of them, in this order, at once
        and whenever one of them changes. What it raises ends the wait."""

    def now(self) -> float:
        """Monotonic seconds."""

    def wall_time(self) -> float:
        """Seconds since the Unix epoch."""


Work = Callable[[BindingHandle], Awaitable[None]]
