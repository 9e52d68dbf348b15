"""What claims ask for, prepared for the search: classes looked up, selectors compiled, alternatives side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from kube_pyscheduler.cel.errors import CompileError, EvaluationError
from kube_pyscheduler.cel.reads import Path
from kube_pyscheduler.cel.selector import Selector, compiled
from kube_pyscheduler.devices.capacity import Wanted
from kube_pyscheduler.devices.slices import DeviceInfo
from kube_pyscheduler.objects.resource import (
    ALL_DEVICES,
    EXACT_COUNT,
    DeviceClaim,
    DeviceClass,
    DeviceConstraint,
    DeviceSelector,
    DeviceSubRequest,
    DeviceTaint,
    DeviceToleration,
    ExactDeviceRequest,
)

MAX_DEVICES = 32
"""Devices of one claim at most. Source: AllocationResultsMaxSize in api/resource/v1/types.go."""

MAX_ALTERNATIVES = 8
"""Source: FirstAvailableDeviceRequestMaxSize in api/resource/v1/types.go."""

Classes = Callable[[str], DeviceClass | None]


class AllocationError(Exception):
    """Something is wrong with a claim, a class or a pool, so that the whole attempt fails.

    ``claim`` is the number of the claim that the message begins with, −1 where it speaks of a class. ``names_devices``:
    the message names pools or devices, so it is another one on every node.
    """

    def __init__(self, claim: int, message: str, *, names_devices: bool = False) -> None:
        super().__init__(message)
        self.claim = claim
        self.message = message
        self.names_devices = names_devices

    def text(self, claims: Sequence[str]) -> str:
        """``claims``: their keys."""
        return self.message if self.claim < 0 else f"claim {claims[self.claim]}{self.message}"


@dataclass(frozen=True, slots=True)
class Variant:
    """A request without alternatives, or one alternative. ``parent``: the name of the request it is an alternative of,
    "" else. ``selectors``: of the class, then its own. ``rank``: what choosing it scores."""

    name: str
    parent: str
    device_class: DeviceClass
    mode: str
    count: int
    admin: bool
    tolerations: tuple[DeviceToleration, ...]
    wanted: Wanted
    selectors: tuple[BoundSelector, ...]
    rank: int = 0

    @property
    def full_name(self) -> str:
        """As in results and configurations."""
        return f"{self.parent}/{self.name}" if self.parent else self.name

    @property
    def request(self) -> tuple[str, str]:
        """Names of the request and of the alternative, "" where it has none."""
        return (self.parent, self.name) if self.parent else (self.name, "")

    @property
    def takes_all(self) -> bool:
        return self.mode == ALL_DEVICES

    def matches(self, device: DeviceInfo) -> bool | AllocationError:
        """Whether class and request select the device."""
        for bound in self.selectors:
            if isinstance(bound.selector, CompileError):
                return AllocationError(bound.claim, f"{bound.where}: CEL compile error: {bound.selector}")
            try:
                if not device.is_selected(bound.selector):
                    return False
            except EvaluationError as error:
                return AllocationError(bound.claim, f"{bound.where}: CEL runtime error: {error}")
        return True

    def tolerates(self, taints: Sequence[DeviceTaint]) -> bool:
        """Whether none of the taints keeps the device from this request."""
        return all(
            any(toleration.tolerates(taint) for toleration in self.tolerations)
            for taint in taints
            if taint.effect in ("NoSchedule", "NoExecute")
        )


@dataclass(frozen=True, slots=True)
class BoundSelector:
    """A selector, and how messages name it: ``where`` follows the key of the claim, or names the class."""

    claim: int
    where: str
    selector: Selector | CompileError


@dataclass(frozen=True, slots=True)
class Request:
    """``variants``: one, or the alternatives, the best first."""

    name: str
    variants: tuple[Variant, ...]

    @property
    def has_alternatives(self) -> bool:
        return bool(self.variants[0].parent)


@dataclass(frozen=True, slots=True)
class ClaimPlan:
    requests: tuple[Request, ...]
    constraints: tuple[DeviceConstraint, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """The claims of one pod that need devices. ``paths``: what selectors and constraints read of devices; None is
    everything. ``problem``: why nothing can be allocated anywhere."""

    claims: tuple[ClaimPlan, ...]
    paths: tuple[Path, ...] | None
    problem: AllocationError | None = field(default=None, compare=False)

    @property
    def scores(self) -> bool:
        """Whether nodes may differ in how good their devices are."""
        return any(request.has_alternatives for claim in self.claims for request in claim.requests)


def class_names(claims: Iterable[DeviceClaim]) -> Iterator[str]:
    """The classes of devices that claims ask for."""
    for claim in claims:
        for request in claim.requests:
            for variant in (request.exactly, *request.first_available):
                if variant is not None:
                    yield variant.device_class_name


def make_plan(claims: Sequence[DeviceClaim], classes: Classes) -> Plan:
    """The plan for these claims. What is wrong with them is in ``problem``, or is found by the search."""
    plans: list[ClaimPlan] = []
    paths: set[Path] = set()
    everything = False
    try:
        for number, claim in enumerate(claims):
            plan = _claim_plan(number, claim, classes)
            plans.append(plan)
            for request in plan.requests:
                for variant in request.variants:
                    for bound in variant.selectors:
                        if isinstance(bound.selector, Selector):
                            everything = everything or bound.selector.reads.everything
                            paths |= bound.selector.reads.paths
            for constraint in plan.constraints:
                attribute = constraint.match_attribute or constraint.distinct_attribute or ""
                domain, _slash, name = attribute.partition("/")
                paths.add(("attributes", domain, name))
    except AllocationError as error:
        return Plan((), (), error)
    return Plan(tuple(plans), None if everything else tuple(sorted(paths)))


def _claim_plan(number: int, claim: DeviceClaim, classes: Classes) -> ClaimPlan:
    requests = []
    for request in claim.requests:
        if request.first_available:
            best = MAX_ALTERNATIVES
            variants = tuple(
                [
                    _variant(number, request.name, sub.name, sub, classes, rank=best - place)
                    for place, sub in enumerate(request.first_available)
                ]
            )
        else:
            exactly = request.exactly or ExactDeviceRequest()
            variants = (_variant(number, "", request.name, exactly, classes),)
        requests.append(Request(request.name, variants))
    for place, constraint in enumerate(claim.constraints):
        if constraint.match_attribute is None and constraint.distinct_attribute is None:
            raise AllocationError(number, f", constraint #{place}: empty constraint (unsupported constraint type?)")
    return ClaimPlan(tuple(requests), claim.constraints)


def _variant(
    number: int,
    parent: str,
    name: str,
    request: ExactDeviceRequest | DeviceSubRequest,
    classes: Classes,
    rank: int = 0,
) -> Variant:
    """Source: validateDeviceRequest in allocator_incubating.go."""
    for place, selector in enumerate(request.selectors):
        if selector.cel is None:
            raise AllocationError(
                number, f", request {name}, selector #{place}: CEL expression empty (unsupported selector type?)"
            )
    class_name = request.device_class_name
    if not class_name:
        raise AllocationError(number, f", request {name}: missing device class name (unsupported request type?)")
    device_class = classes(class_name)
    if device_class is None:
        not_found = f'deviceclass.resource.k8s.io "{class_name}" not found'
        raise AllocationError(number, f", request {name}: could not retrieve device class {class_name}: {not_found}")
    if request.allocation_mode not in (EXACT_COUNT, ALL_DEVICES):
        raise AllocationError(number, f", request {name}: unsupported count mode {request.allocation_mode}")
    return Variant(
        name,
        parent,
        device_class,
        request.allocation_mode,
        request.count,
        isinstance(request, ExactDeviceRequest) and request.admin_access,
        request.tolerations,
        request.capacity.requests if request.capacity is not None else {},
        (
            *_bound(-1, f"class {class_name}: selector", device_class.spec.selectors),
            *_bound(number, ": selector", request.selectors),
        ),
        rank,
    )


def _bound(claim: int, where: str, selectors: Sequence[DeviceSelector]) -> list[BoundSelector]:
    return [
        BoundSelector(claim, f"{where} #{place}", compiled(selector.cel.expression))
        for place, selector in enumerate(selectors)
        if selector.cel is not None
    ]
