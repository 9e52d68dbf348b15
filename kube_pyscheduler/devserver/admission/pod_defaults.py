"""Defaults of pods and pod templates, filled into an object that the caller owns.

Source: pkg/apis/core/v1/defaults.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kube_pyscheduler.objects.quantity import parse_milli

Object = dict[str, Any]

_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_DEFAULT_MODE = 0o644
_OVERCOMMIT = ("cpu", "memory", "ephemeral-storage")


def default_template_spec(spec: Object) -> None:
    """The defaults that also show in templates of Deployments and Jobs."""
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("securityContext", {})
    spec.setdefault("terminationGracePeriodSeconds", 30)
    if not spec.get("schedulerName"):
        spec["schedulerName"] = "default-scheduler"
    for container in containers(spec):
        _default_container(container)
    if spec.get("hostNetwork"):
        for container in containers(spec):
            for port in container.get("ports") or ():
                if not port.get("hostPort") and port.get("containerPort"):
                    port["hostPort"] = port["containerPort"]
    for volume in spec.get("volumes") or ():
        _default_volume(volume)
    for constraint in spec.get("topologySpreadConstraints") or ():
        constraint.setdefault("maxSkew", 1)
        constraint.setdefault("whenUnsatisfiable", "DoNotSchedule")


def default_pod_spec(spec: Object) -> None:
    """The defaults of a pod itself: those of a template, and requests from limits."""
    default_template_spec(spec)
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        resources = container.get("resources") or {}
        if limits := resources.get("limits"):
            resources["requests"] = {**limits, **(resources.get("requests") or {})}
    _default_pod_level_requests(spec)
    spec.setdefault("enableServiceLinks", True)


def containers(spec: Object) -> Iterator[Object]:
    """All containers of a pod spec: init, regular and ephemeral."""
    for key in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(key) or ()


def _default_container(container: Object) -> None:
    if not container.get("imagePullPolicy"):
        image = container.get("image") or ""
        tag = image.rpartition("/")[2].partition(":")[2] or "latest"
        container["imagePullPolicy"] = "Always" if tag == "latest" and "@" not in image else "IfNotPresent"
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    container.setdefault("resources", {})
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for key in ("livenessProbe", "readinessProbe", "startupProbe"):
        if probe := container.get(key):
            for name, value in _PROBE.items():
                probe.setdefault(name, value)
            if http := probe.get("httpGet"):
                http.setdefault("path", "/")
                http.setdefault("scheme", "HTTP")
    for entry in container.get("env") or ():
        if reference := (entry.get("valueFrom") or {}).get("fieldRef"):
            reference.setdefault("apiVersion", "v1")


def _default_volume(volume: Object) -> None:
    if len(volume) == 1:
        volume["emptyDir"] = {}
    for source in ("secret", "configMap", "downwardAPI", "projected"):
        if source in volume:
            volume[source].setdefault("defaultMode", _DEFAULT_MODE)
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")
    if template := (volume.get("ephemeral") or {}).get("volumeClaimTemplate"):
        template.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def _default_pod_level_requests(spec: Object) -> None:
    """Pod-level requests follow what the containers ask for, else the pod-level limits."""
    resources = spec.get("resources") or {}
    limits = resources.get("limits")
    if not limits:
        return
    requests = dict(resources.get("requests") or {})
    asked = _container_requests(spec)
    for name, amount in asked.items():
        if name in _OVERCOMMIT or name.startswith("hugepages-"):
            requests.setdefault(name, f"{amount}m" if amount % 1000 else str(amount // 1000))
    for name, amount in limits.items():
        if name not in requests:
            requests[name] = amount
    resources["requests"] = requests


def _container_requests(spec: Object) -> dict[str, int]:
    """What the containers request together, in milli-units; sidecars run beside everything after them."""

    def requests(container: Object) -> dict[str, int]:
        listed = (container.get("resources") or {}).get("requests") or {}
        return {name: parse_milli(value) for name, value in listed.items()}

    def add(total: dict[str, int], more: dict[str, int]) -> dict[str, int]:
        return {name: total.get(name, 0) + more.get(name, 0) for name in total.keys() | more.keys()}

    running: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.get("initContainers") or ():
        needed = add(running, requests(container))
        if container.get("restartPolicy") == "Always":
            running = needed
        peak = {name: max(peak.get(name, 0), needed.get(name, 0)) for name in peak.keys() | needed.keys()}
    for container in spec.get("containers") or ():
        running = add(running, requests(container))
    return {name: max(running.get(name, 0), peak.get(name, 0)) for name in running.keys() | peak.keys()}


def qos_class(spec: Object) -> str:
    """Guaranteed, Burstable or BestEffort. Source: pkg/apis/core/helper/qos/qos.go."""
    if spec.get("resources") and any(spec["resources"].get(key) for key in ("requests", "limits")):
        owners = [spec]
    else:
        owners = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    guaranteed = True
    any_given = False
    for owner in owners:
        resources = owner.get("resources") or {}
        requests = {k: v for k, v in (resources.get("requests") or {}).items() if k in ("cpu", "memory") and v != "0"}
        limits = {k: v for k, v in (resources.get("limits") or {}).items() if k in ("cpu", "memory") and v != "0"}
        any_given = any_given or bool(requests or limits)
        if len(limits) < 2 or any(requests.get(k, v) != v for k, v in limits.items()):
            guaranteed = False
    if not any_given:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"
