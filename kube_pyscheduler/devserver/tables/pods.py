"""The columns of pods. Source: printPod in pkg/printers/internalversion/printers.go."""

from __future__ import annotations

from typing import Any

from kube_pyscheduler.devserver.tables.cells import NONE, path, since
from kube_pyscheduler.devserver.tables.column import AGE, NAME, Column, wide

Object = dict[str, Any]


def _terminated_reason(terminated: Object) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


class _Summary:
    """What a pod's row says about its containers."""

    def __init__(self, pod: Object) -> None:
        spec, status = pod.get("spec") or {}, pod.get("status") or {}
        self._conditions = status.get("conditions") or ()
        sidecars = {c["name"] for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"}
        self.total = len(spec.get("containers") or ()) + len(sidecars)
        self.ready = 0
        self.restarts = 0
        self.last_restart = ""
        self.reason = status.get("reason") or status.get("phase") or ""
        if any(c.get("type") == "PodScheduled" and c.get("reason") == "SchedulingGated" for c in self._conditions):
            self.reason = "SchedulingGated"
        count = len(spec.get("initContainers") or ())
        initializing = self._init_containers(status.get("initContainerStatuses") or (), sidecars, count)
        if not initializing or self._is_true("Initialized"):
            self._containers(status.get("containerStatuses") or ())
        if pod["metadata"].get("deletionTimestamp"):
            if status.get("reason") == "NodeLost":
                self.reason = "Unknown"
            elif status.get("phase") not in ("Succeeded", "Failed"):
                self.reason = "Terminating"

    def _is_true(self, kind: str) -> bool:
        return any(c.get("type") == kind and c.get("status") == "True" for c in self._conditions)

    def _count_restarts(self, container: Object) -> None:
        self.restarts += container.get("restartCount", 0)
        finished = path(container, "lastState", "terminated", "finishedAt", default="")
        self.last_restart = max(self.last_restart, finished)

    def _init_containers(self, statuses: Any, sidecars: set[str], count: int) -> bool:
        """Whether an init container holds the pod back; restarts then include those of all init containers."""
        all_restarts = 0
        for index, container in enumerate(statuses):
            all_restarts += container.get("restartCount", 0)
            state = container.get("state") or {}
            terminated, waiting = state.get("terminated"), state.get("waiting") or {}
            sidecar = container.get("name") in sidecars
            if sidecar:
                self._count_restarts(container)
            if terminated is not None and terminated.get("exitCode", 0) == 0:
                continue
            if sidecar and container.get("started"):
                self.ready += bool(container.get("ready"))
                continue
            if terminated is not None:
                self.reason = "Init:" + _terminated_reason(terminated)
            elif waiting.get("reason") not in (None, "", "PodInitializing"):
                self.reason = f"Init:{waiting['reason']}"
            else:
                self.reason = f"Init:{index}/{count}"
            if not self._is_true("Initialized"):
                self.restarts = all_restarts
            return True
        return False

    def _containers(self, statuses: Any) -> None:
        running, failure = False, ""
        for container in reversed(statuses):
            self._count_restarts(container)
            state = container.get("state") or {}
            if path(state, "waiting", "reason"):
                self.reason = state["waiting"]["reason"]
            elif state.get("terminated") is not None:
                self.reason = _terminated_reason(state["terminated"])
                if state["terminated"].get("exitCode", 0) != 0:
                    failure = self.reason
            elif container.get("ready") and state.get("running") is not None:
                running = True
                self.ready += 1
        if self.reason == "Completed":
            if running and self._is_true("Ready"):
                self.reason = "Running"
            elif failure:
                self.reason = failure
            elif running:
                self.reason = "NotReady"

    def restarts_text(self, now: float) -> str:
        if self.restarts and self.last_restart:
            return f"{self.restarts} ({since(self.last_restart, now)} ago)"
        return str(self.restarts)


def _ready(pod: Object, _: float) -> str:
    summary = _Summary(pod)
    return f"{summary.ready}/{summary.total}"


def _address(pod: Object, _: float) -> str:
    addresses = path(pod, "status", "podIPs") or ()
    return str(addresses[0].get("ip") or NONE) if addresses else NONE


def _readiness_gates(pod: Object, _: float) -> str:
    gates = path(pod, "spec", "readinessGates") or ()
    if not gates:
        return NONE
    true = {c["type"] for c in path(pod, "status", "conditions") or () if c.get("status") == "True"}
    return f"{sum(gate.get('conditionType') in true for gate in gates)}/{len(gates)}"


PODS = (
    NAME,
    Column("Ready", _ready),
    Column("Status", lambda pod, _: _Summary(pod).reason),
    Column("Restarts", lambda pod, now: _Summary(pod).restarts_text(now)),
    AGE,
    wide("IP", _address),
    wide("Node", lambda pod, _: path(pod, "spec", "nodeName") or NONE),
    wide("Nominated Node", lambda pod, _: path(pod, "status", "nominatedNodeName") or NONE),
    wide("Readiness Gates", _readiness_gates),
)
