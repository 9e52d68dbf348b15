"""Which volume suits a claim: pure functions.

Source: component-helpers/storage/volume/pv_helpers.go and pkg/controller/volume/persistentvolume/index.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from kube_pyscheduler.devserver.selectors import matches_label_selector
from kube_pyscheduler.devserver.store import Key, Object
from kube_pyscheduler.objects.quantity import parse_milli

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"


def annotation(obj: Object, name: str) -> str | None:
    value = (obj["metadata"].get("annotations") or {}).get(name)
    return None if value is None else str(value)


def class_of(obj: Object) -> str:
    """The StorageClass of a claim or volume; "" for none."""
    beta = annotation(obj, _BETA_CLASS)
    return beta if beta is not None else str(obj["spec"].get("storageClassName") or "")


def claim_key(volume: Object) -> Key | None:
    """The claim that a volume is reserved for or bound to."""
    reference = volume["spec"].get("claimRef")
    return None if reference is None else (reference.get("namespace", ""), reference.get("name", ""))


def is_for(volume: Object, claim: Object) -> bool:
    """Whether the volume is reserved for this claim or bound to it."""
    reference = volume["spec"].get("claimRef")
    if reference is None or claim_key(volume) != (claim["metadata"]["namespace"], claim["metadata"]["name"]):
        return False
    return reference.get("uid", "") in ("", claim["metadata"]["uid"])


def requested(claim: Object) -> int:
    """Bytes asked for, in thousandths."""
    return parse_milli(claim["spec"]["resources"]["requests"]["storage"])


def capacity(volume: Object) -> int:
    return parse_milli(volume["spec"]["capacity"]["storage"])


def mismatch(volume: Object, claim: Object) -> str:
    """Why a volume that a claim names can't be its volume; "" when it can."""
    if capacity(volume) < requested(claim):
        return "requested PV is too small"
    if class_of(volume) != class_of(claim):
        return "storageClassName does not match"
    if volume["spec"].get("volumeMode", "Filesystem") != claim["spec"].get("volumeMode", "Filesystem"):
        return "incompatible volumeMode"
    if not _offers_modes(volume, claim):
        return "incompatible accessMode"
    return ""


def best_match(claim: Object, reserved: Iterable[Object], free: Iterable[Object]) -> Object | None:
    """The volume reserved for the claim, else the smallest of the free ones that suits it."""
    for volume in reserved:
        if is_for(volume, claim) and capacity(volume) >= requested(claim) and _same_mode(volume, claim):
            return volume
    suiting = [volume for volume in free if _suits(volume, claim)]
    return min(suiting, key=lambda volume: (capacity(volume), volume["metadata"]["name"]), default=None)


def _suits(volume: Object, claim: Object) -> bool:
    if mismatch(volume, claim) or not _same_attributes(volume, claim):
        return False
    selector = claim["spec"].get("selector")
    return selector is None or matches_label_selector(selector, volume["metadata"].get("labels") or {})


def _same_mode(volume: Object, claim: Object) -> bool:
    return bool(volume["spec"].get("volumeMode", "Filesystem") == claim["spec"].get("volumeMode", "Filesystem"))


def _same_attributes(volume: Object, claim: Object) -> bool:
    mine, theirs = (obj["spec"].get("volumeAttributesClassName") or "" for obj in (claim, volume))
    return bool(mine == theirs)


def _offers_modes(volume: Object, claim: Object) -> bool:
    return set(claim["spec"]["accessModes"]) <= set(volume["spec"]["accessModes"])
