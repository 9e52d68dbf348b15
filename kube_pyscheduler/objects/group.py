"""Objects that speak about groups of pods: namespaces, services, controllers, disruption budgets."""

from __future__ import annotations

from kube_pyscheduler.objects.meta import Int32, Object, Struct
from kube_pyscheduler.objects.selectors import LabelSelector


class Namespace(Object, frozen=True):
    pass


class ServiceSpec(Struct, frozen=True):
    selector: dict[str, str] = {}


class Service(Object, frozen=True):
    spec: ServiceSpec = ServiceSpec()


class ReplicationController(Object, frozen=True):
    """Selects by plain labels, as a Service does."""

    spec: ServiceSpec = ServiceSpec()


class SelectorSpec(Struct, frozen=True):
    selector: LabelSelector | None = None


class ReplicaSet(Object, frozen=True):
    spec: SelectorSpec = SelectorSpec()


class StatefulSet(Object, frozen=True):
    spec: SelectorSpec = SelectorSpec()


class DisruptionBudgetStatus(Struct, frozen=True):
    disruptions_allowed: Int32 = 0
    disrupted_pods: dict[str, str] = {}


class PodDisruptionBudget(Object, frozen=True):
    spec: SelectorSpec = SelectorSpec()
    status: DisruptionBudgetStatus = DisruptionBudgetStatus()
