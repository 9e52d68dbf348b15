"""A pod on its way through the queue."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.objects.pod import Pod


class Place(Enum):
    """Where a pod is. It is in one place at a time."""

    NOWHERE = "Nowhere"
    ACTIVE = "Active"
    """Ready to be tried."""
    BACKOFF = "Backoff"
    """Refused before; worth another try when its backoff is over, or earlier if there is nothing else to do."""
    ERROR_BACKOFF = "ErrorBackoff"
    """An attempt went wrong; not tried before its backoff is over."""
    UNSCHEDULABLE = "Unschedulable"
    """Refused or gated, until something happens that may help."""
    IN_FLIGHT = "InFlight"
    """Popped, and not done."""


NOBODY: frozenset[str] = frozenset()


@dataclass(slots=True, eq=False)
class QueuedPod:
    """A pod with the story of its attempts. Times are monotonic seconds.

    ``timestamp``: when it entered the queue, or came back from its last attempt. ``attempts``: pops so far.
    ``unschedulable_count`` and ``consecutive_errors`` determine its backoff, which ends at ``backoff_expiration`` (None
    until it was computed). ``initial_attempt_timestamp``: when it could be tried for the first time.
    ``unschedulable_plugins``: who refused it last; ``pending_plugins``: who of them said Pending. ``gating_plugin``:
    who keeps it out of activeQ, or "". ``was_flushed``: it is tried again only because it waited for so long;
    ``flushed_at``: when that happened last.

    Source: QueuedPodInfo in pkg/scheduler/framework/types.go.
    """

    pod_info: PodInfo
    timestamp: float
    attempts: int = 0
    unschedulable_count: int = 0
    consecutive_errors: int = 0
    initial_attempt_timestamp: float | None = None
    unschedulable_plugins: frozenset[str] = NOBODY
    pending_plugins: frozenset[str] = NOBODY
    gating_plugin: str = ""
    was_flushed: bool = False
    flushed_at: float = -math.inf
    backoff_expiration: float | None = None
    place: Place = Place.NOWHERE

    @property
    def pod(self) -> Pod:
        return self.pod_info.pod

    @property
    def uid(self) -> str:
        return self.pod_info.pod.metadata.uid

    @property
    def profile(self) -> str:
        """Name of the profile that is responsible for the pod."""
        return self.pod_info.pod.spec.scheduler_name

    @property
    def gated(self) -> bool:
        return self.gating_plugin != ""

    @property
    def rejectors(self) -> frozenset[str]:
        """Plugins whose events may help the pod."""
        return self.unschedulable_plugins | self.pending_plugins
