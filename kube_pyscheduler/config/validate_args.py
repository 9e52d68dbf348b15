"""Limits of plugin arguments.

Source: pkg/scheduler/apis/config/validation/validation_pluginargs.go.
"""

from __future__ import annotations

import re

from kube_pyscheduler.config.args import (
    LEAST_ALLOCATED,
    LIST_DEFAULTING,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    SYSTEM_DEFAULTING,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from kube_pyscheduler.config.errors import Problems
from kube_pyscheduler.config.schema import Struct
from kube_pyscheduler.objects.pod import NodeAffinity
from kube_pyscheduler.objects.selectors import NodeSelectorRequirement, NodeSelectorTerm, parse_int64

MAX_SHAPE_SCORE = 10
"""Source: MaxCustomPriorityScore in pkg/scheduler/apis/config/types.go."""

_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_LABEL_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def validate_args(args: Struct, path: str, problems: Problems) -> None:
    match args:
        case DefaultPreemptionArgs():
            _default_preemption(args, path, problems)
        case InterPodAffinityArgs(hard_pod_affinity_weight=weight):
            _within(weight, 0, 100, f"{path}.hardPodAffinityWeight", problems)
        case NodeAffinityArgs(added_affinity=affinity) if affinity is not None:
            _added_affinity(affinity, f"{path}.addedAffinity", problems)
        case NodeResourcesBalancedAllocationArgs():
            _balanced_allocation(args, path, problems)
        case NodeResourcesFitArgs():
            _fit(args, path, problems)
        case PodTopologySpreadArgs():
            _spread(args, path, problems)
        case VolumeBindingArgs():
            _volume_binding(args, path, problems)
        case DynamicResourcesArgs():
            _dynamic_resources(args, path, problems)


def _within(value: int, low: int, high: int, path: str, problems: Problems) -> None:
    if not low <= value <= high:
        problems.invalid(path, value, f"not in valid range [{low}, {high}]")


def _default_preemption(args: DefaultPreemptionArgs, path: str, problems: Problems) -> None:
    percentage, absolute = f"{path}.minCandidateNodesPercentage", f"{path}.minCandidateNodesAbsolute"
    _within(args.min_candidate_nodes_percentage, 0, 100, percentage, problems)
    if args.min_candidate_nodes_absolute < 0:
        problems.invalid(absolute, args.min_candidate_nodes_absolute, "not in valid range [0, inf)")
    if args.min_candidate_nodes_percentage == 0 and args.min_candidate_nodes_absolute == 0:
        problems.invalid(percentage, 0, "cannot be zero at the same time as minCandidateNodesAbsolute")
        problems.invalid(absolute, 0, "cannot be zero at the same time as minCandidateNodesPercentage")


def _balanced_allocation(args: NodeResourcesBalancedAllocationArgs, path: str, problems: Problems) -> None:
    seen: set[str] = set()
    for index, spec in enumerate(args.resources):
        if spec.name in seen:
            problems.duplicate(f"{path}.resources[{index}].name", spec.name)
        seen.add(spec.name)
        if spec.weight != 1:
            problems.invalid(f"{path}.resources[{index}].weight", spec.weight, "must be 1")


def _fit(args: NodeResourcesFitArgs, path: str, problems: Problems) -> None:
    for index, resource in enumerate(args.ignored_resources):
        qualified_name(resource, f"{path}.ignoredResources[{index}]", problems)
    for index, group in enumerate(args.ignored_resource_groups):
        where = f"{path}.ignoredResourceGroups[{index}]"
        if "/" in group:
            problems.invalid(where, group, "resource group name can't contain '/'")
        qualified_name(group, where, problems)
    strategy, where = args.scoring_strategy, f"{path}.scoringStrategy"
    supported = (LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO)
    if strategy.type not in supported:
        problems.unsupported(f"{where}.type", strategy.type, supported)
    for index, spec in enumerate(strategy.resources):
        if not 0 < spec.weight <= 100:
            why = f"resource weight of {spec.name} not in valid range (0, 100]"
            problems.invalid(f"{where}.resources[{index}].weight", spec.weight, why)
    ratio, ratio_path = strategy.requested_to_capacity_ratio, f"{where}.requestedToCapacityRatio"
    if strategy.type != REQUESTED_TO_CAPACITY_RATIO:
        if ratio is not None:
            problems.forbidden(ratio_path, "must be absent when type is not RequestedToCapacityRatio")
    elif ratio is None:
        problems.required(ratio_path, "must be specified when type is RequestedToCapacityRatio")
    else:
        _shape(ratio.shape, f"{ratio_path}.shape", problems)


def _shape(shape: tuple[UtilizationShapePoint, ...], path: str, problems: Problems) -> None:
    if not shape:
        problems.required(path, "at least one point must be specified")
    for index in range(1, len(shape)):
        if shape[index - 1].utilization >= shape[index].utilization:
            why = "values must be sorted in increasing order"
            problems.invalid(f"{path}[{index}].utilization", shape[index].utilization, why)
            break
    for index, point in enumerate(shape):
        _within(point.utilization, 0, 100, f"{path}[{index}].utilization", problems)
        _within(point.score, 0, MAX_SHAPE_SCORE, f"{path}[{index}].score", problems)


def _spread(args: PodTopologySpreadArgs, path: str, problems: Problems) -> None:
    types = (SYSTEM_DEFAULTING, LIST_DEFAULTING)
    if args.defaulting_type not in types:
        problems.unsupported(f"{path}.defaultingType", args.defaulting_type, types)
    elif args.defaulting_type == SYSTEM_DEFAULTING and args.default_constraints:
        problems.invalid(f"{path}.defaultingType", SYSTEM_DEFAULTING, "when .defaultConstraints are not empty")
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(args.default_constraints):
        where = f"{path}.defaultConstraints[{index}]"
        if constraint.max_skew <= 0:
            problems.invalid(f"{where}.maxSkew", constraint.max_skew, "not in valid range (0, inf)")
        if not constraint.topology_key:
            problems.required(f"{where}.topologyKey", "can not be empty")
        else:
            qualified_name(constraint.topology_key, f"{where}.topologyKey", problems)
        actions = ("DoNotSchedule", "ScheduleAnyway")
        if not constraint.when_unsatisfiable:
            problems.required(f"{where}.whenUnsatisfiable", "can not be empty")
        elif constraint.when_unsatisfiable not in actions:
            problems.unsupported(f"{where}.whenUnsatisfiable", constraint.when_unsatisfiable, actions)
        if constraint.label_selector is not None:
            problems.forbidden(f"{where}.labelSelector", "it is deduced for each pod")
        pair = (constraint.topology_key, constraint.when_unsatisfiable)
        if pair in seen:
            problems.duplicate(where, f"{{{pair[0]}, {pair[1]}}}")
        seen.add(pair)


def _volume_binding(args: VolumeBindingArgs, path: str, problems: Problems) -> None:
    if args.bind_timeout_seconds < 0:
        problems.invalid(f"{path}.bindTimeoutSeconds", args.bind_timeout_seconds, "must not be negative")
    if args.shape is not None:
        _shape(args.shape, f"{path}.shape", problems)


def _dynamic_resources(args: DynamicResourcesArgs, path: str, problems: Problems) -> None:
    if args.filter_timeout < 0:
        problems.invalid(f"{path}.filterTimeout", str(args.filter_timeout), "must be zero or positive")
    if args.binding_timeout < 1:
        problems.invalid(f"{path}.bindingTimeout", str(args.binding_timeout), "must be at least 1 second")


def _added_affinity(affinity: NodeAffinity, path: str, problems: Problems) -> None:
    if affinity.required is not None:
        where = f"{path}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        for index, term in enumerate(affinity.required.node_selector_terms):
            _term(term, f"{where}[{index}]", problems)
    for index, preferred in enumerate(affinity.preferred):
        if preferred.weight != 0:
            where = f"{path}.preferredDuringSchedulingIgnoredDuringExecution[{index}]"
            _term(preferred.preference, where, problems)


def _term(term: NodeSelectorTerm, path: str, problems: Problems) -> None:
    for index, requirement in enumerate(term.match_expressions):
        _label_requirement(requirement, f"{path}.matchExpressions[{index}]", problems)
    for index, requirement in enumerate(term.match_fields):
        where = f"{path}.matchFields[{index}]"
        if requirement.operator not in ("In", "NotIn"):
            problems.unsupported(f"{where}.operator", requirement.operator, ("In", "NotIn"))
        elif len(requirement.values) != 1:
            problems.invalid(f"{where}.values", list(requirement.values), "must have one element")


def _label_requirement(requirement: NodeSelectorRequirement, path: str, problems: Problems) -> None:
    """Source: NewRequirement in apimachinery/pkg/labels/selector.go."""
    values, where = requirement.values, f"{path}.values"
    qualified_name(requirement.key, f"{path}.key", problems)
    match requirement.operator:
        case "In" | "NotIn":
            if not values:
                problems.invalid(where, [], "for 'in', 'notin' operators, values set can't be empty")
        case "Exists" | "DoesNotExist":
            if values:
                problems.invalid(where, list(values), "values set must be empty for exists and does not exist")
        case "Gt" | "Lt":
            if len(values) != 1:
                problems.invalid(where, list(values), "for 'Gt', 'Lt' operators, exactly one value is required")
            for index, value in enumerate(values):
                if parse_int64(value) is None:
                    problems.invalid(f"{where}[{index}]", value, "for 'Gt', 'Lt' operators, it must be an integer")
        case operator:
            problems.unsupported(f"{path}.operator", operator, ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    for index, value in enumerate(values):
        if len(value) > 63 or _LABEL_VALUE.fullmatch(value) is None:
            problems.invalid(f"{where}[{index}]", value, "not a valid label value")


def qualified_name(name: str, path: str, problems: Problems) -> None:
    """The form of label keys and resource names: an optional DNS subdomain, a slash, a name of 63 characters at most.

    Source: IsQualifiedName in apimachinery/pkg/util/validation/validation.go."""
    prefix, slash, rest = name.rpartition("/")
    prefix_is_good = not slash or (len(prefix) <= 253 and _SUBDOMAIN.fullmatch(prefix) is not None)
    if not prefix_is_good or len(rest) > 63 or _LABEL_NAME.fullmatch(rest) is None:
        problems.invalid(path, name, "not a qualified name, such as example.com/name or name")
