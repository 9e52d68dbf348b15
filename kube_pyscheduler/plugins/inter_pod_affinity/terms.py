"""Affinity terms as values.

Source: AffinityTerm and its makers in kube-scheduler/framework/types.go. ``matchLabelKeys`` and ``mismatchLabelKeys``
are not looked at: the API server has merged them into the selector.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kube_pyscheduler.columns.label_matcher import LabelMatcher, selector_matcher
from kube_pyscheduler.objects.pod import Pod, PodAffinity, PodAffinityTerm


class Term:
    """``namespaces`` by name, besides those that ``namespace_selector`` selects; which pods there; what is near.
    Equal where these are; hashed once."""

    __slots__ = ("_hash", "_key", "namespace_selector", "namespaces", "selector", "topology_key")

    def __init__(
        self, topology_key: str, selector: LabelMatcher, namespaces: frozenset[str], namespace_selector: LabelMatcher
    ) -> None:
        self.topology_key = topology_key
        self.selector = selector
        self.namespaces = namespaces
        self.namespace_selector = namespace_selector
        self._key = topology_key, selector, namespaces, namespace_selector
        self._hash = hash(self._key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Term) and self._hash == other._hash and self._key == other._key)

    def matches(self, namespace: str, namespace_labels: Mapping[str, str], labels: Mapping[str, str]) -> bool:
        """Whether a pod with these labels, in a namespace with those, is one that the term speaks of."""
        if namespace not in self.namespaces and not self.namespace_selector.matches(namespace_labels):
            return False
        return self.selector.matches(labels)


Terms = tuple[Term, ...]
Weighted = tuple[tuple[int, Term], ...]
"""(weight, term)."""


@dataclass(frozen=True, slots=True)
class PodTerms:
    """All terms of a pod; those of a kind with a mistake are left out and ``problem`` tells of it."""

    required: Terms = ()
    required_anti: Terms = ()
    preferred: Weighted = ()
    preferred_anti: Weighted = ()
    problem: str = ""


NO_TERMS = PodTerms()


def pod_terms(pod: Pod) -> PodTerms:
    """What a pod says about others. Source: PodInfo.Update in pkg/scheduler/framework/types.go."""
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return NO_TERMS
    near = affinity.pod_affinity or PodAffinity()
    far = affinity.pod_anti_affinity or PodAffinity()
    problems: list[str] = []
    required = _terms(pod, "requiredAffinityTerms", near.required, problems)
    required_anti = _terms(pod, "requiredAntiAffinityTerms", far.required, problems)
    preferred = _terms(pod, "preferredAffinityTerms", tuple([w.pod_affinity_term for w in near.preferred]), problems)
    preferred_anti = _terms(
        pod, "preferredAntiAffinityTerms", tuple([w.pod_affinity_term for w in far.preferred]), problems
    )
    return PodTerms(
        required,
        required_anti,
        tuple([(weighted.weight, term) for weighted, term in zip(near.preferred, preferred, strict=False)]),
        tuple([(weighted.weight, term) for weighted, term in zip(far.preferred, preferred_anti, strict=False)]),
        problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]" if problems else "",
    )


def _terms(pod: Pod, name: str, given: tuple[PodAffinityTerm, ...], problems: list[str]) -> Terms:
    try:
        return tuple([_term(pod, term) for term in given])
    except ValueError as error:
        problems.append(f"{name}: {error}")
        return ()


def _term(pod: Pod, given: PodAffinityTerm) -> Term:
    """Without namespaces and a selector of them, the pod's own namespace is meant."""
    own = not given.namespaces and given.namespace_selector is None
    return Term(
        given.topology_key,
        selector_matcher(given.label_selector),
        frozenset((pod.namespace,)) if own else frozenset(given.namespaces),
        selector_matcher(given.namespace_selector),
    )
