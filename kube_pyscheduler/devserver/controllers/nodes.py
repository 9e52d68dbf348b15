"""Taints that follow from a node's state, and the end of pods whose node is gone.

Source: pkg/controller/nodelifecycle/node_lifecycle_controller.go and pkg/controller/podgc/gc_controller.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from kube_pyscheduler.devserver.controllers import pods
from kube_pyscheduler.devserver.controllers.environment import Environment
from kube_pyscheduler.devserver.controllers.writing import with_condition, write_status
from kube_pyscheduler.devserver.options import DeleteOptions
from kube_pyscheduler.devserver.resources import NODES, PODS, Resource
from kube_pyscheduler.devserver.store import DELETED, Change, Object, Subscriber

_CONDITION_TAINTS = {
    ("Ready", "False"): "node.kubernetes.io/not-ready",
    ("Ready", "Unknown"): "node.kubernetes.io/unreachable",
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
}
_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_MANAGED = frozenset({_UNSCHEDULABLE, *_CONDITION_TAINTS.values()})
QUARANTINE_SECONDS = 40.0
"""How long a node must be gone before its pods are given up."""


class NodeKeeper:
    """Keeps NoSchedule taints in step with conditions and cordons, and removes orphaned pods."""

    def __init__(self, env: Environment) -> None:
        self._env = env

    def subscriptions(self) -> Iterable[tuple[Resource, Subscriber]]:
        yield NODES, self._follow

    def _follow(self, change: Change) -> None:
        name = change.new.key[1]
        if change.kind == DELETED:
            self._env.agenda.later(QUARANTINE_SECONDS, self._collect, name)
        else:
            self._env.agenda.soon(self._taint, name)

    def _taint(self, name: str) -> None:
        node = self._env.store.get(NODES, "", name)
        if node is None:
            return
        spec = node.get("spec") or {}
        taints = spec.get("taints") or []
        wanted = _wanted(node)
        present = {t["key"] for t in taints if t["effect"] == "NoSchedule" and t["key"] in _MANAGED}
        if wanted == present:
            return
        now = self._env.registry.now()
        kept = [t for t in taints if t["effect"] != "NoSchedule" or t["key"] not in _MANAGED - wanted]
        added = [{"key": key, "effect": "NoSchedule", "timeAdded": now} for key in sorted(wanted - present)]
        self._env.registry.update(NODES, {**node, "spec": {**spec, "taints": [*kept, *added]}})

    def _collect(self, name: str) -> None:
        if self._env.store.get(NODES, "", name) is not None:
            return
        now = self._env.registry.now()
        for pod in self._env.store.list_objects(PODS):
            if pod["spec"].get("nodeName") != name:
                continue
            if not pods.is_terminal(pod):
                _give_up(self._env, pod, now)
            metadata = pod["metadata"]
            options = DeleteOptions(grace_seconds=0, uid=metadata["uid"])
            self._env.registry.delete(PODS, metadata["namespace"], metadata["name"], options)


def _wanted(node: Object) -> set[str]:
    conditions = (node.get("status") or {}).get("conditions") or ()
    keys = {_CONDITION_TAINTS.get((c["type"], c["status"]), "") for c in conditions} - {""}
    if (node.get("spec") or {}).get("unschedulable"):
        keys.add(_UNSCHEDULABLE)
    return keys


def _give_up(env: Environment, pod: Object, now: str) -> None:
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "DeletionByPodGC",
        "message": "PodGC: node no longer exists",
    }
    status = pod.get("status") or {}
    conditions = with_condition(status.get("conditions"), condition, now)
    write_status(env.store, PODS, pod, {**status, "phase": "Failed", "conditions": conditions})
