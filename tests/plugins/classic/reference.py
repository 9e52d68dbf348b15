"""Plain twins of the classic policies: one node at a time, Python integers and floats only."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence

from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.objects.pod_requests import non_missing_defaults, pod_requests
from kube_pyscheduler.objects.quantity import parse_list, parse_milli, to_milli, to_units

AVOID = "scheduler.alpha.kubernetes.io/preferAvoidPods"
PodsOn = Callable[[str], Iterable[Pod]]
Labels = Mapping[str, str]


def has_all(labels: Labels, wanted: Labels) -> bool:
    return all(labels.get(key) == value for key, value in wanted.items())


# Conditions


def condition_reasons(node: Node) -> list[str]:
    reported = {condition.type: condition.status for condition in node.status.conditions}
    reasons = []
    if reported.get("Ready", "True") != "True":
        reasons.append("node(s) were not ready")
    if reported.get("OutOfDisk", "False") != "False":
        reasons.append("node(s) were out of disk space")
    if reported.get("NetworkUnavailable", "False") != "False":
        reasons.append("node(s) had unavailable network")
    if node.spec.unschedulable:
        reasons.append("node(s) were unschedulable")
    return reasons


def is_best_effort(pod: Pod) -> bool:
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        for amounts in (container.resources.requests, container.resources.limits):
            if any(parse_milli(amounts.get(name, 0)) > 0 for name in ("cpu", "memory")):
                return False
    return True


def pressure_reasons(pod: Pod, node: Node) -> list[list[str]]:
    """For memory, disk and PIDs."""
    true = {condition.type for condition in node.status.conditions if condition.status == "True"}
    return [
        ["node(s) had memory pressure"] if "MemoryPressure" in true and is_best_effort(pod) else [],
        ["node(s) had disk pressure"] if "DiskPressure" in true else [],
        ["node(s) had pid pressure"] if "PIDPressure" in true else [],
    ]


# Scores of one node


def label_score(node: Node, present: Sequence[str], absent: Sequence[str]) -> int:
    granted = sum(key in node.metadata.labels for key in present)
    granted += sum(key not in node.metadata.labels for key in absent)
    return 100 * granted // (len(present) + len(absent))


def avoid_score(pod: Pod, node: Node) -> int:
    owner = pod.metadata.controller()
    if owner is None or owner.kind not in ("ReplicationController", "ReplicaSet"):
        return 100
    try:
        entries = json.loads(node.metadata.annotations.get(AVOID, "{}"))["preferAvoidPods"]
    except (ValueError, TypeError, KeyError):
        return 100
    for entry in entries:
        controller = entry.get("podSignature", {}).get("podController", {})
        if (controller.get("kind"), controller.get("uid")) == (owner.kind, owner.uid):
            return 0
    return 100


def non_zero(pod: Pod) -> tuple[int, int]:
    plain = pod_requests(pod, use_status=True)
    amounts = pod_requests(pod, use_status=True, defaults=non_missing_defaults(pod, plain))
    return to_milli(amounts.get("cpu", 0)), to_units(amounts.get("memory", 0))


def offered(node: Node) -> tuple[int, int]:
    amounts = parse_list(node.status.allocatable)
    return to_milli(amounts.get("cpu", 0)), to_units(amounts.get("memory", 0))


def balanced(pod: Pod, node: Node, pods: Iterable[Pod]) -> int:
    taken = [non_zero(pod), *map(non_zero, pods)]
    shares = []
    for resource, capacity in enumerate(offered(node)):
        shares.append(sum(amounts[resource] for amounts in taken) / capacity if capacity else 1.0)
    if max(shares) >= 1:
        return 0
    return int((1 - abs(shares[0] - shares[1])) * 100.0)


def limits_score(pod: Pod, node: Node) -> int:
    for name, to_column, capacity in zip(("cpu", "memory"), (to_milli, to_units), offered(node), strict=True):
        limits = [parse_milli(container.resources.limits.get(name, 0)) for container in pod.spec.containers]
        first = [parse_milli(container.resources.limits.get(name, 0)) for container in pod.spec.init_containers]
        limit = to_column(max([sum(limits), *first]))
        if limit and capacity and limit <= capacity:
            return 1
    return 0


# Spreading


def zone_of(node: Node) -> str:
    labels = node.metadata.labels
    region, zone = [
        labels.get(f"failure-domain.beta.kubernetes.io/{part}", labels.get(f"topology.kubernetes.io/{part}", ""))
        for part in ("region", "zone")
    ]
    return f"{region}:{zone}" if region or zone else ""


def count_matching(pod: Pod, selector: Labels, pods: Iterable[Pod]) -> int:
    if not selector:
        return 0
    return sum(
        other.namespace == pod.namespace and not other.is_terminating and has_all(other.metadata.labels, selector)
        for other in pods
    )


def spread_scores(pod: Pod, feasible: Sequence[Node], pods_on: PodsOn, selector: Labels) -> dict[str, int]:
    counts = {node.name: count_matching(pod, selector, pods_on(node.name)) for node in feasible}
    zones: dict[str, int] = {}
    for node in feasible:
        if zone_of(node):
            zones[zone_of(node)] = zones.get(zone_of(node), 0) + counts[node.name]
    most, most_in_zone = max(counts.values()), max(zones.values(), default=0)
    scores = {}
    for node in feasible:
        score = 100.0 * ((most - counts[node.name]) / most) if most else 100.0
        zone = zone_of(node)
        if zone:
            zone_score = 100.0 * ((most_in_zone - zones[zone]) / most_in_zone) if most_in_zone else 100.0
            score = score * (1.0 - 2.0 / 3.0) + 2.0 / 3.0 * zone_score
        scores[node.name] = int(score)
    return scores


# Services


def is_affine(pod: Pod, node: Node, nodes: Sequence[Node], pods_on: PodsOn, keys: Sequence[str], served: bool) -> bool:
    """``nodes``: in the order in which their pods are listed. ``pods_on``: as things are while ``node`` is judged."""
    wanted = {key: pod.spec.node_selector[key] for key in keys if key in pod.spec.node_selector}
    if len(wanted) < len(keys) and served:
        for leader in nodes:
            if any(
                other.namespace == pod.namespace and has_all(other.metadata.labels, pod.metadata.labels)
                for other in pods_on(leader.name)
            ):
                labels = leader.metadata.labels
                wanted = {**{key: labels[key] for key in keys if key in labels}, **wanted}
                break
    return has_all(node.metadata.labels, wanted)


def anti_affinity_scores(
    pod: Pod, feasible: Sequence[Node], pods_on: PodsOn, keys: Sequence[str], selector: Labels
) -> dict[str, int]:
    counts = {node.name: count_matching(pod, selector, pods_on(node.name)) for node in feasible}
    everywhere = sum(counts.values())
    totals = dict.fromkeys(counts, 0.0)
    for key in keys:
        by_value: dict[str, int] = {}
        for node in feasible:
            if key in node.metadata.labels:
                value = node.metadata.labels[key]
                by_value[value] = by_value.get(value, 0) + counts[node.name]
        for node in feasible:
            if key in node.metadata.labels:
                value = node.metadata.labels[key]
                share = 100.0 * ((everywhere - by_value[value]) / everywhere) if everywhere else 100.0
                totals[node.name] += share / float(len(keys))
    return {name: int(total) for name, total in totals.items()}
