"""The cluster at one moment, as far as the demonstration looks at it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.objects.pod_requests import pod_requests
from kube_pyscheduler.objects.quantity import parse_list
from kube_pyscheduler.objects.storage import PersistentVolumeClaim

RESOURCES = ("cpu", "memory", "nvidia.com/gpu")
_ZONE = "topology.kubernetes.io/zone"


@dataclass(frozen=True, slots=True)
class Load:
    """A node and what runs there. ``used`` and ``allocatable`` are in milli-units by resource."""

    node: Node
    pods: list[Pod]
    used: Mapping[str, int]
    allocatable: Mapping[str, int]

    @property
    def zone(self) -> str:
        return self.node.metadata.labels.get(_ZONE, "")

    @property
    def remarks(self) -> str:
        """Why not every pod may come here."""
        said = [
            f"{t.key}={t.value}" if t.value else t.key for t in self.node.spec.taints if "/" not in t.key or t.value
        ]
        if self.node.spec.unschedulable:
            said.insert(0, "cordoned")
        return ", ".join(said)


@dataclass(frozen=True, slots=True)
class Picture:
    """All nodes and claims, and the pods of the demo."""

    pods: list[Pod]
    nodes: list[Node]
    claims: list[PersistentVolumeClaim]

    def loads(self) -> list[Load]:
        """The nodes in the order of zone and name."""
        placed: dict[str, list[Pod]] = {node.name: [] for node in self.nodes}
        for pod in self.pods:
            if pod.spec.node_name in placed and not pod.is_terminal:
                placed[pod.spec.node_name].append(pod)
        loads = [_load(node, placed[node.name]) for node in self.nodes]
        return sorted(loads, key=lambda load: (load.zone, load.node.name))

    @property
    def bound(self) -> int:
        return sum(bool(pod.spec.node_name) for pod in self.pods)


def _load(node: Node, pods: list[Pod]) -> Load:
    used: dict[str, int] = {}
    for pod in pods:
        for resource, amount in pod_requests(pod, use_status=False).items():
            used[resource] = used.get(resource, 0) + amount
    return Load(node, pods, used, parse_list(node.status.allocatable))


def app_of(pod: Pod) -> str:
    """The workload of a pod: its label ``app`` with ``role``, else its name."""
    labels = pod.metadata.labels
    parts = [labels.get("app", pod.name), labels.get("role", "")]
    return "-".join(part for part in parts if part)


def why_waiting(pod: Pod) -> str:
    """The message of the PodScheduled condition of a pod without a node; "" when nobody has said anything yet."""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            return condition.message or condition.reason
    return ""
