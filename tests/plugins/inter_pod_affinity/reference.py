"""Plain twins: one node, one pod, one term at a time.

Source: pkg/scheduler/framework/plugins/interpodaffinity/{filtering,scoring}.go, except that namespace selectors of the
incoming pod look at the labels of each namespace, as they are documented to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kube_pyscheduler.objects.group import Namespace
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod, PodAffinity, PodAffinityTerm

NOT_NEAR, TOO_NEAR, NOT_WANTED = "affinity", "anti-affinity", "existing anti-affinity"


@dataclass
class Speaker:
    """A pod that has terms."""

    pod: Pod
    namespaces: Mapping[str, Namespace]

    def _affinity(self, *, anti: bool) -> PodAffinity:
        affinity = self.pod.spec.affinity
        if affinity is None:
            return PodAffinity()
        return (affinity.pod_anti_affinity if anti else affinity.pod_affinity) or PodAffinity()

    def required(self, *, anti: bool) -> tuple[PodAffinityTerm, ...]:
        return self._affinity(anti=anti).required

    def preferred(self, *, anti: bool) -> list[tuple[int, PodAffinityTerm]]:
        return [(weighted.weight, weighted.pod_affinity_term) for weighted in self._affinity(anti=anti).preferred]

    def means(self, term: PodAffinityTerm, other: Pod) -> bool:
        """Whether one of the pod's terms speaks of another pod."""
        names = term.namespaces
        if not names and term.namespace_selector is None:
            names = (self.pod.namespace,)
        if other.namespace not in names:
            if term.namespace_selector is None:
                return False
            known = self.namespaces.get(other.namespace)
            if not term.namespace_selector.matches(known.metadata.labels if known else {}):
                return False
        return term.label_selector is not None and term.label_selector.matches(other.metadata.labels)

    def all_mean(self, terms: Iterable[PodAffinityTerm], other: Pod) -> bool:
        terms = list(terms)
        return bool(terms) and all(self.means(term, other) for term in terms)


Pairs = dict[tuple[str, str], int]


def _add(pairs: Pairs, node: Node, key: str, amount: int) -> None:
    value = node.metadata.labels.get(key)
    if value is not None:
        pairs[key, value] = pairs.get((key, value), 0) + amount
        if pairs[key, value] == 0:
            del pairs[key, value]


class Filter:
    """The state of one attempt; ``change`` is AddPod and RemovePod."""

    def __init__(self, pod: Pod, placed: Iterable[tuple[Node, Pod]], namespaces: Mapping[str, Namespace]) -> None:
        self._me = Speaker(pod, namespaces)
        self._namespaces = namespaces
        self._near: Pairs = {}
        self._far: Pairs = {}
        self._refusing: Pairs = {}
        for node, other in placed:
            self.change(node, other, 1)

    @property
    def is_skipped(self) -> bool:
        """Whether there is nothing to judge."""
        return not self._refusing and not self._me.required(anti=False) and not self._me.required(anti=True)

    def change(self, node: Node, other: Pod, sign: int) -> None:
        me = self._me
        if me.all_mean(me.required(anti=False), other):
            for term in me.required(anti=False):
                _add(self._near, node, term.topology_key, sign)
        for term in me.required(anti=True):
            if me.means(term, other):
                _add(self._far, node, term.topology_key, sign)
        them = Speaker(other, self._namespaces)
        for term in them.required(anti=True):
            if them.means(term, me.pod):
                _add(self._refusing, node, term.topology_key, sign)

    def code(self, node: Node) -> str:
        labels = node.metadata.labels
        if not self._is_near(labels):
            return NOT_NEAR
        for term in self._me.required(anti=True):
            value = labels.get(term.topology_key)
            if value is not None and self._far.get((term.topology_key, value), 0) > 0:
                return TOO_NEAR
        if any(self._refusing.get(pair, 0) > 0 for pair in labels.items()):
            return NOT_WANTED
        return ""

    def _is_near(self, labels: Mapping[str, str]) -> bool:
        terms = self._me.required(anti=False)
        if any(term.topology_key not in labels for term in terms):
            return False
        if all(self._near.get((term.topology_key, labels[term.topology_key]), 0) > 0 for term in terms):
            return True
        return not self._near and self._me.all_mean(terms, self._me.pod)


def scores(
    pod: Pod,
    placed: Iterable[tuple[Node, Pod]],
    feasible: list[Node],
    namespaces: Mapping[str, Namespace],
    *,
    hard_weight: int,
    ignore_existing: bool,
) -> dict[str, int] | None:
    """Final scores of the feasible nodes; None where there is nothing to score."""
    me = Speaker(pod, namespaces)
    if ignore_existing and not me.preferred(anti=False) and not me.preferred(anti=True):
        return None
    points: dict[tuple[str, str], int] = {}

    def give(node: Node, key: str, amount: int) -> None:
        value = node.metadata.labels.get(key)
        if value is not None:
            points[key, value] = points.get((key, value), 0) + amount

    for node, other in placed:
        them = Speaker(other, namespaces)
        for anti in (False, True):
            sign = -1 if anti else 1
            for weight, term in me.preferred(anti=anti):
                if me.means(term, other):
                    give(node, term.topology_key, sign * weight)
            for weight, term in them.preferred(anti=anti):
                if them.means(term, pod):
                    give(node, term.topology_key, sign * weight)
        if hard_weight:
            for term in them.required(anti=False):
                if them.means(term, pod):
                    give(node, term.topology_key, hard_weight)
    if not points:
        return None
    raw = {node.name: sum(points.get(pair, 0) for pair in node.metadata.labels.items()) for node in feasible}
    least, greatest = min(raw.values()), max(raw.values())
    if greatest == least:
        return dict.fromkeys(raw, 0)
    return {name: int(100.0 * ((score - least) / (greatest - least))) for name, score in raw.items()}
