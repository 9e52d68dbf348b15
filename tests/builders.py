"""Objects for tests in one line each, decoded as the daemon decodes them."""

from __future__ import annotations

from typing import Any

import msgspec

from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.objects import kinds
from kube_pyscheduler.objects.group import PodDisruptionBudget
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod


def make_pod(
    name: str = "p",
    *,
    namespace: str = "default",
    uid: str = "",
    node: str = "",
    requests: dict[str, Any] | None = None,
    containers: list[dict[str, Any]] | None = None,
    labels: dict[str, str] | None = None,
    priority: int = 0,
    scheduler: str = "pysched",
    status: dict[str, Any] | None = None,
    metadata: dict[str, Any] | None = None,
    **spec: Any,
) -> Pod:
    """A pod with one container that asks for ``requests`` (default 100m and 64Mi), unless ``containers`` are given.
    Further keywords are fields of ``spec`` as the API names them."""
    wanted = {"cpu": "100m", "memory": "64Mi"} if requests is None else requests
    document = {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid or f"uid-{namespace}-{name}",
            "labels": labels or {},
            **(metadata or {}),
        },
        "spec": {
            "schedulerName": scheduler,
            "priority": priority,
            "nodeName": node,
            "containers": containers
            if containers is not None
            else [{"name": "c", "image": "app:1", "resources": {"requests": wanted}}],
            **spec,
        },
        "status": {"phase": "Running" if node else "Pending", **(status or {})},
    }
    pod: Pod = kinds.POD.decoder.decode(msgspec.json.encode(document))
    return pod


def make_info(*args: Any, **kwargs: Any) -> PodInfo:
    """As ``make_pod``, wrapped."""
    return PodInfo(make_pod(*args, **kwargs))


def make_node(
    name: str = "n1",
    *,
    labels: dict[str, str] | None = None,
    allocatable: dict[str, Any] | None = None,
    taints: list[dict[str, str]] | None = None,
    unschedulable: bool = False,
    images: list[dict[str, Any]] | None = None,
    features: list[str] | None = None,
    metadata: dict[str, Any] | None = None,
) -> Node:
    """A node with 4 CPUs, 8Gi and room for 110 pods, labelled with its host name."""
    document = {
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "labels": {"kubernetes.io/hostname": name, **(labels or {})},
            **(metadata or {}),
        },
        "spec": {"unschedulable": unschedulable, "taints": taints or []},
        "status": {
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110", **(allocatable or {})},
            "images": images or [],
            "declaredFeatures": features or [],
        },
    }
    node: Node = kinds.NODE.decoder.decode(msgspec.json.encode(document))
    return node


def make_budget(
    name: str,
    selector: dict[str, Any] | None,
    *,
    allowed: int = 0,
    disrupted: list[str] | None = None,
    namespace: str = "default",
) -> PodDisruptionBudget:
    """A PodDisruptionBudget. ``selector``: a label selector as the API has it."""
    document = {
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}"},
        "spec": {"selector": selector},
        "status": {
            "disruptionsAllowed": allowed,
            "disruptedPods": dict.fromkeys(disrupted or [], "2026-01-01T00:00:00Z"),
        },
    }
    budget: PodDisruptionBudget = kinds.POD_DISRUPTION_BUDGET.decoder.decode(msgspec.json.encode(document))
    return budget
