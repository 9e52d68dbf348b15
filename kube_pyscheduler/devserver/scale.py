"""The ``scale`` subresource: replicas of a workload seen as an autoscaling/v1 Scale."""

from __future__ import annotations

from kube_pyscheduler.devserver.errors import Cause, invalid
from kube_pyscheduler.devserver.selectors import selector_text
from kube_pyscheduler.devserver.store import Object


def to_scale(obj: Object) -> Object:
    """The Scale of a workload object."""
    metadata = obj["metadata"]
    keys = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: Object = {"replicas": (obj.get("status") or {}).get("replicas", 0)}
    if selector := selector_text((obj.get("spec") or {}).get("selector")):
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in keys if key in metadata},
        "spec": {"replicas": (obj.get("spec") or {}).get("replicas", 0)},
        "status": status,
    }


def scaled(obj: Object, scale: Object) -> Object:
    """The workload with the replicas of a Scale, under the Scale's resourceVersion and UID. 422."""
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    given = scale.get("metadata") or {}
    if isinstance(replicas, bool) or not isinstance(replicas, int) or replicas < 0:
        why = f"Invalid value: {replicas}: must be greater than or equal to 0"
        raise invalid(
            "Scale", "autoscaling", obj["metadata"]["name"], [Cause("FieldValueInvalid", why, "spec.replicas")]
        )
    metadata = {**obj["metadata"], "resourceVersion": given.get("resourceVersion", "")}
    if given.get("uid"):
        metadata["uid"] = given["uid"]
    return {**obj, "metadata": metadata, "spec": {**obj["spec"], "replicas": replicas}}
