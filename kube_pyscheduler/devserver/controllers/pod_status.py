"""The status that a kubelet reports for a pod. All functions build new objects.

Source: pkg/kubelet/kubelet_pods.go and pkg/kubelet/status/generate.go.
"""

from __future__ import annotations

from kube_pyscheduler.devserver.controllers.writing import with_condition
from kube_pyscheduler.devserver.store import Object

_ALL_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
_NOT_READY_ANY_MORE = ("PodReadyToStartContainers", "Ready", "ContainersReady")


def running(pod: Object, *, host_ip: str, pod_ip: str, now: str) -> Object:
    """All containers run and are ready, init containers have completed."""
    spec = pod["spec"]
    status = _with_conditions(pod, dict.fromkeys(_ALL_CONDITIONS, "True"), "", now)
    running_state = {"running": {"startedAt": now}}
    ip = host_ip if spec.get("hostNetwork") else pod_ip
    status.update(
        phase="Running",
        hostIP=host_ip,
        hostIPs=[{"ip": host_ip}],
        podIP=ip,
        podIPs=[{"ip": ip}],
        startTime=now,
        containerStatuses=[_container(c, running_state, ready=True) for c in spec["containers"]],
    )
    if spec.get("initContainers"):
        completed = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}}
        status["initContainerStatuses"] = [
            _container(c, running_state if c.get("restartPolicy") == "Always" else completed, ready=True)
            for c in spec["initContainers"]
        ]
    return status


def finished(pod: Object, *, exit_code: int, now: str) -> Object:
    """All containers have exited: Succeeded for exit code 0, else Failed."""
    good = exit_code == 0
    conditions = dict.fromkeys(_NOT_READY_ANY_MORE, "False")
    status = _with_conditions(pod, conditions, "PodCompleted" if good else "PodFailed", now)
    status["phase"] = "Succeeded" if good else "Failed"
    started = status.get("startTime", now)
    terminated = {
        "terminated": {
            "exitCode": exit_code,
            "reason": "Completed" if good else "Error",
            "startedAt": started,
            "finishedAt": now,
        }
    }
    for key in ("containerStatuses", "initContainerStatuses"):
        if key in status:
            status[key] = [
                {**entry, "state": terminated, "ready": False, "started": False}
                if "running" in entry["state"]
                else entry
                for entry in status[key]
            ]
    return status


def rejected(pod: Object, reason: str, message: str, now: str) -> Object:
    """The node did not take the pod; nothing of it ever ran."""
    status = dict(pod.get("status") or {})
    status.update(phase="Failed", reason=reason, message=f"Pod was rejected: {message}", startTime=now)
    return status


def _with_conditions(pod: Object, values: dict[str, str], reason: str, now: str) -> Object:
    status: Object = dict(pod.get("status") or {})
    conditions = status.get("conditions")
    generation = pod["metadata"].get("generation")
    for name, value in values.items():
        condition = {"type": name, "status": value, "lastProbeTime": None}
        if reason and value == "False":
            condition["reason"] = reason
        if generation:
            condition["observedGeneration"] = generation
        conditions = with_condition(conditions, condition, now)
    status["conditions"] = conditions
    if generation:
        status["observedGeneration"] = generation
    return status


def _container(container: Object, state: Object, *, ready: bool) -> Object:
    image = container.get("image", "")
    return {
        "name": container["name"],
        "image": image,
        "imageID": f"hollow://{image}",
        "containerID": f"hollow://{container['name']}",
        "ready": ready,
        "started": "running" in state,
        "restartCount": 0,
        "state": state,
        "lastState": {},
    }
