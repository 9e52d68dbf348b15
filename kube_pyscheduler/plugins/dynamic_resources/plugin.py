"""DynamicResources: devices for the claims of a pod.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from functools import partial

import numpy as np

from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.config.args import DynamicResourcesArgs
from kube_pyscheduler.devices.fragments import MAX_STEPS
from kube_pyscheduler.devices.requests import AllocationError
from kube_pyscheduler.devices.results import allocation_of
from kube_pyscheduler.devices.search import Budget, OutOfSteps
from kube_pyscheduler.devices.world import Devices
from kube_pyscheduler.framework.cluster_event import EventRegistration
from kube_pyscheduler.framework.cycle_state import CycleState
from kube_pyscheduler.framework.diagnosis import Diagnosis
from kube_pyscheduler.framework.handle import BindingHandle
from kube_pyscheduler.framework.interfaces import (
    ZERO_SCORES,
    CycleContext,
    FilterKernel,
    NodeFilter,
    NodeScore,
    PostFilter,
    PostFilterResult,
    PreBind,
    PreEnqueue,
    PreFilter,
    PreFilterResult,
    Reserve,
    ScoreKernel,
)
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.framework.status import SKIP, Status, error, unresolvable, unschedulable
from kube_pyscheduler.kit.rng import Rng
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.objects.resource import AllocationResult, DeviceClaim, DeviceRequest, ResourceClaim
from kube_pyscheduler.plugins.dynamic_resources import binding, conditions, events, writes
from kube_pyscheduler.plugins.dynamic_resources.claims import MadeClaims, NotReady, claims_of
from kube_pyscheduler.plugins.dynamic_resources.extended import requests_for, wanted_resources
from kube_pyscheduler.plugins.dynamic_resources.kernel import (
    STATUSES,
    UNAVAILABLE,
    AlternativesKernel,
    ClaimsKernel,
    may_score,
)
from kube_pyscheduler.plugins.dynamic_resources.state import EXTENDED, STATE, Extended, PodState


class DynamicResources(PreEnqueue, PreFilter, NodeFilter, PostFilter, NodeScore, Reserve, PreBind):
    """See the module."""

    name = "DynamicResources"

    def __init__(self, args: DynamicResourcesArgs | None = None) -> None:
        self._binding_timeout = float((args or DynamicResourcesArgs()).binding_timeout)

    def events(self) -> Sequence[EventRegistration]:
        return events.REGISTRATIONS

    def prepare(self, ctx: CycleContext) -> None:
        ctx.table.attached(Devices).sync(ctx.listers)

    # Before the nodes

    def pre_enqueue(self, pod: Pod, view: Listers) -> Status | None:
        try:
            claims_of(pod, view.resource_claims)
        except NotReady as reason:
            return unresolvable(str(reason))
        return None

    def pre_filter(self, ctx: CycleContext, pod: PodInfo) -> PreFilterResult | Status | None:
        devices = ctx.table.attached(Devices)
        state = PodState(devices)
        ctx.state.write(STATE, state)
        try:
            claims = claims_of(pod.pod, ctx.listers.resource_claims)
        except NotReady as reason:
            return unresolvable(str(reason))
        extended = self._extended(ctx, pod, devices)
        if not claims and extended is None:
            return SKIP
        devices.sync(ctx.listers)
        to_allocate = []
        for number, claim in enumerate(claims):
            if claim.allocation is not None:
                continue
            if devices.allocated.is_in_flight(claim.uid):
                return unresolvable(f"resource claim {claim.key} is in the process of being allocated")
            for request in claim.spec.devices.requests:
                problem = _problem(ctx, claim, request)
                if problem is not None:
                    return problem
            to_allocate.append(number)
        state.claims, state.extended, state.to_allocate = claims, extended, tuple(to_allocate)
        return None

    def _extended(self, ctx: CycleContext, pod: PodInfo, devices: Devices) -> Extended | None:
        """The claim for extended resources, if classes back any of the pod's. Source: preFilterExtendedResources."""
        resources = wanted_resources(pod)
        if not resources:
            return None
        devices.sync_classes(ctx.listers)
        if not any(devices.extended.class_of(name) is not None for name in resources):
            return None
        known = ctx.table.attached(MadeClaims).of(pod.pod, ctx.listers.resource_claims)
        return Extended(f"{pod.uid}/extended-resources", resources, known)

    # Nodes

    def filter_kernel(self, ctx: CycleContext, pod: PodInfo) -> FilterKernel | None:
        state = ctx.state.read(STATE)
        if state is None or state.is_empty:
            return None
        failed = [
            number
            for number, claim in enumerate(state.claims)
            if conditions.has_failed(claim, self._binding_timeout, ctx.handle.wall_time())
        ]
        return ClaimsKernel(ctx.table, pod.pod, state, failed)

    def post_filter(
        self, ctx: CycleContext, pod: PodInfo, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult | None, Status]:
        """Give back an allocation that keeps the pod from the nodes, where nobody else uses the claim."""
        state = ctx.state.read(STATE)
        if state is None:
            # An earlier PreFilter ended the attempt.
            return None, error("not found")
        if state.is_empty:
            return None, unschedulable("no new claims to deallocate")
        for number in _shuffled(_unavailable_claims(state, diagnosis), ctx.rng):
            claim = state.claims[number]
            if all(consumer.uid == pod.uid for consumer in claim.status.reserved_for[:2]) and (
                len(claim.status.reserved_for) < 2
            ):
                ctx.handle.later("deallocation", pod.pod, partial(writes.deallocate, claim))
                return None, unschedulable("deallocation of ResourceClaim completed")
        if state.extended is not None and state.extended.stale is not None:
            ctx.handle.later("deletion of a claim", pod.pod, partial(writes.delete, state.extended.stale))
            return None, unschedulable("deletion of ResourceClaim completed")
        return None, unschedulable("still not schedulable")

    def score_kernel(self, ctx: CycleContext, pod: PodInfo) -> ScoreKernel | Status:
        state = ctx.state.read(STATE)
        if state is None or state.is_empty or not may_score(state):
            return ZERO_SCORES
        return AlternativesKernel(state)

    # The chosen node

    def reserve(self, ctx: CycleContext, pod: PodInfo, node: str) -> Status | None:
        state = ctx.state.read(STATE)
        if state is None or state.is_empty:
            return None
        try:
            allocations = self.allocate(ctx, pod, node)
        except AllocationError as problem:
            return error(problem.text(state.keys(pod.pod.namespace)))
        except OutOfSteps:
            return error(f"node {node}: timed out trying to allocate devices")
        if allocations is None:
            return error("claim allocation not found for node")
        state.allocations = allocations
        for number, allocation in allocations.items():
            state.devices.allocated.take(_uid(state, number), allocation.devices.results)
        return None

    def allocate(self, ctx: CycleContext, pod: PodInfo, node: str) -> dict[int, AllocationResult] | None:
        """What the claims would get on ``node``, by their numbers; None where they cannot be allocated there. Raises
        AllocationError and OutOfSteps."""
        state = ctx.state.read(STATE)
        row = ctx.table.row_of[node]
        part = next((part for part in state.parts if part.rows is None or part.rows[row]), None) if state else None
        if state is None or part is None or part.fragment is None:
            return {}
        claims: dict[int, DeviceClaim] = {number: state.claims[number].spec.devices for number in state.to_allocate}
        if state.extended is not None:
            state.extended.requests = requests_for(pod.pod, part.resources, state.devices.extended)
            claims[EXTENDED] = state.extended.requests.devices
        search = part.fragment.search(state.devices.inventory.pools_of(row), Budget(MAX_STEPS))
        chosen = search.run()
        if chosen is None:
            return None
        new_share_id = partial(_share_id, ctx.rng)
        return {
            number: allocation_of(place, claim, chosen[place], search, node, new_share_id)
            for place, (number, claim) in enumerate(claims.items())
        }

    def unreserve(self, ctx: CycleContext, pod: PodInfo, node: str) -> None:
        state = ctx.state.read(STATE)
        if state is None:
            return
        for number in state.allocations:
            state.devices.allocated.give_back(_uid(state, number))
        for claim in state.claims:
            if claim.allocation is not None and claim.is_reserved_for(pod.uid):
                ctx.handle.later("release of a claim", None, partial(writes.release, claim, pod.uid))
        if state.extended is not None and state.extended.created is not None:
            ctx.handle.later("deletion of a claim", None, partial(writes.delete, state.extended.created))

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        known = state.read(STATE)
        return SKIP if known is None or known.is_empty else None

    async def pre_bind(self, handle: BindingHandle, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        known = state.read(STATE)
        if known is None or known.is_empty:
            return None
        try:
            await binding.write_claims(handle, known, pod.pod)
            await conditions.wait(handle, known, pod.pod, node, self._binding_timeout)
        except binding.BindingFailed as failed:
            return error(str(failed))
        return None


def _problem(ctx: CycleContext, claim: ResourceClaim, request: DeviceRequest) -> Status | None:
    """What is wrong with a request of a claim that is to be allocated."""
    if request.exactly is not None:
        wanted = [(request.name, request.exactly.device_class_name)]
    elif request.first_available:
        wanted = [(f"{request.name}/{sub.name}", sub.device_class_name) for sub in request.first_available]
    else:
        return unresolvable(f"resource claim {claim.key}, request {request.name}: unknown request type")
    for name, class_name in wanted:
        if not class_name:
            return error(f"request {name}: unsupported request type")
        if ctx.listers.device_classes.get(class_name) is None:
            return unresolvable(f"request {name}: device class {class_name} does not exist")
    return None


def _unavailable_claims(state: PodState, diagnosis: Diagnosis) -> list[int]:
    """Numbers of the allocated claims that could not be used on a node where that was what was wrong."""
    text = STATUSES[UNAVAILABLE].reasons
    rows = [
        rows for status, rows in diagnosis.refusals if status.plugin == DynamicResources.name and status.reasons == text
    ]
    tried = np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)
    return [number for number, mask in state.unavailable.items() if mask[tried].any()]


def _shuffled(numbers: list[int], rng: Rng) -> list[int]:
    """There is no better order to try them in."""
    first = rng.randrange(len(numbers)) if len(numbers) > 1 else 0
    return numbers[first:] + numbers[:first]


def _uid(state: PodState, number: int) -> str:
    if number != EXTENDED:
        return state.claims[number].uid
    assert state.extended is not None
    return state.extended.uid


def _share_id(rng: Rng) -> str:
    return str(uuid.UUID(int=rng.randrange(2**128), version=4))
