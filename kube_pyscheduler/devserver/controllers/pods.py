"""What controllers ask about a pod.

Source: pkg/api/v1/pod/util.go and pkg/controller/controller_utils.go.
"""

from __future__ import annotations

from kube_pyscheduler.devserver.store import Object
from kube_pyscheduler.devserver.times import parse_time


def condition(obj: Object, name: str) -> Object | None:
    """The condition of that type in an object's status."""
    for found in (obj.get("status") or {}).get("conditions") or ():
        if found["type"] == name:
            return dict(found)
    return None


def phase(pod: Object) -> str:
    return str((pod.get("status") or {}).get("phase", ""))


def is_terminal(pod: Object) -> bool:
    """Finished for good, well or badly."""
    return phase(pod) in ("Succeeded", "Failed")


def is_terminating(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def is_active(pod: Object) -> bool:
    """Running or still to run."""
    return not is_terminal(pod) and not is_terminating(pod)


def is_ready(pod: Object) -> bool:
    found = condition(pod, "Ready")
    return found is not None and found["status"] == "True"


def seconds_until_available(pod: Object, min_ready_seconds: int, now: float) -> float | None:
    """0 when the pod has been ready for long enough; None while it is not ready. ``now`` is in epoch seconds."""
    found = condition(pod, "Ready")
    if found is None or found["status"] != "True":
        return None
    if not min_ready_seconds:
        return 0.0
    return max(0.0, parse_time(found["lastTransitionTime"]) + min_ready_seconds - now)
