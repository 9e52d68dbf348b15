"""The checks of a pod spec that clients and tests rely on.

Source: pkg/apis/core/validation/validation.go; far from all of it.
"""

from __future__ import annotations

from typing import Any

from kube_pyscheduler.devserver.admission import names
from kube_pyscheduler.devserver.admission.metadata import check_labels
from kube_pyscheduler.devserver.admission.pod_affinity_validation import check_affinity, check_selector
from kube_pyscheduler.devserver.problems import Problems
from kube_pyscheduler.objects.quantity import parse_milli

Object = dict[str, Any]

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_STANDARD_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})


def check_pod(pod: Object, problems: Problems) -> None:
    """A new pod."""
    spec = pod["spec"]
    check_pod_spec(spec, "spec", problems)
    if spec.get("nodeName") and spec.get("schedulingGates"):
        problems.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")
    if spec.get("ephemeralContainers"):
        problems.forbidden("spec.ephemeralContainers", "cannot be set on create")


def check_pod_spec(spec: Object, path: str, problems: Problems) -> None:
    """A pod spec of a pod or of a template, after defaulting."""
    if not spec.get("containers"):
        problems.required(f"{path}.containers")
    seen: set[str] = set()
    for key in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(key) or ()):
            _check_container(container, f"{path}.{key}[{index}]", seen, problems)
    _check_host_ports(spec, path, problems)
    problems.one_of(f"{path}.restartPolicy", spec.get("restartPolicy"), ("Always", "OnFailure", "Never"))
    problems.one_of(
        f"{path}.dnsPolicy", spec.get("dnsPolicy"), ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
    )
    problems.one_of(
        f"{path}.preemptionPolicy",
        spec.get("preemptionPolicy"),
        ("PreemptLowerPriority", "Never"),
        required=False,
    )
    if why := names.subdomain(spec["nodeName"]) if spec.get("nodeName") else "":
        problems.invalid(f"{path}.nodeName", spec["nodeName"], why)
    check_labels(spec.get("nodeSelector") or {}, f"{path}.nodeSelector", problems)
    check_affinity(spec.get("affinity") or {}, f"{path}.affinity", problems)
    check_tolerations(spec.get("tolerations") or (), f"{path}.tolerations", problems)
    _check_spread(spec.get("topologySpreadConstraints") or (), f"{path}.topologySpreadConstraints", problems)
    _check_named(spec.get("schedulingGates") or (), f"{path}.schedulingGates", names.qualified, problems)
    _check_volumes(spec, path, problems)
    if resources := spec.get("resources"):
        _check_resources(resources, f"{path}.resources", problems)


def _check_named(items: Any, path: str, rule: Any, problems: Problems) -> None:
    seen: set[str] = set()
    for index, item in enumerate(items):
        name = item.get("name", "")
        if not name:
            problems.required(f"{path}[{index}].name")
        elif why := rule(name):
            problems.invalid(f"{path}[{index}].name", name, why)
        elif name in seen:
            problems.duplicate(f"{path}[{index}].name", name)
        seen.add(name)


def _check_container(container: Object, path: str, seen: set[str], problems: Problems) -> None:
    name = container.get("name", "")
    if not name:
        problems.required(f"{path}.name")
    elif why := names.label_name(name):
        problems.invalid(f"{path}.name", name, why)
    elif name in seen:
        problems.duplicate(f"{path}.name", name)
    seen.add(name)
    image = container.get("image", "")
    if not image:
        problems.required(f"{path}.image")
    elif image != image.strip():
        problems.invalid(f"{path}.image", image, "must not have leading or trailing whitespace")
    problems.one_of(f"{path}.imagePullPolicy", container.get("imagePullPolicy"), ("Always", "IfNotPresent", "Never"))
    for index, port in enumerate(container.get("ports") or ()):
        where = f"{path}.ports[{index}]"
        number = port.get("containerPort", 0)
        if not 0 < number < 65536:
            problems.invalid(f"{where}.containerPort", number, "must be between 1 and 65535, inclusive")
        if not 0 <= port.get("hostPort", 0) < 65536:
            problems.invalid(f"{where}.hostPort", port["hostPort"], "must be between 1 and 65535, inclusive")
        problems.one_of(f"{where}.protocol", port.get("protocol"), ("TCP", "UDP", "SCTP"))
    _check_resources(container.get("resources") or {}, f"{path}.resources", problems)


