"""Small writes that all controllers share."""

from __future__ import annotations

import zlib
from typing import Any

import msgspec

from kube_pyscheduler.devserver.resources import Resource
from kube_pyscheduler.devserver.store import Object, Store

_SAFE = "bcdfghjklmnpqrstvwxz2456789"
"""Source: staging/src/k8s.io/apimachinery/pkg/util/rand/rand.go."""


def write_status(store: Store, resource: Resource, current: Object, status: Object) -> Object:
    """Replace the status; nothing is written when it is the same. The object as stored.

    Goes around the registry: what controllers make needs neither defaults nor checks, and pods are many.
    """
    return store.update(resource, {**current, "status": status}).obj


def controller_reference(owner: Object) -> Object:
    """An owner reference that makes ``owner`` the controller."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def pod_from_template(template: Object, owner: Object) -> Object:
    """A pod of an owner by its template, with a generated name. What it holds is shared with the template."""
    given = template.get("metadata") or {}
    metadata: Object = {
        "namespace": owner["metadata"]["namespace"],
        "generateName": owner["metadata"]["name"] + "-",
        "ownerReferences": [controller_reference(owner)],
    }
    for key in ("labels", "annotations", "finalizers"):
        if given.get(key):
            metadata[key] = given[key]
    return {"metadata": metadata, "spec": template["spec"]}


def with_condition(conditions: list[Object] | None, new: Object, now: str) -> list[Object]:
    """The conditions with ``new`` in place of the one of its type; lastTransitionTime moves only with the status."""
    result = []
    stamped = {**new, "lastTransitionTime": now}
    for old in conditions or ():
        if old["type"] != new["type"]:
            result.append(old)
        elif old["status"] == new["status"]:
            stamped["lastTransitionTime"] = old.get("lastTransitionTime", now)
    return [*result, stamped]


def without_zeros(status: Object, *keep: str) -> Object:
    """The status as Go writes it: fields that are 0 or empty are left out but for those named."""
    return {key: value for key, value in status.items() if value or key in keep}


def resolve(value: Any, total: int, *, round_up: bool) -> int:
    """An integer, or a percentage of ``total``. Source: apimachinery/pkg/util/intstr/intstr.go."""
    if isinstance(value, str):
        scaled = int(value.removesuffix("%")) * total
        return -(-scaled // 100) if round_up else scaled // 100
    return int(value or 0)


def template_hash(template: Object, collisions: int = 0) -> str:
    """A short text, the same for equal templates, fit for a name and a label."""
    text = msgspec.json.encode([template, collisions], order="deterministic")
    return "".join(_SAFE[int(digit) % len(_SAFE)] for digit in str(zlib.crc32(text)))
