"""The plugin. Source: pkg/scheduler/framework/plugins/volumebinding/volume_binding.go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kube_pyscheduler.columns.arrays import Mask
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.config.args import VolumeBindingArgs
from kube_pyscheduler.framework.cluster_event import EventRegistration
from kube_pyscheduler.framework.cycle_state import CycleState, StateKey
from kube_pyscheduler.framework.handle import BindingHandle
from kube_pyscheduler.framework.interfaces import (
    CycleContext,
    FilterKernel,
    NodeFilter,
    NodeScore,
    PreBind,
    PreFilter,
    PreFilterResult,
    PreScore,
    Reserve,
    ScoreKernel,
)
from kube_pyscheduler.framework.status import SKIP, Status, error
from kube_pyscheduler.objects.storage import claim_uses
from kube_pyscheduler.plugins.volume_binding.assuming import Assumed, assume, restore
from kube_pyscheduler.plugins.volume_binding.binding import BindingFailed, bind
from kube_pyscheduler.plugins.volume_binding.claims import PodClaims, claims_of
from kube_pyscheduler.plugins.volume_binding.events import EVENTS
from kube_pyscheduler.plugins.volume_binding.failures import ProvisioningFailures
from kube_pyscheduler.plugins.volume_binding.index import VolumeIndex
from kube_pyscheduler.plugins.volume_binding.kernel import VolumeBindingKernel
from kube_pyscheduler.plugins.volume_binding.scores import NoScores, StorageScoreKernel, line_of


@dataclass(slots=True)
class BindingState:
    """What one attempt knows of the pod's claims. ``assumed``: from Reserve on."""

    claims: PodClaims
    kernel: VolumeBindingKernel | None = None
    assumed: Assumed | None = None


STATE: StateKey[BindingState] = StateKey("VolumeBinding")


class VolumeBinding(PreFilter, NodeFilter, PreScore, NodeScore, Reserve, PreBind):
    """Unlike upstream, a node where a claim's volume could not be provisioned is avoided while there are others."""

    name = "VolumeBinding"

    def __init__(self, args: VolumeBindingArgs | None = None) -> None:
        args = args or VolumeBindingArgs()
        self._timeout = float(args.bind_timeout_seconds)
        self._line = line_of(args.shape) if args.shape else None
        self._failures = ProvisioningFailures()

    def prepare(self, ctx: CycleContext) -> None:
        ctx.table.attached(VolumeIndex).sync(ctx.listers)

    def pre_filter(self, ctx: CycleContext, pod: PodInfo) -> PreFilterResult | Status | None:
        uses = pod.derived(claim_uses)
        if not uses:
            return SKIP
        claims = claims_of(ctx.listers, pod.pod, uses)
        if isinstance(claims, Status):
            return claims
        ctx.state.write(STATE, BindingState(claims))
        return None

    def filter_kernel(self, ctx: CycleContext, pod: PodInfo) -> FilterKernel | None:
        state = ctx.state.read(STATE)
        if state is None:
            return None
        index = ctx.table.attached(VolumeIndex)
        index.sync(ctx.listers)
        state.kernel = VolumeBindingKernel(index, ctx.listers, state.claims)
        failed = self._failures.nodes(state.claims.delayed)
        state.kernel.last_resort = [ctx.table.row_of[node] for node in failed if node in ctx.table.row_of]
        return state.kernel

    def pre_score(self, ctx: CycleContext, pod: PodInfo, feasible: Mask) -> Status | None:
        state = ctx.state.read(STATE)
        return SKIP if self._line is None or state is None or state.kernel is None else None

    def score_kernel(self, ctx: CycleContext, pod: PodInfo) -> ScoreKernel | Status:
        state = ctx.state.read(STATE)
        if self._line is None or state is None or state.kernel is None:
            return NoScores()
        return StorageScoreKernel(state.kernel, self._line)

    def reserve(self, ctx: CycleContext, pod: PodInfo, node: str) -> Status | None:
        state = ctx.state.read(STATE)
        if state is None or state.kernel is None or not state.claims.delayed:
            return None
        try:
            state.assumed = assume(ctx.listers, state.kernel.decide(ctx.table.row_of[node]), node)
        except LookupError as problem:
            return error(str(problem))
        return None

    def unreserve(self, ctx: CycleContext, pod: PodInfo, node: str) -> None:
        state = ctx.state.read(STATE)
        if state is not None and state.assumed is not None:
            restore(ctx.listers, state.assumed)

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        known = state.read(STATE)
        return SKIP if known is None or known.assumed is None else None

    async def pre_bind(self, handle: BindingHandle, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        known = state.read(STATE)
        if known is None or known.assumed is None:
            return None
        try:
            await bind(handle, known.assumed, node, self._timeout)
        except BindingFailed as failed:
            if failed.claim is not None:
                self._failures.note(failed.claim, node)
            return error(str(failed))
        self._failures.forget(known.assumed.provisions)
        return None

    def events(self) -> Sequence[EventRegistration]:
        return EVENTS
