"""Validation of metadata, the same for all kinds but for the rule of the name.

Source: staging/src/k8s.io/apimachinery/pkg/api/validation/objectmeta.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kube_pyscheduler.devserver.admission import names
from kube_pyscheduler.devserver.problems import Problems
from kube_pyscheduler.devserver.resources import Resource

Metadata = dict[str, Any]
NameRule = Callable[[str], str]

MAX_ANNOTATION_BYTES = 256 * 1024

_NAME_RULES: dict[str, NameRule] = {
    "namespaces": names.label_name,
    "services": names.dns_1035,
    "roles.rbac.authorization.k8s.io": names.path_segment,
    "rolebindings.rbac.authorization.k8s.io": names.path_segment,
    "clusterroles.rbac.authorization.k8s.io": names.path_segment,
    "clusterrolebindings.rbac.authorization.k8s.io": names.path_segment,
}


def check_metadata(resource: Resource, metadata: Metadata, problems: Problems) -> None:
    """Everything that holds for new and for changed metadata."""
    rule = _NAME_RULES.get(resource.key, names.subdomain)
    if why := rule(metadata["name"]):
        problems.invalid("metadata.name", metadata["name"], why)
    if metadata.get("namespace") and not resource.namespaced:
        problems.forbidden("metadata.namespace", "not allowed on this type")
    check_labels(metadata.get("labels") or {}, "metadata.labels", problems)
    _check_annotations(metadata.get("annotations") or {}, problems)
    _check_owners(metadata.get("ownerReferences") or (), problems)
    for finalizer in metadata.get("finalizers") or ():
        if why := names.qualified(finalizer):
            problems.invalid("metadata.finalizers", finalizer, why)


def check_metadata_update(new: Metadata, old: Metadata, problems: Problems) -> None:
    """What may not change once the object exists."""
    if old.get("deletionTimestamp"):
        added = [f for f in new.get("finalizers") or () if f not in (old.get("finalizers") or ())]
        if added:
            problems.forbidden(
                "metadata.finalizers",
                f"no new finalizers can be added if the object is being deleted, found new finalizers {added}",
            )


def check_labels(labels: dict[str, str], path: str, problems: Problems) -> None:
    for key, value in labels.items():
        if why := names.qualified(key):
            problems.invalid(path, key, why)
        if why := names.label_value(value):
            problems.invalid(path, value, why)


def _check_annotations(annotations: dict[str, str], problems: Problems) -> None:
    for key in annotations:
        if why := names.qualified(key.lower()):
            problems.invalid("metadata.annotations", key, why)
    if sum(len(key) + len(value) for key, value in annotations.items()) > MAX_ANNOTATION_BYTES:
        problems.too_long("metadata.annotations", MAX_ANNOTATION_BYTES)


def _check_owners(owners: Any, problems: Problems) -> None:
    controller = ""
    for index, owner in enumerate(owners):
        path = f"metadata.ownerReferences[{index}]"
        for key in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(key):
                problems.invalid(f"{path}.{key}", owner.get(key, ""), "must not be empty")
        if owner.get("controller"):
            if controller:
                problems.invalid(
                    "metadata.ownerReferences",
                    owner.get("name"),
                    "Only one reference can have Controller set to true. "
                    f'Found "true" in references for {controller} and {owner.get("kind")}/{owner.get("name")}',
                )
            controller = f"{owner.get('kind')}/{owner.get('name')}"
