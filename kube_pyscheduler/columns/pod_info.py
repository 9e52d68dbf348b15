"""A pod with everything about it that is computed once: requests, ports, its charge on a node."""

from __future__ import annotations

from kube_pyscheduler.columns.vocabulary import Vocabulary
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.objects.pod_requests import (
    DEFAULT_NON_MISSING,
    Amounts,
    non_missing_defaults,
    pod_requests,
)
from kube_pyscheduler.objects.quantity import to_milli, to_units

CPU, MEMORY, EPHEMERAL_STORAGE = 0, 1, 2
"""Rows of the resource axis that always exist: milli-CPU, bytes, bytes."""

HostPort = tuple[str, str, int]
"""(host IP, protocol, port)."""


def new_resource_vocabulary() -> Vocabulary[str]:
    """Resource names to rows of the resource axis."""
    vocabulary: Vocabulary[str] = Vocabulary()
    for name in ("cpu", "memory", "ephemeral-storage"):
        vocabulary.intern(name)
    return vocabulary


def is_scalar_resource(name: str) -> bool:
    """Whether the scheduler counts a resource besides the three that always exist.

    Extended resources, huge pages, prefixed native ones and attachable volumes.
    Source: IsScalarResourceName in pkg/scheduler/util/utils.go.
    """
    if "/" in name:
        return "kubernetes.io/" in name or is_extended_resource(name)
    return name.startswith(("hugepages-", "attachable-volumes-"))


def is_extended_resource(name: str) -> bool:
    """Whether the name is a qualified one outside kubernetes.io. Source: IsExtendedResourceName."""
    prefix, slash, rest = name.partition("/")
    return (
        slash == "/"
        and "kubernetes.io/" not in name
        and not name.startswith("requests.")
        and 0 < len(prefix) <= 253 - len("requests.")
        and 0 < len(rest) <= 63
        and "/" not in rest
    )


def column_amounts(amounts: Amounts, resources: Vocabulary[str]) -> dict[int, int]:
    """Milli-unit amounts as resource row → column value (milli for CPU, else whole units), unknown names dropped."""
    columns: dict[int, int] = {}
    for name, amount in amounts.items():
        if name == "cpu":
            columns[CPU] = to_milli(amount)
        elif name in ("memory", "ephemeral-storage") or is_scalar_resource(name):
            columns[resources.intern(name)] = to_units(amount)
    return columns


class PodInfo:
    """A pod as the scheduler handles it. Immutable in effect; derived values are computed on first use and kept."""

    __slots__ = ("_charge", "_charged_columns", "_host_ports", "_request", "_scored_request", "pod")

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self._request: Amounts | None = None
        self._charge: tuple[Amounts, int, int] | None = None
        self._charged_columns: tuple[Vocabulary[str], dict[int, int]] | None = None
        self._scored_request: tuple[tuple[str, int], ...] | None = None
        self._host_ports: tuple[HostPort, ...] | None = None

    def on_node(self, pod: Pod) -> PodInfo:
        """The same pod with ``spec.nodeName``: what was computed stays."""
        info = PodInfo(pod)
        info._request = self._request
        info._scored_request = self._scored_request
        info._charge = self._charge
        info._charged_columns = self._charged_columns
        info._host_ports = self._host_ports
        return info

    @property
    def uid(self) -> str:
        return self.pod.metadata.uid

    @property
    def key(self) -> str:
        return self.pod.key

    @property
    def request(self) -> Amounts:
        """What the pod asks for before it is on a node, in milli-units; a status it may have is not looked at."""
        if self._request is None:
            self._request = pod_requests(self.pod, use_status=False)
        return self._request

    @property
    def scored_request(self) -> tuple[tuple[str, int], ...]:
        """(resource, milli-units) as the scores of NodeResourcesFit see the request: containers that name no CPU or no
        memory count as 100m and 200Mi, and pod-level requests do not count.

        Source: calculatePodResourceRequest in pkg/scheduler/framework/plugins/noderesources, with the options that
        NewFit leaves at their zero values.
        """
        if self._scored_request is None:
            amounts = pod_requests(self.pod, use_status=False, defaults=DEFAULT_NON_MISSING, pod_level=False)
            self._scored_request = tuple(sorted(amounts.items()))
        return self._scored_request

    @property
    def charge(self) -> tuple[Amounts, int, int]:
        """What the pod takes of a node: (amounts in milli-units, milli-CPU for scoring, bytes for scoring).

        Scoring assumes 100m and 200Mi for containers that say nothing.
        """
        if self._charge is None:
            amounts = pod_requests(self.pod, use_status=True)
            defaults = non_missing_defaults(self.pod, amounts)
            non_zero = pod_requests(self.pod, use_status=True, defaults=defaults) if defaults else amounts
            self._charge = (
                amounts,
                to_milli(non_zero.get("cpu", 0)),
                to_units(non_zero.get("memory", 0)),
            )
        return self._charge

    def charged_columns(self, resources: Vocabulary[str]) -> dict[int, int]:
        """The amounts of ``charge`` as resource row → column value, without zeros."""
        if self._charged_columns is None or self._charged_columns[0] is not resources:
            columns = column_amounts(self.charge[0], resources)
            self._charged_columns = (resources, {row: amount for row, amount in columns.items() if amount})
        return self._charged_columns[1]

    @property
    def host_ports(self) -> tuple[HostPort, ...]:
        """Host ports of containers and sidecars; plain init containers hold none.

        Source: GetHostPorts in pkg/scheduler/util/utils.go.
        """
        if self._host_ports is None:
            spec = self.pod.spec
            containers = (*(c for c in spec.init_containers if c.is_sidecar), *spec.containers)
            self._host_ports = tuple(
                (port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
                for container in containers
                for port in container.ports
                if port.host_port > 0
            )
        return self._host_ports
