"""Plain twins: one node, one pod, one constraint at a time.

Source: pkg/scheduler/framework/plugins/podtopologyspread/{common,filtering,scoring}.go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod, TopologySpreadConstraint
from kube_pyscheduler.objects.selectors import LabelSelector
from kube_pyscheduler.objects.tolerations import has_untolerated

NO_LABEL, TOO_MANY = 1, 2
HOSTNAME = "kubernetes.io/hostname"

PodsOn = Callable[[str], list[Pod]]


@dataclass
class Constraint:
    given: TopologySpreadConstraint
    selector: LabelSelector | None
    """None matches nothing."""
    same: dict[str, str]
    """Labels that must be the same as the pod's."""

    @property
    def key(self) -> str:
        return self.given.topology_key

    @property
    def counts_nothing(self) -> bool:
        return self.selector is not None and self.selector.is_empty and not self.same

    def matches(self, labels: Mapping[str, str]) -> bool:
        if self.selector is None:
            return False
        return self.selector.matches(labels) and all(labels.get(key) == value for key, value in self.same.items())

    def includes(self, pod: Pod, node: Node) -> bool:
        """Whether the inclusion policies let the node count."""
        if self.given.node_affinity_policy in (None, "Honor"):
            if any(node.metadata.labels.get(key) != value for key, value in pod.spec.node_selector.items()):
                return False
            affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
            if affinity and affinity.required and not affinity.required.matches(node.metadata.labels, node.name):
                return False
        return self.given.node_taints_policy != "Honor" or not has_untolerated(pod.spec.tolerations, node.spec.taints)


def constraints_of(pod: Pod, when: str) -> list[Constraint]:
    """The pod's own constraints."""
    labels = pod.metadata.labels
    return [
        Constraint(c, c.label_selector, {key: labels[key] for key in c.match_label_keys if key in labels})
        for c in pod.spec.topology_spread_constraints
        if c.when_unsatisfiable == when
    ]


def count(pods: Iterable[Pod], constraint: Constraint, namespace: str) -> int:
    if constraint.counts_nothing:
        return 0
    return sum(
        not pod.is_terminating and pod.namespace == namespace and constraint.matches(pod.metadata.labels)
        for pod in pods
    )


class Filter:
    """The state of one attempt; ``change`` is AddPod and RemovePod."""

    def __init__(self, pod: Pod, nodes: Iterable[Node], pods_on: PodsOn, constraints: list[Constraint]) -> None:
        self._pod = pod
        self._constraints = constraints
        self._counts: list[dict[str, int]] = [{} for _ in constraints]
        for node in nodes:
            if not self._has_all_keys(node):
                continue
            for constraint, counts in zip(constraints, self._counts, strict=True):
                if constraint.includes(pod, node):
                    value = node.metadata.labels[constraint.key]
                    counts[value] = counts.get(value, 0) + count(pods_on(node.name), constraint, pod.namespace)

    def _has_all_keys(self, node: Node) -> bool:
        return all(constraint.key in node.metadata.labels for constraint in self._constraints)

    def change(self, node: Node, other: Pod, sign: int) -> None:
        if other.namespace != self._pod.namespace or not self._has_all_keys(node):
            return
        for constraint, counts in zip(self._constraints, self._counts, strict=True):
            if constraint.matches(other.metadata.labels) and constraint.includes(self._pod, node):
                counts[node.metadata.labels[constraint.key]] += sign

    def code(self, node: Node) -> int:
        for constraint, counts in zip(self._constraints, self._counts, strict=True):
            value = node.metadata.labels.get(constraint.key)
            if value is None:
                return NO_LABEL
            least = min(counts.values(), default=2**31 - 1)
            if len(counts) < (1 if constraint.given.min_domains is None else constraint.given.min_domains):
                least = 0
            own = constraint.matches(self._pod.metadata.labels)
            if counts.get(value, 0) + own - least > constraint.given.max_skew:
                return TOO_MANY
        return 0


def scores(
    pod: Pod,
    nodes: Iterable[Node],
    feasible: list[Node],
    pods_on: PodsOn,
    constraints: list[Constraint],
    *,
    require_all: bool,
) -> dict[str, int]:
    """Final scores of the feasible nodes."""
    ignored = {
        node.name
        for node in feasible
        if require_all and any(constraint.key not in node.metadata.labels for constraint in constraints)
    }
    counts: list[dict[str, int]] = []
    weights = []
    for constraint in constraints:
        values = {node.metadata.labels.get(constraint.key, "") for node in feasible if node.name not in ignored}
        size = len(feasible) - len(ignored) if constraint.key == HOSTNAME else len(values)
        counts.append(dict.fromkeys(values, 0))
        weights.append(math.log(size + 2))
    for node in nodes:
        if require_all and any(constraint.key not in node.metadata.labels for constraint in constraints):
            continue
        for constraint, by_value in zip(constraints, counts, strict=True):
            value = node.metadata.labels.get(constraint.key, "")
            if constraint.includes(pod, node) and value in by_value:
                by_value[value] += count(pods_on(node.name), constraint, pod.namespace)
    raw: dict[str, int] = {}
    for node in feasible:
        if node.name in ignored:
            continue
        total = 0.0
        for constraint, by_value, weight in zip(constraints, counts, weights, strict=True):
            own = node.metadata.labels.get(constraint.key)
            if own is None:
                continue
            if constraint.key == HOSTNAME:
                pods = count(pods_on(node.name), constraint, pod.namespace)
            else:
                pods = by_value[own]
            total += pods * weight + (constraint.given.max_skew - 1)
        raw[node.name] = math.floor(total + 0.5)
    least, greatest = min(raw.values(), default=0), max(raw.values(), default=0)
    final = dict.fromkeys(ignored, 0)
    for name, score in raw.items():
        final[name] = 100 if greatest == 0 else 100 * (greatest + least - score) // greatest
    return final
