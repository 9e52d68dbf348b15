"""What may change in an existing pod, by subresource.

Source: ValidatePodUpdate in pkg/apis/core/validation/validation.go and pkg/registry/core/pod/strategy.go.
"""

from __future__ import annotations

from typing import Any

from kube_pyscheduler.devserver.problems import Problems
from kube_pyscheduler.devserver.store import copy_object

Object = dict[str, Any]

_UPDATABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
    "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it "
    "was previously negative)"
)


def check_pod_update(new: Object, old: Object, problems: Problems) -> None:
    """The spec of a pod is fixed but for a few fields; gated pods may narrow their node selection."""
    spec, before = new["spec"], old["spec"]
    if spec == before:
        return
    for key in ("containers", "initContainers"):
        if len(spec.get(key) or ()) != len(before.get(key) or ()):
            problems.forbidden(f"spec.{key}", "pod updates may not add or remove containers")
            return
    _check_tolerations(spec.get("tolerations") or [], before.get("tolerations") or [], problems)
    _check_gates(spec.get("schedulingGates") or [], before.get("schedulingGates") or [], problems)
    munged = copy_object(spec)
    for key in ("containers", "initContainers"):
        for container, original in zip(munged.get(key) or (), before.get(key) or (), strict=True):
            if container.get("image"):
                container["image"] = original.get("image")
    for key in ("tolerations", "schedulingGates"):
        _restore(munged, before, key)
    _munge_deadline(munged, before, problems)
    if before.get("schedulingGates"):
        _munge_node_selection(munged, before, problems)
    if munged != before:
        changed = sorted(key for key in munged.keys() | before.keys() if munged.get(key) != before.get(key))
        problems.forbidden(
            "spec", f"pod updates may not change fields other than {_UPDATABLE}\nchanged: {', '.join(changed)}"
        )


def _restore(munged: Object, before: Object, key: str) -> None:
    if key in before:
        munged[key] = before[key]
    else:
        munged.pop(key, None)


def _check_tolerations(new: list[Object], old: list[Object], problems: Problems) -> None:
    def comparable(toleration: Object) -> Object:
        return {k: v for k, v in toleration.items() if k != "tolerationSeconds"}

    kept = [comparable(toleration) for toleration in new]
    if any(comparable(toleration) not in kept for toleration in old):
        problems.forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")


def _check_gates(new: list[Object], old: list[Object], problems: Problems) -> None:
    known = {gate.get("name") for gate in old}
    for index, gate in enumerate(new):
        if gate.get("name") not in known:
            problems.forbidden(
                f"spec.schedulingGates[{index}].name",
                f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
            )


def _munge_deadline(munged: Object, before: Object, problems: Problems) -> None:
    new, old = munged.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    if old is not None and new is None:
        problems.invalid("spec.activeDeadlineSeconds", None, "must not update from a positive integer to nil value")
    elif old is not None and new is not None and new > old:
        problems.invalid("spec.activeDeadlineSeconds", new, "must be less than or equal to previous value")
    _restore(munged, before, "activeDeadlineSeconds")


def _munge_node_selection(munged: Object, before: Object, problems: Problems) -> None:
    """A gated pod may add to its nodeSelector and to its required node affinity."""
    old_selector = before.get("nodeSelector") or {}
    new_selector = munged.get("nodeSelector") or {}
    if any(new_selector.get(key) != value for key, value in old_selector.items()):
        problems.invalid(
            "spec.nodeSelector",
            new_selector,
            "only additions to spec.nodeSelector are allowed (no mutations or deletions)",
        )
    _restore(munged, before, "nodeSelector")
    old_affinity = before.get("affinity") or {}
    new_affinity = munged.get("affinity") or {}
    old_terms = _required_terms(old_affinity)
    if old_terms and not _narrower(_required_terms(new_affinity), old_terms):
        problems.invalid(
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms",
            _required_terms(new_affinity),
            "only additions are allowed (no mutations or deletions)",
        )
    restored = {key: value for key, value in new_affinity.items() if key != "nodeAffinity"}
    if "nodeAffinity" in old_affinity:
        restored["nodeAffinity"] = old_affinity["nodeAffinity"]
    if restored or "affinity" in before:
        munged["affinity"] = restored
    else:
        munged.pop("affinity", None)


def _required_terms(affinity: Object) -> list[Object]:
    required = (affinity.get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return list(required.get("nodeSelectorTerms") or ())


def _narrower(new: list[Object], old: list[Object]) -> bool:
    """The same terms, each with at least the requirements it had."""
    if len(new) != len(old):
        return False
    return all(
        all(requirement in (after.get(key) or ()) for requirement in before.get(key) or ())
        for after, before in zip(new, old, strict=True)
        for key in ("matchExpressions", "matchFields")
    )


def resized(new: Object, old: Object) -> Object:
    """The pod that ``pods/resize`` stores: the old one with the resources and resize policies of the new one."""
    result = copy_object(old)
    spec = result["spec"]
    for key in ("containers", "initContainers"):
        given = {container.get("name"): container for container in new["spec"].get(key) or ()}
        if key in spec:
            spec[key] = [_resized_container(given.get(c["name"], c), c) for c in spec[key]]
    if "resources" in new["spec"]:
        spec["resources"] = new["spec"]["resources"]
    return result


def _resized_container(new: Object, old: Object) -> Object:
    result = dict(old)
    for key in ("resources", "resizePolicy"):
        if key in new:
            result[key] = new[key]
    return result


def check_resize(new: Object, old: Object, problems: Problems) -> None:
    """Source: ValidatePodResize: CPU and memory only, no change of the QoS class."""
    for key in ("containers", "initContainers"):
        pairs = zip(new["spec"].get(key) or (), old["spec"].get(key) or (), strict=True)
        for index, (after, before) in enumerate(pairs):
            for field in ("requests", "limits"):
                new_values = (after.get("resources") or {}).get(field) or {}
                old_values = (before.get("resources") or {}).get(field) or {}
                changed = {k for k in new_values.keys() | old_values.keys() if new_values.get(k) != old_values.get(k)}
                if changed - {"cpu", "memory"}:
                    problems.forbidden(
                        f"spec.{key}[{index}].resources.{field}", "only cpu and memory resources are mutable"
                    )
