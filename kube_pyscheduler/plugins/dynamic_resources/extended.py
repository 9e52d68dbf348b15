"""Extended resources as requests for devices: which container asks for how many, and which requests containers share.

Source: pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.devices.classes import ExtendedResources, is_device_resource
from kube_pyscheduler.objects.exact_quantity import parse_quantity
from kube_pyscheduler.objects.pod import Container, ExtendedResourceRequestMapping, Pod
from kube_pyscheduler.objects.quantity import to_units
from kube_pyscheduler.objects.resource import DeviceClaim, DeviceRequest, ExactDeviceRequest


def wanted_resources(pod: PodInfo) -> dict[str, int]:
    """The extended resources that the pod asks for, in whole units."""
    amounts = {name: to_units(milli) for name, milli in pod.demand.request.items() if is_device_resource(name)}
    return {name: amount for name, amount in amounts.items() if amount}


@dataclass(frozen=True, slots=True)
class ExtendedRequests:
    """``devices``: what the claim asks for. ``mappings``: which container gets which of its requests."""

    devices: DeviceClaim
    mappings: tuple[ExtendedResourceRequestMapping, ...]


NO_REQUESTS = ExtendedRequests(DeviceClaim(), ())


def requests_for(pod: Pod, resources: Sequence[str], classes: ExtendedResources) -> ExtendedRequests:
    """The requests for the given resources of the pod. Source: createRequestsAndMappings."""
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    inits = len(pod.spec.init_containers)
    is_long_lived = [number >= inits or container.is_sidecar for number, container in enumerate(containers)]
    requests: list[DeviceRequest] = []
    mappings: list[ExtendedResourceRequestMapping] = []
    for resource in sorted(resources):
        device_class = classes.class_of(resource)
        if device_class is None:
            continue
        kept: list[DeviceRequest | None] = [None] * len(containers)
        for number, container in enumerate(containers):
            if is_long_lived[number]:
                kept[number], used = _request(number, container, resource, device_class.name, ())
                mappings += used
        brief, brief_mappings = _brief_requests(containers, is_long_lived, resource, device_class.name, kept)
        requests += brief
        requests += [request for request in kept if request is not None]
        mappings += brief_mappings
    requests.sort(key=lambda request: request.name)
    return ExtendedRequests(DeviceClaim(tuple(requests)), tuple(mappings))


def _brief_requests(
    containers: Sequence[Container],
    is_long_lived: Sequence[bool],
    resource: str,
    class_name: str,
    kept: Sequence[DeviceRequest | None],
) -> tuple[list[DeviceRequest], list[ExtendedResourceRequestMapping]]:
    """Init containers run one after the other, so they use what later containers get and share the largest request for
    what is missing then."""
    largest: DeviceRequest | None = None
    names = set()
    mappings: list[ExtendedResourceRequestMapping] = []
    for number, container in enumerate(containers):
        if is_long_lived[number]:
            continue
        request, used = _request(number, container, resource, class_name, kept[number:])
        mappings += used
        if request is not None:
            names.add(request.name)
            if largest is None or _count(largest) < _count(request):
                largest = request
    if largest is None:
        return [], mappings
    renamed = [
        ExtendedResourceRequestMapping(used.container_name, used.resource_name, largest.name)
        if used.request_name in names
        else used
        for used in mappings
    ]
    return [largest], renamed


def _request(
    number: int,
    container: Container,
    resource: str,
    class_name: str,
    reusable: Sequence[DeviceRequest | None],
) -> tuple[DeviceRequest | None, list[ExtendedResourceRequestMapping]]:
    """What a container needs besides the ``reusable`` requests, and which requests it uses."""
    amounts: Mapping[str, object] = container.resources.requests
    wanted = parse_quantity(container.resources.requests[resource]).as_integer() if resource in amounts else None
    if not wanted:
        return None, []
    mappings = []
    found = 0
    for request in reusable:
        if request is None:
            continue
        found += _count(request)
        mappings.append(ExtendedResourceRequestMapping(container.name, resource, request.name))
        if found >= wanted:
            return None, mappings
    name = f"container-{number}-request-{sorted(amounts).index(resource)}"
    mappings.append(ExtendedResourceRequestMapping(container.name, resource, name))
    exactly = ExactDeviceRequest(device_class_name=class_name, count=wanted - found)
    return DeviceRequest(name, exactly), mappings


def _count(request: DeviceRequest) -> int:
    return request.exactly.count if request.exactly is not None else 0
