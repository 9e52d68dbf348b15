"""A pod with everything about it that is computed once: its demand, its host ports, what plugins derive from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from kube_pyscheduler.columns.demand import Demand, demand_of
from kube_pyscheduler.objects.pod import Pod

T = TypeVar("T")

HostPort = tuple[str, str, int]
"""(host IP, protocol, port)."""


class PodInfo:
    """A pod as the scheduler handles it. Immutable in effect; derived values are computed on first use and kept."""

    __slots__ = ("_demand", "_derived", "_host_ports", "pod")

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self._demand: Demand | None = None
        self._host_ports: tuple[HostPort, ...] | None = None
        self._derived: dict[Callable[[Pod], Any], Any] | None = None

    def on_node(self, pod: Pod) -> PodInfo:
        """The same pod with ``spec.nodeName``: what was computed stays."""
        info = PodInfo(pod)
        info._demand = self._demand
        info._host_ports = self._host_ports
        info._derived = self._derived
        return info

    def derived(self, compute: Callable[[Pod], T]) -> T:
        """``compute(pod)``, asked once and kept. Only for functions that do not look at ``spec.nodeName``."""
        if self._derived is None:
            self._derived = {}
        if compute not in self._derived:
            self._derived[compute] = compute(self.pod)
        known: T = self._derived[compute]
        return known

    @property
    def uid(self) -> str:
        return self.pod.metadata.uid

    @property
    def key(self) -> str:
        return self.pod.key

    @property
    def demand(self) -> Demand:
        """What the pod asks for and takes. Raises QuantityError, which decoding has ruled out."""
        if self._demand is None:
            self._demand = demand_of(self.pod)
        return self._demand

    @property
    def host_ports(self) -> tuple[HostPort, ...]:
        """Host ports of containers and sidecars; plain init containers hold none.

        Source: GetHostPorts in pkg/scheduler/util/utils.go.
        """
        if self._host_ports is None:
            spec = self.pod.spec
            containers = spec.containers
            if spec.init_containers:
                containers = (*(c for c in spec.init_containers if c.is_sidecar), *containers)
            self._host_ports = tuple(
                [
                    (port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
                    for container in containers
                    for port in container.ports
                    if port.host_port > 0
                ]
            )
        return self._host_ports
