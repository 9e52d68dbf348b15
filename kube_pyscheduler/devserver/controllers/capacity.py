"""What of a node's allocatable is in use, as its kubelet counts it before it takes a pod.

Source: pkg/kubelet/lifecycle/predicate.go.
"""

from __future__ import annotations

import msgspec

from kube_pyscheduler.devserver.store import Object
from kube_pyscheduler.objects.pod import Pod, PodSpec
from kube_pyscheduler.objects.pod_requests import Amounts, pod_requests
from kube_pyscheduler.objects.quantity import parse_milli, to_units

_FIRST = ("pods", "cpu", "memory", "ephemeral-storage")
"""The order in which a kubelet looks; extended resources come after these."""
_ONE_POD = 1000


def requests_of(pod: Object) -> Amounts:
    """What the pod asks for, in milli-units, itself included as one of "pods"."""
    spec = msgspec.convert(pod["spec"], PodSpec)
    return {**pod_requests(Pod(spec=spec), use_status=False), "pods": _ONE_POD}


class NodeUse:
    """The pods that one node has taken and the sum of their requests, in milli-units."""

    __slots__ = ("_pods", "used")

    def __init__(self) -> None:
        self._pods: dict[str, Amounts] = {}
        self.used: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def take(self, uid: str, amounts: Amounts) -> None:
        """Count a pod; one that is counted already is counted anew."""
        self.release(uid)
        self._pods[uid] = amounts
        for name, amount in amounts.items():
            self.used[name] = self.used.get(name, 0) + amount

    def release(self, uid: str) -> None:
        for name, amount in self._pods.pop(uid, {}).items():
            self.used[name] -= amount

    def why_not(self, node: Object, amounts: Amounts) -> tuple[str, str] | None:
        """The reason and message with which the node refuses a pod, or None. Unknown extended resources are let
        through: the node does not manage them."""
        allocatable = (node.get("status") or {}).get("allocatable") or {}
        for name in (*_FIRST, *sorted(amounts.keys() - set(_FIRST))):
            wanted = amounts.get(name, 0)
            if not wanted or (name not in _FIRST and name not in allocatable):
                continue
            used, capacity = self.used.get(name, 0), parse_milli(allocatable.get(name, "0"))
            if used + wanted > capacity:
                show = int if name == "cpu" else to_units
                message = (
                    f"Node didn't have enough resource: {name}, requested: {show(wanted)}, used: {show(used)}, "
                    f"capacity: {show(capacity)}"
                )
                return f"OutOf{name}", message
        return None
