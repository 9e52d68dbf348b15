"""A pod that was decided and assumed, on its way to being bound."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.engine.decision import Decision
from kube_pyscheduler.framework.interfaces import CycleContext, PreBind
from kube_pyscheduler.framework.profile import Profile
from kube_pyscheduler.framework.status import Status
from kube_pyscheduler.scheduler.ports import BindResult
from kube_pyscheduler.scheduler.waiting_pods import HeldPod
from kube_pyscheduler.scheduling_queue.queued_pod import QueuedPod


class Step(IntEnum):
    """How far a binding cycle is."""

    PERMIT = 0
    PRE_BIND = 1
    """From here on nothing refuses the pod any more; what fails is tried again after a backoff."""
    BIND = 2
    """From here on it cannot be cancelled."""


@dataclass(slots=True, eq=False)
class Placement:
    """``info``: the pod as it will be, with its node name. ``started``: when the attempt began, in monotonic seconds.
    ``held``: set where Permit waits. ``pre_bind``: the plugins that have work to do before the pod is bound.
    ``refused``: why it is given up before that. ``cancelled``: why the binding must not happen, "" while it may.
    ``contested``: others filled the node meanwhile; look again before the Binding is sent. ``result``: the answer to
    the Binding."""

    profile: Profile
    queued: QueuedPod
    info: PodInfo
    node: str
    decision: Decision
    started: float
    held: HeldPod | None = None
    pre_bind: tuple[PreBind, ...] = ()
    refused: Status | None = None
    step: Step = Step.PERMIT
    cancelled: str = ""
    contested: bool = False
    result: BindResult | None = None

    @property
    def ctx(self) -> CycleContext:
        return self.decision.ctx
