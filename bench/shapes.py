"""Pod specs by workload name: what besides the container makes scheduling harder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Shape = Callable[[int], dict[str, Any]]


def _selector(number: int) -> dict[str, Any]:
    return {"matchLabels": {"app": f"app-{number % 10}"}}


def _spread(number: int, when: str) -> dict[str, Any]:
    constraint = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": when,
        "labelSelector": _selector(number),
    }
    return {"topologySpreadConstraints": [constraint]}


def _pod_affinity(number: int, kind: str, *, required: bool, key: str) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": _selector(number)}
    if required:
        return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    weighted = [{"weight": 10, "podAffinityTerm": term}]
    return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}}


def _node_affinity(number: int) -> dict[str, Any]:
    zones = [f"zone-{number % 3}", f"zone-{(number + 1) % 3}"]
    term = {"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": zones}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"affinity": {"nodeAffinity": required}}


HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"

SHAPES: dict[str, Shape] = {
    "basic": lambda _number: {},
    "node-affinity": _node_affinity,
    "hard-spread": lambda number: _spread(number, "DoNotSchedule"),
    "soft-spread": lambda number: _spread(number, "ScheduleAnyway"),
    "required-anti-affinity": lambda number: _pod_affinity(number, "podAntiAffinity", required=True, key=HOST),
    "preferred-affinity": lambda number: _pod_affinity(number, "podAffinity", required=False, key=ZONE),
    "preferred-anti-affinity": lambda number: _pod_affinity(number, "podAntiAffinity", required=False, key=HOST),
}
SHAPES["mixed"] = lambda number: list(SHAPES.values())[number % 7](number)
