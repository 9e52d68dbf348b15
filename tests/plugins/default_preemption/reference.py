"""The plain twin: one node at a time, and every world built from nothing.

A node is judged in a cluster of its own, in which the victims were never there (and the pods nominated to the node
are). So it agrees with the what-ifs only if these leave the other nodes alone. A filter that PreFilter switched off
in the real cluster stays off in all others, as upstream.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.objects.group import PodDisruptionBudget
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod
from tests.clusters import Cluster

NO_START = "9999"


@dataclass(frozen=True)
class Found:
    victims: tuple[str, ...]
    violations: int


@dataclass
class Scene:
    """A cluster as plain lists. ``nominated``: (node name, pod)."""

    nodes: list[Node]
    pods: list[Pod]
    nominated: list[tuple[str, Pod]] = field(default_factory=list)
    budgets: list[PodDisruptionBudget] = field(default_factory=list)
    off: frozenset[str] = frozenset()
    """Filters that are switched off."""

    def cluster(self, pods: Sequence[Pod] | None = None) -> Cluster:
        """With other pods perhaps."""
        disabled = [{"name": name} for name in sorted(self.off)]
        profile = {"plugins": {"filter": {"disabled": disabled}}}
        cluster = Cluster(self.nodes, self.pods if pods is None else pods, profile)
        for node, pod in self.nominated:
            cluster.nominate(pod, node)
        for budget in self.budgets:
            cluster.cache.listers.pod_disruption_budgets.put(budget)
        return cluster


def candidates(scene: Scene, pod: Pod, potential: Iterable[str]) -> dict[str, Found]:
    """The nodes among ``potential`` where preemption helps."""
    scene = replace(scene, off=skipped(scene.cluster(), pod))
    found = {name: _select(scene, pod, name) for name in potential}
    return {name: result for name, result in found.items() if result is not None}


def _select(scene: Scene, pod: Pod, node: str) -> Found | None:
    lower = [other for other in scene.pods if other.spec.node_name == node and other.priority < pod.priority]
    if not lower or not _fits(scene, pod, node, lower):
        return None
    lower.sort(key=lambda other: (-other.priority, other.status.start_time or NO_START, other.key))
    violating = _violating(lower, scene.budgets)
    victims = list(lower)
    violations = 0
    for candidate in [*violating, *(other for other in lower if other not in violating)]:
        victims.remove(candidate)
        if not _fits(scene, pod, node, victims):
            victims.append(candidate)
            violations += candidate in violating
    return Found(tuple(sorted(victim.key for victim in victims)), violations)


def _fits(scene: Scene, pod: Pod, node: str, gone: Sequence[Pod]) -> bool:
    left = [other for other in scene.pods if other not in gone]
    guests = [
        _on(guest, node)
        for promised, guest in scene.nominated
        if promised == node and guest.priority >= pod.priority and guest.uid != pod.uid
    ]
    worlds = [left, [*left, *guests]] if guests else [left]
    return all(node in replace(scene, nominated=[]).cluster(world).fit(pod) for world in worlds)


def skipped(cluster: Cluster, pod: Pod) -> frozenset[str]:
    """The filters that PreFilter switches off for this pod."""
    cycle, _judged = cluster.engine.cycle(cluster.profile, PodInfo(pod))
    assert cycle.pre_filter() is None
    return frozenset(cycle.skipped)


def _on(pod: Pod, node: str) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))


def _violating(pods: Sequence[Pod], budgets: Sequence[PodDisruptionBudget]) -> list[Pod]:
    left = {budget.key: budget.status.disruptions_allowed for budget in budgets}
    found = []
    for pod in pods:
        breaks = False
        for budget in budgets:
            selector = budget.spec.selector
            if budget.namespace != pod.namespace or selector is None or selector.is_empty or not pod.metadata.labels:
                continue
            if selector.matches(pod.metadata.labels) and pod.name not in budget.status.disrupted_pods:
                left[budget.key] -= 1
                breaks = breaks or left[budget.key] < 0
        if breaks:
            found.append(pod)
    return found
