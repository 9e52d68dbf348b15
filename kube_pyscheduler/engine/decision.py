"""What one attempt came to."""

from __future__ import annotations

from dataclasses import dataclass

from kube_pyscheduler.framework.cycle_state import CycleState
from kube_pyscheduler.framework.diagnosis import Diagnosis
from kube_pyscheduler.framework.interfaces import CycleContext, PostFilterResult
from kube_pyscheduler.framework.status import Status


@dataclass(frozen=True, slots=True)
class Decision:
    """``node``: the chosen node, or None; then ``status`` says why (a refusal or an error), ``diagnosis`` has the
    details of a refusal, and ``post_filter`` what PostFilter wants done. ``evaluated``: nodes that were judged or whose
    judgement was still good; ``rows_judged``: rows for which kernels of node-scoped plugins ran in this attempt."""

    status: Status
    ctx: CycleContext
    node: str | None = None
    diagnosis: Diagnosis | None = None
    post_filter: PostFilterResult | None = None
    evaluated: int = 0
    feasible: int = 0
    rows_judged: int = 0

    @property
    def state(self) -> CycleState:
        return self.ctx.state
