"""Affinity terms as values.

Source: AffinityTerm and its makers in kube-scheduler/framework/types.go. ``matchLabelKeys`` and ``mismatchLabelKeys``
are not looked at: the API server has merged them into the selector.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import msgspec

from kube_pyscheduler.columns.label_matcher import LabelMatcher, selector_matcher
from kube_pyscheduler.objects.pod import Affinity, Pod, PodAffinity, PodAffinityTerm


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

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Affinity)


def pod_terms(pod: Pod) -> PodTerms:
    """What a pod says about others; one object for all pods of a namespace that say the same."""
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return NO_TERMS
    return _terms_of(pod.namespace, _ENCODER.encode(affinity))


@lru_cache(maxsize=16384)
def _terms_of(namespace: str, encoded: bytes) -> PodTerms:
    """Source: PodInfo.Update in pkg/scheduler/framework/types.go."""
    affinity = _DECODER.decode(encoded)
    near = affinity.pod_affinity or PodAffinity()
    far = affinity.pod_anti_affinity or PodAffinity()
    problems: list[str] = []

    def terms(kind: str, given: tuple[PodAffinityTerm, ...]) -> Terms:
        try:
            return tuple([_term(namespace, term) for term in given])
        except ValueError as error:
            problems.append(f"{kind}: {error}")
            return ()

    required = terms("requiredAffinityTerms", near.required)
    required_anti = terms("requiredAntiAffinityTerms", far.required)
    preferred = terms("preferredAffinityTerms", tuple([w.pod_affinity_term for w in near.preferred]))
    preferred_anti = terms("preferredAntiAffinityTerms", tuple([w.pod_affinity_term for w in far.preferred]))
    return PodTerms(
        required,
        required_anti,
        tuple([(weighted.weight, term) for weighted, term in zip(near.preferred, preferred, strict=False)]),
        tuple([(weighted.weight, term) for weighted, term in zip(far.preferred, preferred_anti, strict=False)]),
        problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]" if problems else "",
    )


def _term(namespace: str, given: PodAffinityTerm) -> Term:
    """Without namespaces and a selector of them, the pod's own namespace is meant."""
    own = not given.namespaces and given.namespace_selector is None
    return Term(
        given.topology_key,
        selector_matcher(given.label_selector),
        frozenset((namespace,)) if own else frozenset(given.namespaces),
        selector_matcher(given.namespace_selector),
    )
