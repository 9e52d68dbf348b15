"""Where pods of a DaemonSet belong, and how they are tied to their node.

Source: pkg/controller/daemon/daemon_controller.go and util/daemonset_util.go.
"""

from __future__ import annotations

import msgspec

from kube_pyscheduler.devserver.store import Object
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import PodSpec
from kube_pyscheduler.objects.tolerations import has_untolerated, tolerated

_ALWAYS_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_NETWORK_UNAVAILABLE = ("node.kubernetes.io/network-unavailable", "NoSchedule")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class Placement:
    """The template of one generation of a DaemonSet, read once."""

    def __init__(self, template: Object) -> None:
        self._spec = _with_tolerations(template["spec"])
        self._typed = msgspec.convert(self._spec, PodSpec)

    def judge(self, node: Object) -> tuple[bool, bool]:
        """Whether a pod should run on the node, and whether one that is there may stay."""
        typed = msgspec.convert({"metadata": node["metadata"], "spec": node.get("spec") or {}}, Node)
        spec, labels = self._typed, typed.metadata.labels
        if spec.node_name not in ("", typed.name):
            return False, False
        if any(labels.get(key) != value for key, value in spec.node_selector.items()):
            return False, False
        affinity = spec.affinity.node_affinity if spec.affinity is not None else None
        required = affinity.required if affinity is not None else None
        if required is not None and not required.matches(labels, typed.name):
            return False, False
        taints = typed.spec.taints
        if not has_untolerated(spec.tolerations, taints):
            return True, True
        stays = all(taint.effect != "NoExecute" or tolerated(spec.tolerations, taint) for taint in taints)
        return False, stays

    def pod_spec(self, node_name: str) -> Object:
        """The spec of the pod for that node: only there it fits."""
        affinity = self._spec.get("affinity") or {}
        node_affinity = affinity.get("nodeAffinity") or {}
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node_name]}]}
        tied = {**node_affinity, _REQUIRED: {"nodeSelectorTerms": [term]}}
        return {**self._spec, "affinity": {**affinity, "nodeAffinity": tied}}


def target_node(pod: Object) -> str:
    """The node that a pod of a DaemonSet is on or is meant for; "" when it can't be told."""
    spec = pod["spec"]
    if spec.get("nodeName"):
        return str(spec["nodeName"])
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field.get("key") == "metadata.name" and len(field.get("values") or ()) == 1:
                return str(field["values"][0])
    return ""


def _with_tolerations(spec: Object) -> Object:
    tolerations = list(spec.get("tolerations") or ())
    wanted = [*_ALWAYS_TOLERATED, *([_NETWORK_UNAVAILABLE] if spec.get("hostNetwork") else [])]
    for key, effect in wanted:
        toleration = {"key": key, "operator": "Exists", "effect": effect}
        if toleration not in tolerations:
            tolerations.append(toleration)
    return {**spec, "tolerations": tolerations}
