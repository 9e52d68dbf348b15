"""Plain per-node twins of the node-scoped plugins: one node, its pods, one pod; Python integers and floats only."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.objects.pod_requests import non_missing_defaults, pod_requests
from kube_pyscheduler.objects.quantity import parse_list, to_milli, to_units
from kube_pyscheduler.objects.tolerations import (
    UNSCHEDULABLE_TAINT,
    count_untolerated_soft,
    has_untolerated,
    tolerated,
)

SCALARS = ("example.com/gpu", "hugepages-2Mi")
MIB = 1024 * 1024
DEFAULTS = {"cpu": 100, "memory": 200 * MIB * 1000}


def units(name: str, milli: int) -> int:
    return to_milli(milli) if name == "cpu" else to_units(milli)


def used(pods: Sequence[Pod], name: str) -> int:
    return sum(units(name, pod_requests(pod, use_status=True).get(name, 0)) for pod in pods)


def used_for_scoring(pods: Sequence[Pod], name: str) -> int:
    total = 0
    for pod in pods:
        plain = pod_requests(pod, use_status=True)
        charged = pod_requests(pod, use_status=True, defaults=non_missing_defaults(pod, plain))
        total += units(name, charged.get(name, 0))
    return total


def offered(node: Node, name: str) -> int:
    return units(name, parse_list(node.status.allocatable).get(name, 0))


def ports(pod: Pod) -> list[tuple[str, str, int]]:
    containers = [c for c in pod.spec.init_containers if c.restart_policy == "Always"] + list(pod.spec.containers)
    return [
        (p.host_ip or "0.0.0.0", p.protocol or "TCP", p.host_port) for c in containers for p in c.ports if p.host_port
    ]


def refusal(pod: Pod, node: Node, pods: Sequence[Pod]) -> tuple[str, list[str]] | None:
    """(plugin, reasons) of the first plugin that refuses, in the default order."""
    spec = pod.spec
    if node.spec.unschedulable and not tolerated(spec.tolerations, UNSCHEDULABLE_TAINT):
        return "NodeUnschedulable", ["node(s) were unschedulable"]
    if spec.node_name and spec.node_name != node.name:
        return "NodeName", ["node(s) didn't match the requested node name"]
    if has_untolerated(spec.tolerations, node.spec.taints):
        return "TaintToleration", ["node(s) had untolerated taint(s)"]
    if not affine(pod, node):
        return "NodeAffinity", ["node(s) didn't match Pod's node affinity/selector"]
    for address, protocol, port in ports(pod):
        for other in pods:
            for theirs in ports(other):
                if (protocol, port) == theirs[1:] and ("0.0.0.0" in (address, theirs[0]) or address == theirs[0]):
                    return "NodePorts", ["node(s) didn't have free ports for the requested pod ports"]
    short = insufficient(pod, node, pods)
    return ("NodeResourcesFit", short) if short else None


def affine(pod: Pod, node: Node) -> bool:
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None or affinity.node_affinity.required is None:
        return True
    return affinity.node_affinity.required.matches(labels, node.name)


def insufficient(pod: Pod, node: Node, pods: Sequence[Pod]) -> list[str]:
    reasons = ["Too many pods"] if len(pods) + 1 > offered(node, "pods") else []
    for name, milli in pod_requests(pod, use_status=False).items():
        wanted = units(name, milli)
        if wanted > 0 and wanted > offered(node, name) - used(pods, name):
            reasons.append(f"Insufficient {name}")
    return sorted(reasons)


def least_allocated(pod: Pod, node: Node, pods: Sequence[Pod]) -> int:
    request = pod_requests(pod, use_status=False, defaults=DEFAULTS, pod_level=False)
    scores = []
    for name in ("cpu", "memory"):
        capacity = offered(node, name)
        if capacity:
            taken = used_for_scoring(pods, name) + units(name, request.get(name, 0))
            scores.append(0 if taken > capacity else (capacity - taken) * 100 // capacity)
    return sum(scores) // len(scores) if scores else 0


def balanced(pod: Pod, node: Node, pods: Sequence[Pod]) -> int:
    request = pod_requests(pod, use_status=True)

    def balance(extra: dict[str, int]) -> int:
        fractions = []
        for name in ("cpu", "memory"):
            capacity = offered(node, name)
            if capacity:
                fractions.append(min(1.0, (used(pods, name) + units(name, extra.get(name, 0))) / capacity))
        deviation = abs((fractions[0] - fractions[1]) / 2) if len(fractions) == 2 else 0.0
        return int((1 - deviation) * 100.0)

    return 50 + math.trunc((50 + balance(request) - balance({})) / 2)


def image_score(pod: Pod, node: Node, nodes: Sequence[Node]) -> int:
    def sizes(of: Node) -> dict[str, int]:
        return {name: image.size_bytes for image in of.status.images for name in image.names}

    total = 0
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        name = container.image if ":" in container.image.rpartition("/")[2] else f"{container.image}:latest"
        if name in sizes(node):
            have = sum(name in sizes(other) for other in nodes)
            total += int(sizes(node)[name] * (have / len(nodes)))
    most = 1000 * MIB * (len(pod.spec.init_containers) + len(pod.spec.containers))
    return 100 * (min(max(total, 23 * MIB), most) - 23 * MIB) // (most - 23 * MIB)


def preferred(pod: Pod, node: Node) -> int:
    affinity = pod.spec.affinity
    terms = affinity.node_affinity.preferred if affinity and affinity.node_affinity else ()
    return sum(t.weight for t in terms if t.preference.matches(node.metadata.labels, node.name))


def totals(pod: Pod, feasible: Sequence[Node], all_nodes: Sequence[Node], pods: dict[str, list[Pod]]) -> dict[str, int]:
    """Weighted sums over the feasible nodes, with the default weights."""
    taints = {n.name: count_untolerated_soft(pod.spec.tolerations, n.spec.taints) for n in feasible}
    likes = {n.name: preferred(pod, n) for n in feasible}
    worst, most = max(taints.values()), max(likes.values())
    asks = any(units(name, pod_requests(pod, use_status=True).get(name, 0)) for name in ("cpu", "memory"))
    result = {}
    for node in feasible:
        here = pods.get(node.name, [])
        total = 3 * (100 - (100 * taints[node.name] // worst if worst else 0))
        total += 2 * (100 * likes[node.name] // most if most else 0)
        total += least_allocated(pod, node, here) + image_score(pod, node, all_nodes)
        if asks:
            total += balanced(pod, node, here)
        result[node.name] = total
    return result
