"""Which pods belong together when nobody says so: those of the same services and the same controller.

Source: DefaultSelector in pkg/scheduler/framework/plugins/helper/spread.go.
"""

from __future__ import annotations

from dataclasses import dataclass

from kube_pyscheduler.columns.label_matcher import EVERYTHING, LabelMatcher, labels_matcher, selector_matcher
from kube_pyscheduler.framework.listers import Lister, Listers
from kube_pyscheduler.objects.group import ReplicaSet, Service, StatefulSet
from kube_pyscheduler.objects.meta import OwnerReference
from kube_pyscheduler.objects.pod import Pod

KEEP = 1024
"""Answers kept at most, of each kind; when there are more, all are forgotten."""

_PodKey = tuple[str, frozenset[tuple[str, str]]]
_Owned = ReplicaSet | StatefulSet


@dataclass(frozen=True, slots=True)
class PodServices:
    """The services that select a pod. ``labels``: all that they ask for. ``selector``: the pods that have these, all
    of them where there is no service. ``first``: the selector of the service whose name comes first, if there is one.
    """

    labels: dict[str, str]
    selector: LabelMatcher
    first: LabelMatcher | None


class DefaultSelectors:
    """Remembers answers: the services of a pod are looked for once, until some service changes."""

    def __init__(self) -> None:
        self._services: dict[_PodKey, PodServices] = {}
        self._services_seen: tuple[Lister[Service] | None, int] = (None, 0)
        self._owned: dict[tuple[str, str], tuple[_Owned, LabelMatcher]] = {}

    def selector(self, pod: Pod, listers: Listers) -> LabelMatcher:
        """What selects the pods that the pod's services and its controller select; everything if it has none."""
        found = self.services(pod, listers)
        labels, selector = found.labels, found.selector
        owner = pod.metadata.controller()
        if owner is None:
            return selector
        kind = owner.api_version, owner.kind
        if kind == ("v1", "ReplicationController"):
            controller = listers.replication_controllers.get(f"{pod.namespace}/{owner.name}")
            return labels_matcher(labels | controller.spec.selector) if controller is not None else selector
        if kind == ("apps/v1", "ReplicaSet"):
            return selector.and_all(self._of_owner(listers.replica_sets, pod, owner))
        if kind == ("apps/v1", "StatefulSet"):
            return selector.and_all(self._of_owner(listers.stateful_sets, pod, owner))
        return selector

    def services(self, pod: Pod, listers: Listers) -> PodServices:
        """The services that select the pod; those without a selector select nothing. O(services of the namespace) the
        first time."""
        services = listers.services
        if self._services_seen != (services, services.generation) or len(self._services) > KEEP:
            self._services_seen = services, services.generation
            self._services.clear()
        own = pod.metadata.labels
        key = pod.namespace, frozenset(own.items())
        known = self._services.get(key)
        if known is None:
            selecting = [
                service
                for service in services.in_namespace(pod.namespace)
                if service.spec.selector and service.spec.selector.items() <= own.items()
            ]
            merged: dict[str, str] = {}
            for service in selecting:
                merged.update(service.spec.selector)
            first = min(selecting, key=lambda service: service.name, default=None)
            known = self._services[key] = PodServices(
                merged, labels_matcher(merged), labels_matcher(first.spec.selector) if first is not None else None
            )
        return known

    def _of_owner(
        self, lister: Lister[ReplicaSet] | Lister[StatefulSet], pod: Pod, owner: OwnerReference
    ) -> LabelMatcher:
        """The selector of the pod's controller; everything where there is none that can be read."""
        key = f"{pod.namespace}/{owner.name}"
        controller = lister.get(key)
        if controller is None:
            return EVERYTHING
        known = self._owned.get((owner.kind, key))
        if known is not None and known[0] is controller:
            return known[1]
        try:
            selector = selector_matcher(controller.spec.selector)
        except ValueError:
            selector = EVERYTHING
        if selector.never:
            # No selector at all adds no requirement.
            selector = EVERYTHING
        if len(self._owned) > KEEP:
            self._owned.clear()
        self._owned[owner.kind, key] = controller, selector
        return selector
