"""What may help a pod that InterPodAffinity refused.

Source: isSchedulableAfterPodChange and isSchedulableAfterNodeChange in interpodaffinity/plugin.go. Where these forget
something that the filter looks at, we do not: one of several anti-affinity terms keeps a pod away, terms of other pods
do until labels of nodes change or nodes come and go, and a pod that its own terms select may be the first of its kind.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from kube_pyscheduler.framework.cluster_event import (
    Action,
    ClusterEvent,
    EventRegistration,
    Hint,
    QueueingHint,
    Resource,
    queue_if,
)
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.objects.group import Namespace
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.plugins.inter_pod_affinity.existing import ExistingTerms
from kube_pyscheduler.plugins.inter_pod_affinity.namespaces import namespace_labels
from kube_pyscheduler.plugins.inter_pod_affinity.terms import PodTerms, Term, Terms, pod_terms


def identity(pod: Pod, listers: Listers) -> tuple[str, Mapping[str, str], Mapping[str, str]]:
    """What the terms of others look at: namespace, its labels, the pod's labels."""
    return pod.namespace, namespace_labels(pod.namespace, listers), pod.metadata.labels


def _waiting_for(pod: Pod) -> Hashable:
    """What the hints read of a waiting pod. Events of the pod itself are judged for it alone, so its uid does not tell
    pods apart."""
    terms = pod_terms(pod)
    if terms.problem:
        return pod.uid
    labels = frozenset(pod.metadata.labels.items())
    return pod.namespace, labels, terms.required, terms.required_anti, pod.priority, pod.spec.preemption_policy


def _required(pod: Pod) -> PodTerms:
    terms = pod_terms(pod)
    if terms.problem:
        raise ValueError(terms.problem)
    return terms


def _after_pod(pod: Pod, old: Pod | None, new: Pod | None, view: Listers) -> QueueingHint:
    if old is not None and new is not None and pod.uid == new.uid:
        return QueueingHint.QUEUE
    if any(p is not None and not p.spec.node_name and not p.status.nominated_node_name for p in (old, new)):
        return QueueingHint.SKIP
    terms = _required(pod)
    was_near, is_near = _is_near(terms, old, view), _is_near(terms, new, view)
    if is_near and not was_near:
        return QueueingHint.QUEUE
    if was_near and not is_near and _is_near(terms, pod, view):
        # Without others of its kind, the pod may go anywhere.
        return QueueingHint.QUEUE
    if old is None:
        return QueueingHint.SKIP
    if any(_says(term, old, view) and not _says(term, new, view) for term in terms.required_anti):
        return QueueingHint.QUEUE
    return queue_if(new is None and any(_says(term, pod, view) for term in _required(old).required_anti))


def _is_near(terms: PodTerms, other: Pod | None, view: Listers) -> bool:
    """Whether the pod is one that all affinity terms ask for."""
    return bool(terms.required) and all(_says(term, other, view) for term in terms.required)


def _says(term: Term, other: Pod | None, view: Listers) -> bool:
    return other is not None and term.matches(*identity(other, view))


def _after_node(pod: Pod, old: Node | None, new: Node | None, view: Listers) -> QueueingHint:
    """A node that goes leaves its domains, with its pods; upstream waits until these are gone."""
    terms = _required(pod)
    after: Mapping[str, str] = new.metadata.labels if new is not None else {}
    if old is None:
        return queue_if(not terms.required or any(term.topology_key in after for term in terms.required))
    before = old.metadata.labels
    if any(_value_came(term, before, after) for term in terms.required):
        return QueueingHint.QUEUE
    if any(_value_went(term, before, after) for term in terms.required_anti):
        return QueueingHint.QUEUE
    if any(_value_went(term, before, after) for term in terms.required) and _is_near(terms, pod, view):
        # The node may have had the only pods of this one's kind.
        return QueueingHint.QUEUE
    return queue_if(any(_value_went(term, before, after) for term in _refusing(pod, view)))


def _value_came(term: Term, before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    value = after.get(term.topology_key)
    return value is not None and value != before.get(term.topology_key)


def _value_went(term: Term, before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    return _value_came(term, after, before)


def _refusing(pod: Pod, view: Listers) -> Terms:
    """What pods on nodes say against this one."""
    existing = view.nodes.attached(ExistingTerms).refusing(*identity(pod, view))
    return tuple([entry.term for entry in existing])


def _after_namespace(pod: Pod, old: Namespace | None, new: Namespace | None, view: Listers) -> QueueingHint:
    """Ours: pods there begin or cease to be among those that a term speaks of. A namespace that is not known has no
    labels."""
    name = (new or old or Namespace()).name
    before = old.metadata.labels if old is not None else {}
    after = new.metadata.labels if new is not None else {}
    if before == after:
        return QueueingHint.SKIP
    terms = _required(pod)

    def came(term: Term) -> bool:
        return _selects(term, name, after) and not _selects(term, name, before)

    def went(term: Term) -> bool:
        return _selects(term, name, before) and not _selects(term, name, after)

    if any(map(came, terms.required)) or any(map(went, terms.required_anti)):
        return QueueingHint.QUEUE
    if any(map(went, terms.required)) and _is_near(terms, pod, view):
        # The only pods of this one's kind may have been there.
        return QueueingHint.QUEUE
    if name != pod.namespace:
        return QueueingHint.SKIP
    existing = view.nodes.attached(ExistingTerms)
    said = existing.refusing(name, before, pod.metadata.labels)
    return queue_if(any(entry not in existing.refusing(name, after, pod.metadata.labels) for entry in said))


def _selects(term: Term, namespace: str, labels: Mapping[str, str]) -> bool:
    return namespace in term.namespaces or term.namespace_selector.matches(labels)


def registrations(is_welcome: Callable[[Pod, Listers], bool]) -> tuple[EventRegistration, ...]:
    """``is_welcome``: whether some node takes the pod now. Where none does, no event has helped."""

    def checked(hint: Hint) -> Hint:
        def answer(pod: Pod, old: Any, new: Any, view: Listers) -> QueueingHint:
            found = hint(pod, old, new, view)
            return queue_if(found is QueueingHint.QUEUE and is_welcome(pod, view))

        return answer

    pod_changed = Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE
    node_changed = Action.ADD | Action.UPDATE_NODE_LABEL | Action.DELETE
    return (
        EventRegistration(ClusterEvent(Resource.POD, pod_changed), checked(_after_pod), _waiting_for),
        EventRegistration(ClusterEvent(Resource.NODE, node_changed), checked(_after_node), _waiting_for),
        EventRegistration(ClusterEvent(Resource.NAMESPACE, Action.ALL), checked(_after_namespace), _waiting_for),
    )