def _check_resources(resources: Object, path: str, problems: Problems) -> None:
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for key, values in (("limits", limits), ("requests", requests)):
        for name, value in values.items():
            where = f"{path}.{key}[{name}]"
            if why := names.qualified(name):
                problems.invalid(f"{path}.{key}", name, why)
            elif "/" not in name and name not in _STANDARD_RESOURCES and not name.startswith("hugepages-"):
                problems.invalid(f"{path}.{key}", name, "must be a standard resource type or fully qualified")
            if parse_milli(value) < 0:
                problems.invalid(where, value, "must be greater than or equal to 0")
            elif "/" in name and parse_milli(value) % 1000:
                problems.invalid(where, value, "must be an integer")
    for name, value in requests.items():
        if name in limits:
            if parse_milli(value) > parse_milli(limits[name]):
                problems.invalid(
                    f"{path}.requests", value, f"must be less than or equal to {name} limit of {limits[name]}"
                )
            elif _extended(name) and parse_milli(value) != parse_milli(limits[name]):
                problems.invalid(f"{path}.requests", value, f"must be equal to {name} limit of {limits[name]}")
        elif _extended(name):
            problems.required(f"{path}.limits", "Limit must be set for non overcommitable resources")


def _extended(name: str) -> bool:
    return "/" in name or name.startswith("hugepages-")


def _check_host_ports(spec: Object, path: str, problems: Problems) -> None:
    seen: set[tuple[str, str, int]] = set()
    for index, container in enumerate(spec.get("containers") or ()):
        for number, port in enumerate(container.get("ports") or ()):
            if host_port := port.get("hostPort"):
                key = (port.get("protocol", "TCP"), port.get("hostIP", ""), host_port)
                if key in seen:
                    problems.duplicate(
                        f"{path}.containers[{index}].ports[{number}].hostPort", f"{key[0]}/{key[1]}/{key[2]}"
                    )
                seen.add(key)


def check_tolerations(tolerations: Any, path: str, problems: Problems) -> None:
    for index, toleration in enumerate(tolerations):
        where = f"{path}[{index}]"
        key, operator = toleration.get("key", ""), toleration.get("operator") or "Equal"
        if key and (why := names.qualified(key)):
            problems.invalid(f"{where}.key", key, why)
        if not key and operator != "Exists":
            problems.invalid(
                f"{where}.operator",
                operator,
                'operator must be Exists when `key` is empty, which means "match all values and all keys"',
            )
        problems.one_of(f"{where}.operator", operator, ("Equal", "Exists", "Lt", "Gt"))
        if operator == "Exists" and toleration.get("value"):
            problems.invalid(
                f"{where}.operator", toleration["value"], "value must be empty when `operator` is 'Exists'"
            )
        problems.one_of(f"{where}.effect", toleration.get("effect"), _EFFECTS, required=False)
        if toleration.get("tolerationSeconds") is not None and toleration.get("effect") != "NoExecute":
            problems.invalid(
                f"{where}.effect",
                toleration.get("effect", ""),
                "effect must be 'NoExecute' when `tolerationSeconds` is set",
            )


def _check_spread(constraints: Any, path: str, problems: Problems) -> None:
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(constraints):
        where = f"{path}[{index}]"
        if constraint.get("maxSkew", 0) <= 0:
            problems.invalid(f"{where}.maxSkew", constraint.get("maxSkew", 0), "must be greater than zero")
        if not constraint.get("topologyKey"):
            problems.required(f"{where}.topologyKey", "can not be empty")
        when = constraint.get("whenUnsatisfiable", "")
        problems.one_of(f"{where}.whenUnsatisfiable", when, ("DoNotSchedule", "ScheduleAnyway"))
        pair = (constraint.get("topologyKey", ""), when)
        if pair in seen:
            problems.duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", f"{{{pair[0]}, {pair[1]}}}")
        seen.add(pair)
        minimum = constraint.get("minDomains")
        if minimum is not None and minimum <= 0:
            problems.invalid(f"{where}.minDomains", minimum, "must be greater than 0")
        if minimum is not None and when != "DoNotSchedule":
            problems.invalid(
                f"{where}.minDomains",
                minimum,
                "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not " + when,
            )
        for key in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            problems.one_of(f"{where}.{key}", constraint.get(key), ("Ignore", "Honor"), required=False)
        check_selector(constraint.get("labelSelector") or {}, f"{where}.labelSelector", problems)


def _check_volumes(spec: Object, path: str, problems: Problems) -> None:
    volumes = spec.get("volumes") or ()
    _check_named(volumes, f"{path}.volumes", names.label_name, problems)
    known = {volume.get("name") for volume in volumes}
    for index, volume in enumerate(volumes):
        sources = [key for key in volume if key != "name"]
        if len(sources) > 1:
            problems.forbidden(f"{path}.volumes[{index}].{sources[1]}", "may not specify more than 1 volume type")
        claim = volume.get("persistentVolumeClaim")
        if claim is not None and not claim.get("claimName"):
            problems.required(f"{path}.volumes[{index}].persistentVolumeClaim.claimName")
    for key in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(key) or ()):
            for number, mount in enumerate(container.get("volumeMounts") or ()):
                if mount.get("name") not in known:
                    problems.add(
                        "FieldValueNotFound",
                        f'Not found: "{mount.get("name", "")}"',
                        f"{path}.{key}[{index}].volumeMounts[{number}].name",
                    )
