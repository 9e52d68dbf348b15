"""Policy files of kube-scheduler 1.9 to 1.22: predicates and priorities by name, as a profile of plugins.

Names keep their meaning: what a plugin of today does just as well is left to it, the rest to the classic plugins.

Source: pkg/scheduler/api/v1/types.go and pkg/scheduler/factory/plugins.go up to 1.16, legacy_registry.go and
createFromConfig in pkg/scheduler/factory.go from 1.17 to 1.22.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd
from typing import Any

from kube_pyscheduler.config.args import CPU_AND_MEMORY, LIST_DEFAULTING, ResourceSpec, UtilizationShapePoint
from kube_pyscheduler.config.decode import decode_struct
from kube_pyscheduler.config.defaults import default_plugins
from kube_pyscheduler.config.errors import Problems
from kube_pyscheduler.config.policy_names import (
    DEFAULT_PREDICATES,
    DEFAULT_PRIORITIES,
    FILTER_POINTS,
    MANDATORY_PREDICATES,
    NODE_LABEL,
    PREDICATES,
    PRIORITIES,
    REQUESTED_TO_CAPACITY_RATIO,
    SCORE_POINTS,
    SERVICE_AFFINITY,
)
from kube_pyscheduler.config.schema import Int32, KubeSchedulerProfile, Plugin, PluginConfig, Plugins, PluginSet, Struct

KIND = "Policy"
API_VERSIONS = ("v1", "kubescheduler.config.k8s.io/v1")

ALWAYS = (
    "SchedulingGates",
    "PrioritySort",
    "DynamicResources",
    "DefaultPreemption",
    "DefaultBinder",
    "NodeDeclaredFeatures",
)
"""Plugins that are neither predicates nor priorities, and those for fields of pods that came after Policy files."""

MAX_PARTS = 100
"""How finely the weights of several label preferences may be told apart; they share one score of 0 to 100."""


class ServiceAffinityArgument(Struct, frozen=True):
    labels: tuple[str, ...] = ()


class LabelsPresence(Struct, frozen=True):
    labels: tuple[str, ...] = ()
    presence: bool = False


class PredicateArgument(Struct, frozen=True):
    service_affinity: ServiceAffinityArgument | None = None
    labels_presence: LabelsPresence | None = None


class PredicatePolicy(Struct, frozen=True):
    name: str = ""
    argument: PredicateArgument | None = None


class ServiceAntiAffinity(Struct, frozen=True):
    label: str = ""


class LabelPreference(Struct, frozen=True):
    label: str = ""
    presence: bool = False


class RequestedToCapacityRatioArguments(Struct, frozen=True):
    shape: tuple[UtilizationShapePoint, ...] = ()
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY


class PriorityArgument(Struct, frozen=True):
    service_anti_affinity: ServiceAntiAffinity | None = None
    label_preference: LabelPreference | None = None
    requested_to_capacity_ratio_arguments: RequestedToCapacityRatioArguments | None = None


class PriorityPolicy(Struct, frozen=True):
    name: str = ""
    weight: Int32 = 0
    argument: PriorityArgument | None = None


class Policy(Struct, frozen=True):
    api_version: str = ""
    kind: str = ""
    predicates: tuple[PredicatePolicy, ...] | None = None
    """None: the default ones."""
    priorities: tuple[PriorityPolicy, ...] | None = None
    """None: the default ones, with their weights."""
    extenders: Any = None
    """Must be absent or empty."""
    hard_pod_affinity_symmetric_weight: Int32 = 0
    """0 to 100: what a required term of an existing pod is worth when scoring; 0 means 1."""
    always_check_all_predicates: bool = False
    """Go on after a refusal, so that all reasons of a node are known."""


def read_policy(document: Mapping[str, Any], problems: Problems) -> KubeSchedulerProfile:
    """The profile that a Policy stands for; its scheduler name is left open."""
    policy = decode_struct(Policy, document, "", problems)
    if policy.extenders:
        problems.add("extenders", "extenders are not supported yet")
    hard_weight = policy.hard_pod_affinity_symmetric_weight
    if not 0 <= hard_weight <= 100:
        problems.invalid("hardPodAffinitySymmetricWeight", hard_weight, "not in valid range [0-100]")
    filters, filter_args = _filters(policy.predicates, problems)
    scores, score_args = _scores(policy.priorities, problems)
    args: dict[str, dict[str, Any]] = {"PodTopologySpread": {"defaultingType": LIST_DEFAULTING}}
    if hard_weight:
        args["InterPodAffinity"] = {"hardPodAffinityWeight": hard_weight}
    for more in (filter_args, score_args):
        for plugin, values in more.items():
            args[plugin] = {**args.get(plugin, {}), **values}
    used = {*filters, *scores}
    return KubeSchedulerProfile(
        plugins=_plugins(filters, scores),
        plugin_config=tuple(PluginConfig(plugin, values) for plugin, values in args.items() if plugin in used),
        always_check_all_predicates=policy.always_check_all_predicates,
    )


def _plugins(filters: Sequence[str], scores: Mapping[str, int]) -> Plugins:
    points: dict[str, list[Plugin]] = {}
    for name in filters:
        for point in FILTER_POINTS.get(name, ("filter",)):
            points.setdefault(point, []).append(Plugin(name))
    for name, weight in scores.items():
        for point in SCORE_POINTS.get(name, ("score",)):
            points.setdefault(point, []).append(Plugin(name, weight if point == "score" else 0))
    always = tuple(Plugin(plugin.name) for plugin in default_plugins().multi_point.enabled if plugin.name in ALWAYS)
    return Plugins(
        multi_point=PluginSet(always, disabled=(Plugin("*"),)),
        **{point: PluginSet(tuple(enabled)) for point, enabled in points.items()},
    )


# Predicates


def _filters(
    predicates: tuple[PredicatePolicy, ...] | None, problems: Problems
) -> tuple[list[str], dict[str, dict[str, Any]]]:
    """Plugins in the order in which predicates ran, and their arguments."""
    names = set(MANDATORY_PREDICATES)
    if predicates is None:
        names.update(DEFAULT_PREDICATES)
    present: list[str] = []
    absent: list[str] = []
    affinity: list[str] = []
    for index, predicate in enumerate(predicates or ()):
        path = f"predicates[{index}]"
        argument = predicate.argument or PredicateArgument()
        given = (argument.service_affinity, argument.labels_presence)
        if not _has_one_argument(predicate.argument, given, path, problems):
            continue
        if argument.labels_presence is not None:
            names.add("CheckNodeLabelPresence")
            (present if argument.labels_presence.presence else absent).extend(argument.labels_presence.labels)
        elif argument.service_affinity is not None:
            names.add("CheckServiceAffinity")
            affinity.extend(argument.service_affinity.labels)
        elif _is_known(predicate.name, PREDICATES, path, problems):
            names.add(predicate.name)
            if PREDICATES[predicate.name][0] in (NODE_LABEL, SERVICE_AFFINITY):
                problems.required(f"{path}.argument", "labelsPresence or serviceAffinity")
    plugins = dict.fromkeys(plugin for name in PREDICATES if name in names for plugin in PREDICATES[name])
    args: dict[str, dict[str, Any]] = {
        NODE_LABEL: {"presentLabels": present, "absentLabels": absent},
        SERVICE_AFFINITY: {"affinityLabels": affinity},
    }
    return list(plugins), args


# Priorities


def _scores(
    priorities: tuple[PriorityPolicy, ...] | None, problems: Problems
) -> tuple[dict[str, int], dict[str, dict[str, Any]]]:
    """Plugins with their weights, and their arguments. Of priorities that are named twice the last one counts."""
    weights = dict(DEFAULT_PRIORITIES) if priorities is None else {}
    present: list[tuple[str, int]] = []
    absent: list[tuple[str, int]] = []
    anti_affinity: list[tuple[str, int]] = []
    ratios: list[RequestedToCapacityRatioArguments] = []
    for index, priority in enumerate(priorities or ()):
        path, weight = f"priorities[{index}]", priority.weight
        if weight <= 0:
            problems.invalid(f"{path}.weight", weight, "must be positive")
            continue
        argument = priority.argument or PriorityArgument()
        preference, ratio = argument.label_preference, argument.requested_to_capacity_ratio_arguments
        given = (argument.service_anti_affinity, preference, ratio)
        if not _has_one_argument(priority.argument, given, path, problems):
            continue
        if preference is not None:
            (present if preference.presence else absent).append((preference.label, weight))
        elif argument.service_anti_affinity is not None:
            anti_affinity.append((argument.service_anti_affinity.label, weight))
        elif ratio is not None:
            if ratios:
                problems.add(path, "requestedToCapacityRatioArguments are given twice")
            ratios.append(ratio)
            weights["RequestedToCapacityRatioPriority"] = weight
        elif _is_known(priority.name, PRIORITIES, path, problems):
            weights[priority.name] = weight
    scores = {PRIORITIES[name]: weight for name, weight in weights.items()}
    args: dict[str, dict[str, Any]] = {}
    if ratios:
        args[REQUESTED_TO_CAPACITY_RATIO] = _ratio_args(ratios[0])
    if present or absent:
        parts = _parts([*present, *absent], "labelPreference", problems)
        scores[NODE_LABEL] = sum(weight for _label, weight in (*present, *absent))
        args[NODE_LABEL] = {
            "presentLabelsPreference": [label for label, weight in present for _ in range(weight // parts)],
            "absentLabelsPreference": [label for label, weight in absent for _ in range(weight // parts)],
        }
    if anti_affinity:
        parts = _parts(anti_affinity, "serviceAntiAffinity", problems)
        scores[SERVICE_AFFINITY] = sum(weight for _label, weight in anti_affinity)
        labels = [label for label, weight in anti_affinity for _ in range(weight // parts)]
        args[SERVICE_AFFINITY] = {"antiAffinityLabelsPreference": labels}
    return scores, args


def _ratio_args(ratio: RequestedToCapacityRatioArguments) -> dict[str, Any]:
    return {
        "shape": [{"utilization": point.utilization, "score": point.score} for point in ratio.shape],
        "resources": [{"name": spec.name, "weight": spec.weight} for spec in ratio.resources],
    }


def _parts(labels: Sequence[tuple[str, int]], argument: str, problems: Problems) -> int:
    """The weight of one part: labels are named once a part, because all of them share the score of one plugin."""
    part = gcd(*[weight for _label, weight in labels])
    total = sum(weight for _label, weight in labels)
    if total // part > MAX_PARTS:
        why = f"the weights of all {argument} priorities must be told apart in {MAX_PARTS} parts of {total} altogether"
        problems.add("priorities", why)
        return total
    return part


# Both


def _has_one_argument(argument: Struct | None, given: Sequence[Struct | None], path: str, problems: Problems) -> bool:
    """Whether there is no argument at all, or exactly one."""
    count = sum(value is not None for value in given)
    if argument is not None and count != 1:
        problems.add(f"{path}.argument", f"exactly one argument is required, but there are {count}")
        return False
    return True


def _is_known(name: str, known: Mapping[str, object], path: str, problems: Problems) -> bool:
    if not name:
        problems.required(f"{path}.name")
    elif name not in known:
        problems.unsupported(f"{path}.name", name, tuple(sorted(known)))
    return name in known
