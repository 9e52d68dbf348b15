"""What a pod asks for and takes, worked out once for all pods whose containers ask for the same."""

from __future__ import annotations

from functools import lru_cache

from kube_pyscheduler.columns.resources import column_amounts
from kube_pyscheduler.columns.vocabulary import Vocabulary
from kube_pyscheduler.objects.pod import Container, Pod, PodSpec, Resources
from kube_pyscheduler.objects.pod_requests import (
    DEFAULT_NON_MISSING,
    Amounts,
    non_missing_defaults,
    pod_requests,
)
from kube_pyscheduler.objects.quantity import RawQuantity, to_milli, to_units


class Demand:
    """``request``: what the pod asks for before it is on a node, in milli-units; a status it may have is not looked at.

    ``request_items`` is the same, sorted and hashable, as ``charge_items`` is of ``charge``.

    ``scored_request``: (resource, milli-units) as the scores of NodeResourcesFit see it: containers that name no CPU
    or no memory count as 100m and 200Mi, and pod-level requests do not count (the options that NewFit leaves at their
    zero values). Source: calculatePodResourceRequest in pkg/scheduler/framework/plugins/noderesources.

    ``charge``: what the pod takes of its node, in milli-units. ``non_zero``: (milli-CPU, bytes) of that as scoring
    sees it, again with 100m and 200Mi for containers that say nothing.
    """

    __slots__ = ("_columns", "charge", "charge_items", "non_zero", "request", "request_items", "scored_request")

    def __init__(self, pod: Pod) -> None:
        self.request: Amounts = pod_requests(pod, use_status=False)
        self.request_items = tuple(sorted(self.request.items()))
        scored = pod_requests(pod, use_status=False, defaults=DEFAULT_NON_MISSING, pod_level=False)
        self.scored_request = tuple(sorted(scored.items()))
        self.charge: Amounts = pod_requests(pod, use_status=True)
        self.charge_items = tuple(sorted(self.charge.items()))
        defaults = non_missing_defaults(pod, self.charge)
        non_zero = pod_requests(pod, use_status=True, defaults=defaults) if defaults else self.charge
        self.non_zero = to_milli(non_zero.get("cpu", 0)), to_units(non_zero.get("memory", 0))
        self._columns: tuple[Vocabulary[str], dict[int, int]] | None = None

    def columns(self, resources: Vocabulary[str]) -> dict[int, int]:
        """``charge`` as resource row → column value, without zeros."""
        if self._columns is None or self._columns[0] is not resources:
            amounts = column_amounts(self.charge, resources)
            self._columns = resources, {row: amount for row, amount in amounts.items() if amount}
        return self._columns[1]

    def charges_as(self, other: Demand) -> bool:
        """Whether both take the same of a node."""
        return self is other or (self.charge == other.charge and self.non_zero == other.non_zero)


def demand_of(pod: Pod) -> Demand:
    """The pod's demand, shared among pods with nothing but containers. Raises QuantityError."""
    spec, status = pod.spec, pod.status
    if spec.init_containers or spec.overhead or spec.resources is not None or status.resources is not None:
        return Demand(pod)
    for entry in status.container_statuses:
        if entry.resources is not None:
            return Demand(pod)
    return _plain_demand(tuple([tuple(container.resources.requests.items()) for container in spec.containers]))


@lru_cache(maxsize=8192)
def _plain_demand(requests: tuple[tuple[tuple[str, RawQuantity], ...], ...]) -> Demand:
    containers = tuple(Container(resources=Resources(requests=dict(items))) for items in requests)
    return Demand(Pod(spec=PodSpec(containers=containers)))
