"""Effective requests of a pod: sidecars, init containers, overhead, pod-level resources, in-place resize.

All amounts are exact milli-units, keyed by resource name; a missing key means that nothing was said, which is not
the same as an explicit 0.
Source: component-helpers/resource/helpers.go and CalculateResource in pkg/scheduler/framework/types.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kube_pyscheduler.objects.quantity import RawQuantity, parse_list

if TYPE_CHECKING:
    from kube_pyscheduler.objects.pod import Container, Pod, Resources

Amounts = dict[str, int]

DEFAULT_NON_MISSING: Mapping[str, int] = {"cpu": 100, "memory": 200 * 1024 * 1024 * 1000}
"""What scoring assumes for a container that says nothing: 100m and 200Mi.

Source: pkg/scheduler/util/pod_resources.go.
"""


def is_pod_level_resource(name: str) -> bool:
    """Whether pod-level requests may name this resource."""
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def _add(into: Amounts, amounts: Mapping[str, int]) -> None:
    for name, amount in amounts.items():
        into[name] = into.get(name, 0) + amount


def _maximum(into: Amounts, *others: Mapping[str, int]) -> Amounts:
    for amounts in others:
        for name, amount in amounts.items():
            if name not in into or amount > into[name]:
                into[name] = amount
    return into


def _is_resize_infeasible(pod: Pod) -> bool:
    for condition in pod.status.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _effective(
    pod: Pod, spec: Mapping[str, RawQuantity], actual: Resources, allocated: Mapping[str, RawQuantity]
) -> Amounts:
    """While a resize is under way the largest of wish, grant and reality counts; an infeasible wish does not."""
    amounts = _maximum(parse_list(actual.requests), parse_list(allocated))
    if not _is_resize_infeasible(pod):
        _maximum(amounts, parse_list(spec))
    return amounts


def _with_missing(amounts: Amounts, defaults: Mapping[str, int]) -> Amounts:
    if not defaults:
        return amounts
    return {**defaults, **amounts}


def _container_requests(pod: Pod, use_status: bool, defaults: Mapping[str, int]) -> Amounts:
    spec, status = pod.spec, pod.status
    statuses = {}
    if use_status and (status.container_statuses or status.init_container_statuses):
        statuses = {entry.name: entry for entry in (*status.container_statuses, *status.init_container_statuses)}

    def requests_of(container: Container, resizable: bool) -> Amounts:
        entry = statuses.get(container.name) if resizable else None
        if entry is not None and entry.resources is not None:
            own = _effective(pod, container.resources.requests, entry.resources, entry.allocated_resources)
        else:
            own = parse_list(container.resources.requests)
        return _with_missing(own, defaults)

    total: Amounts = {}
    for container in spec.containers:
        _add(total, requests_of(container, True))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.init_containers:
        amounts = requests_of(container, container.is_sidecar)
        if container.is_sidecar:
            _add(total, amounts)
            _add(sidecars, amounts)
            _maximum(peak, sidecars)
        else:
            starting = dict(amounts)
            _add(starting, sidecars)
            _maximum(peak, starting)
    return _maximum(total, peak)


def has_pod_level_requests(pod: Pod) -> bool:
    resources = pod.spec.resources
    return resources is not None and any(is_pod_level_resource(name) for name in resources.requests)


def pod_requests(
    pod: Pod, *, use_status: bool, defaults: Mapping[str, int] | None = None, pod_level: bool = True
) -> Amounts:
    """What the pod asks for in all, in milli-units.

    ``use_status``: count what a resize has granted, for pods that are on a node. ``defaults``: amounts for containers
    that do not name a resource (milli-units). ``pod_level``: let pod-level requests replace the sum of the containers.
    Raises QuantityError for an unreadable amount.
    """
    spec, status = pod.spec, pod.status
    total = _container_requests(pod, use_status, defaults or {})
    if pod_level and spec.resources is not None and has_pod_level_requests(pod):
        wanted = parse_list(spec.resources.requests)
        effective = wanted
        if use_status and status.resources is not None:
            effective = _effective(pod, spec.resources.requests, status.resources, status.allocated_resources)
        for name in wanted:
            if is_pod_level_resource(name):
                total[name] = effective.get(name, 0)
    if spec.overhead:
        _add(total, parse_list(spec.overhead))
    return total


def check_amounts(pod: Pod) -> None:
    """Raises QuantityError if some amount of the pod's is unreadable."""
    spec, status = pod.spec, pod.status
    for container in (*spec.containers, *spec.init_containers):
        parse_list(container.resources.requests)
        parse_list(container.resources.limits)
    parse_list(spec.overhead)
    for resources in (spec.resources, status.resources):
        if resources is not None:
            parse_list(resources.requests)
            parse_list(resources.limits)
    parse_list(status.allocated_resources)
    for entry in (*status.container_statuses, *status.init_container_statuses):
        parse_list(entry.allocated_resources)
        if entry.resources is not None:
            parse_list(entry.resources.requests)


def non_missing_defaults(pod: Pod, requests: Mapping[str, int]) -> dict[str, int]:
    """The defaults that apply to this pod's containers when it is charged for scoring."""
    if not has_pod_level_requests(pod):
        return dict(DEFAULT_NON_MISSING)
    return {name: amount for name, amount in DEFAULT_NON_MISSING.items() if name not in requests}
