"""What plugins may reach, by phase: what is illegal in a phase is not on its handle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from kube_pyscheduler.framework.listers import Listers

if TYPE_CHECKING:
    from kube_pyscheduler.columns.pod_info import PodInfo
    from kube_pyscheduler.framework.status import Status
    from kube_pyscheduler.objects.pod import Pod


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

    async def patch(self, kind: str, namespace: str, name: str, patch: dict[str, Any], *, status: bool = False) -> Any:
        """Merge-patch an object, or its status; returns it as it is then. Raises what the port raises."""

    async def until(self, kind: str, key: str, predicate: Callable[[Any], bool], timeout: float) -> bool:
        """Wait until the informer's object (None when absent) satisfies ``predicate``; False after ``timeout`` s."""

    async def until_any(
        self, watched: Sequence[tuple[str, str]], predicate: Callable[..., bool], timeout: float
    ) -> bool:
        """As ``until`` for several objects, (kind, key) each: ``predicate`` gets all of them, in this order, at once
        and whenever one of them changes. What it raises ends the wait."""

    def now(self) -> float:
        """Monotonic seconds."""
