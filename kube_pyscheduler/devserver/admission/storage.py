"""Defaults and checks of volumes, claims and classes.

Source: pkg/apis/core/v1/defaults.go, pkg/apis/storage/v1/defaults.go, plugin/pkg/admission/storage.
"""

from __future__ import annotations

from typing import Any

from kube_pyscheduler.devserver.admission.pod_affinity_validation import check_node_selector
from kube_pyscheduler.devserver.problems import Problems
from kube_pyscheduler.devserver.resources import STORAGE_CLASSES
from kube_pyscheduler.devserver.store import Store
from kube_pyscheduler.objects.quantity import parse_milli

Object = dict[str, Any]

DEFAULT_CLASS_ANNOTATION = "storageclass.kubernetes.io/is-default-class"
_ACCESS_MODES = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")


def default_volume(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")


def default_claim(obj: Object) -> None:
    obj.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def admit_claim(store: Store, obj: Object) -> None:
    """A claim that names no class gets the default one, the newest when there are several."""
    if "storageClassName" in obj["spec"]:
        return
    defaults = [
        found
        for found in store.list_objects(STORAGE_CLASSES)
        if (found["metadata"].get("annotations") or {}).get(DEFAULT_CLASS_ANNOTATION) == "true"
    ]
    if defaults:
        defaults.sort(key=lambda found: str(found["metadata"]["name"]))
        newest = max(defaults, key=lambda found: str(found["metadata"]["creationTimestamp"]))
        obj["spec"]["storageClassName"] = newest["metadata"]["name"]


def default_class(obj: Object) -> None:
    obj.setdefault("reclaimPolicy", "Delete")
    obj.setdefault("volumeBindingMode", "Immediate")


def check_volume(obj: Object, problems: Problems) -> None:
    spec = obj["spec"]
    _check_access_modes(spec, problems)
    capacity = (spec.get("capacity") or {}).get("storage")
    if capacity is None:
        problems.required("spec.capacity")
    elif parse_milli(capacity) <= 0:
        problems.invalid("spec.capacity[storage]", capacity, "must be greater than zero")
    required = (spec.get("nodeAffinity") or {}).get("required")
    if required is not None:
        check_node_selector(required, "spec.nodeAffinity.required", problems)


def _check_access_modes(spec: Object, problems: Problems) -> None:
    modes = spec.get("accessModes") or ()
    if not modes:
        problems.required("spec.accessModes", "at least 1 access mode is required")
    for mode in modes:
        problems.one_of("spec.accessModes", mode, _ACCESS_MODES)


def check_claim(obj: Object, problems: Problems) -> None:
    spec = obj["spec"]
    _check_access_modes(spec, problems)
    wanted = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if wanted is None:
        problems.required("spec.resources[storage]")
    elif parse_milli(wanted) <= 0:
        problems.invalid("spec.resources[storage]", wanted, "must be greater than zero")


def check_claim_update(new: Object, old: Object, problems: Problems) -> None:
    """A claim's spec is fixed but for its size, its attributes class, and the volume it gets once."""
    after, before = dict(new["spec"]), dict(old["spec"])
    for key in ("resources", "volumeAttributesClassName"):
        after.pop(key, None)
        before.pop(key, None)
    if not before.get("volumeName"):
        after.pop("volumeName", None)
    if "storageClassName" not in before:
        after.pop("storageClassName", None)
    if after != before:
        problems.forbidden(
            "spec",
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
        )


def check_class(obj: Object, problems: Problems) -> None:
    if not obj.get("provisioner"):
        problems.required("provisioner")
    problems.one_of("reclaimPolicy", obj.get("reclaimPolicy"), ("Delete", "Retain"))
    problems.one_of("volumeBindingMode", obj.get("volumeBindingMode"), ("Immediate", "WaitForFirstConsumer"))


def check_class_update(new: Object, old: Object, problems: Problems) -> None:
    for key in ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"):
        if new.get(key) != old.get(key):
            problems.forbidden(key, f"updates to {key} are forbidden.")
