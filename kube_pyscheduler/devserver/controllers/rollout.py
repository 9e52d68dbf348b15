"""The arithmetic of a Deployment's rollout: pure functions of sizes and specs.

Source: pkg/controller/deployment/rolling.go, sync.go and util/deployment_util.go.
"""

from __future__ import annotations

from typing import NamedTuple

from kube_pyscheduler.devserver.controllers.writing import resolve, with_condition, without_zeros
from kube_pyscheduler.devserver.store import Object


class Size(NamedTuple):
    """Replicas that a ReplicaSet is to have, and those of them that are available."""

    replicas: int
    available: int


class Plan(NamedTuple):
    """The next replicas of the new ReplicaSet (None: as they are) and of the old ones, in the order given."""

    new: int | None
    old: list[int]


def size_of(replica_set: Object) -> Size:
    return Size(replica_set["spec"]["replicas"], (replica_set.get("status") or {}).get("availableReplicas", 0))


def max_surge(deployment: Object) -> int:
    """How many pods may be there beyond the wanted ones."""
    rolling = deployment["spec"]["strategy"].get("rollingUpdate") or {}
    return resolve(rolling.get("maxSurge"), deployment["spec"]["replicas"], round_up=True)


def max_unavailable(deployment: Object) -> int:
    """How many of the wanted pods may be missing; one when nothing else would let the rollout proceed."""
    strategy = deployment["spec"]["strategy"]
    replicas: int = deployment["spec"]["replicas"]
    if strategy["type"] != "RollingUpdate":
        return 0
    rolling = strategy.get("rollingUpdate") or {}
    unavailable = resolve(rolling.get("maxUnavailable"), replicas, round_up=False)
    if unavailable == 0 and max_surge(deployment) == 0:
        unavailable = 1
    return min(unavailable, replicas)


def plan(deployment: Object, new: Size, old: list[Size]) -> Plan:
    """One step: the new ReplicaSet grows as far as the surge allows, else old ones shrink."""
    wanted = deployment["spec"]["replicas"]
    unchanged = [size.replicas for size in old]
    total = new.replicas + sum(unchanged)
    if new.replicas > wanted:
        return Plan(wanted, unchanged)
    room = wanted + max_surge(deployment) - total
    if new.replicas < wanted and room > 0:
        return Plan(new.replicas + min(room, wanted - new.replicas), unchanged)
    return Plan(None, _shrunk(wanted - max_unavailable(deployment), new, old, total))


def _shrunk(min_available: int, new: Size, old: list[Size], total: int) -> list[int]:
    """Old replicas that may go: unhealthy ones first, then as many as keep enough available ones."""
    left = [size.replicas for size in old]
    spare = total - min_available - (new.replicas - new.available)
    if spare <= 0:
        return left
    for index, size in enumerate(old):
        unhealthy = max(0, min(spare, size.replicas - size.available))
        left[index] -= unhealthy
        spare -= unhealthy
    surplus = new.available + sum(size.available for size in old) - min_available
    for index in range(len(left)):
        gone = max(0, min(left[index], surplus))
        left[index] -= gone
        surplus -= gone
    return left


def status(deployment: Object, new: Object | None, replica_sets: list[Object], now: str) -> Object:
    """The status of a Deployment with these ReplicaSets, ``new`` being that of the current template."""

    def total(key: str, sets: list[Object]) -> int:
        return sum(int(s["status"].get(key, 0)) for s in sets)

    available = total("availableReplicas", replica_sets)
    result: Object = {
        "observedGeneration": deployment["metadata"].get("generation", 0),
        "replicas": total("replicas", replica_sets),
        "updatedReplicas": 0 if new is None else total("replicas", [new]),
        "readyReplicas": total("readyReplicas", replica_sets),
        "availableReplicas": available,
        "unavailableReplicas": max(0, sum(s["spec"]["replicas"] for s in replica_sets) - available),
        "terminatingReplicas": total("terminatingReplicas", replica_sets),
    }
    conditions = (deployment.get("status") or {}).get("conditions")
    conditions = with_condition(conditions, _available(deployment, available), now)
    conditions = with_condition(conditions, _progressing(deployment, new, result), now)
    result["conditions"] = [{"lastUpdateTime": c["lastTransitionTime"], **c} for c in conditions]
    return without_zeros(result)


def is_complete(deployment: Object, status: Object) -> bool:
    """Whether all pods are of the current template and available."""
    wanted = deployment["spec"]["replicas"]
    return all(status.get(key, 0) == wanted for key in ("updatedReplicas", "replicas", "availableReplicas"))


def _available(deployment: Object, available: int) -> Object:
    enough = available >= deployment["spec"]["replicas"] - max_unavailable(deployment)
    return {
        "type": "Available",
        "status": "True" if enough else "False",
        "reason": "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
        "message": f"Deployment {'has' if enough else 'does not have'} minimum availability.",
    }


def _progressing(deployment: Object, new: Object | None, status: Object) -> Object:
    if deployment["spec"].get("paused"):
        return {
            "type": "Progressing",
            "status": "Unknown",
            "reason": "DeploymentPaused",
            "message": "Deployment is paused",
        }
    subject = f'ReplicaSet "{new["metadata"]["name"]}"' if new is not None else "Deployment"
    if is_complete(deployment, status):
        reason, message = "NewReplicaSetAvailable", f"{subject} has successfully progressed."
    else:
        reason, message = "ReplicaSetUpdated", f"{subject} is progressing."
    return {"type": "Progressing", "status": "True", "reason": reason, "message": message}
