"""``pods/binding``: the one way a pod gets its node.

Source: pkg/registry/core/pod/storage/storage.go and plugin/pkg/admission/podtopologylabels.
"""

from __future__ import annotations

from typing import Any

from kube_pyscheduler.devserver import errors
from kube_pyscheduler.devserver.admission.pod_admission import topology_labels
from kube_pyscheduler.devserver.resources import PODS
from kube_pyscheduler.devserver.store import Object, Store


def bind(store: Store, namespace: str, name: str, binding: Object, now: str, *, dry_run: bool = False) -> Object:
    """Assign a pod to the node that the Binding names; the pod as stored.

    404 when the pod is absent; 409 when it has a node, is being deleted, is gated, or is not the one (by UID or
    resourceVersion) that the Binding means.
    """
    target = binding.get("target") or {}
    given = binding.get("metadata") or {}
    node_name = _check_target(target)
    pod = store.get(PODS, namespace, name)
    if pod is None:
        raise errors.not_found("pods", name)
    metadata, spec = pod["metadata"], pod["spec"]
    _check_preconditions(namespace, name, given, metadata)
    if metadata.get("deletionTimestamp"):
        raise _refused(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise _refused(name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise _refused(name, f"pod {name} has non-empty .spec.schedulingGates")
    labels = {**(given.get("labels") or {}), **topology_labels(store, node_name)}
    metadata = dict(metadata)
    if labels:
        metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
    if annotations := given.get("annotations"):
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **annotations}
    bound = {
        **pod,
        "metadata": metadata,
        "spec": {**spec, "nodeName": node_name},
        "status": _scheduled(pod.get("status") or {}, now),
    }
    return bound if dry_run else store.update(PODS, bound).obj


def _check_target(target: dict[str, Any]) -> str:
    kind, node_name = target.get("kind") or "Node", target.get("name") or ""
    if kind != "Node":
        raise errors.internal(f'target.kind: Unsupported value: "{kind}": supported values: "<empty>", "Node"')
    if not node_name:
        raise errors.internal("target.name: Required value")
    return str(node_name)


def _check_preconditions(namespace: str, name: str, given: dict[str, Any], metadata: dict[str, Any]) -> None:
    for key, title in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        wanted = given.get(key)
        if wanted and wanted != metadata[key]:
            raise errors.conflict(
                "pods",
                name,
                f"StorageError: invalid object, Code: 4, Key: /registry/pods/{namespace}/{name}, ResourceVersion: 0, "
                f"AdditionalErrorMsg: Precondition failed: {title} in precondition: {wanted}, "
                f"{title} in object meta: {metadata[key]}",
            )


def _refused(name: str, why: str) -> errors.StatusError:
    return errors.conflict("pods/binding", name, why)


def _scheduled(status: Object, now: str) -> Object:
    """The status with the condition PodScheduled=True and without a nominated node."""
    conditions: list[Object] = []
    found = False
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled":
            found = True
            since = condition.get("lastTransitionTime", now) if condition["status"] == "True" else now
            conditions.append(_condition(since))
        else:
            conditions.append(condition)
    if not found:
        conditions.append(_condition(now))
    result = {key: value for key, value in status.items() if key != "nominatedNodeName"}
    result["conditions"] = conditions
    return result


def _condition(since: str) -> Object:
    return {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": since}
