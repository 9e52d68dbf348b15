"""ReplicaSets: as many pods as asked for.

Pods are never adopted or released by label. Source: pkg/controller/replicaset/replica_set.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from kube_pyscheduler.devserver.controllers import pods
from kube_pyscheduler.devserver.controllers.environment import Environment
from kube_pyscheduler.devserver.controllers.owned_pods import OwnedPods, PodSet
from kube_pyscheduler.devserver.controllers.writing import (
    pod_from_template,
    with_condition,
    without_zeros,
    write_status,
)
from kube_pyscheduler.devserver.errors import StatusError
from kube_pyscheduler.devserver.resources import PODS, REPLICA_SETS, Resource
from kube_pyscheduler.devserver.store import DELETED, Change, Key, Object, Subscriber
from kube_pyscheduler.devserver.times import parse_time

BATCH = 50
"""Pods made or deleted at a stretch."""
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


class ReplicaSets:
    """The controller of all ReplicaSets."""

    def __init__(self, env: Environment, owned: OwnedPods) -> None:
        self._env = env
        self._owned = owned
        owned.listen("ReplicaSet", lambda key, _pod: env.agenda.soon(self._sync, key))

    def subscriptions(self) -> Iterable[tuple[Resource, Subscriber]]:
        yield REPLICA_SETS, self._follow

    def _follow(self, change: Change) -> None:
        if change.kind != DELETED:
            self._env.agenda.soon(self._sync, change.new.key)

    def _sync(self, key: Key) -> None:
        replica_set = self._env.store.get(REPLICA_SETS, *key)
        if replica_set is None:
            return
        group = self._owned.of(replica_set)
        failure: StatusError | None = None
        if not pods.is_terminating(replica_set):
            try:
                self._scale(key, replica_set, group)
            except StatusError as error:
                failure = error
        self._report(key, replica_set, failure)
        if failure is not None:
            raise failure

    def _scale(self, key: Key, replica_set: Object, group: PodSet) -> None:
        missing = replica_set["spec"]["replicas"] - group.active
        if missing > 0:
            pod = pod_from_template(replica_set["spec"]["template"], replica_set)
            for _ in range(min(missing, BATCH)):
                self._env.registry.create(PODS, pod)
        elif missing < 0:
            for pod in _least_missed(group)[: min(-missing, BATCH)]:
                self._env.registry.delete(PODS, key[0], pod["metadata"]["name"])
        if abs(missing) > BATCH:
            self._env.agenda.soon(self._sync, key)

    def _report(self, key: Key, replica_set: Object, failure: StatusError | None) -> None:
        group = self._owned.of(replica_set)
        status: Object = {
            "replicas": group.active,
            "fullyLabeledReplicas": group.active,
            "readyReplicas": group.ready,
            "availableReplicas": self._available(key, replica_set, group),
            "terminatingReplicas": group.terminating,
            "observedGeneration": replica_set["metadata"].get("generation", 0),
        }
        old = [c for c in replica_set["status"].get("conditions") or () if c["type"] != "ReplicaFailure"]
        if failure is not None:
            condition = {
                "type": "ReplicaFailure",
                "status": "True",
                "reason": "FailedCreate",
                "message": failure.message,
            }
            before = replica_set["status"].get("conditions")
            status["conditions"] = with_condition(before, condition, self._env.registry.now())
        elif old:
            status["conditions"] = old
        write_status(self._env.store, REPLICA_SETS, replica_set, without_zeros(status, "replicas"))

    def _available(self, key: Key, replica_set: Object, group: PodSet) -> int:
        wait = replica_set["spec"].get("minReadySeconds", 0)
        if not wait:
            return group.ready
        now = self._env.clock.now()
        times = [pods.seconds_until_available(p, wait, now) for p in group.pods.values() if pods.is_active(p)]
        if pending := [time for time in times if time]:
            self._env.agenda.later(min(pending), self._sync, key)
        return times.count(0.0)


def _least_missed(group: PodSet) -> list[Object]:
    """The active pods, those first that go first when there are too many."""
    active = group.select(pods.is_active)
    on_node = Counter(pod["spec"].get("nodeName", "") for pod in active)

    def rank(pod: Object) -> tuple[Any, ...]:
        node = pod["spec"].get("nodeName", "")
        ready = pods.condition(pod, "Ready")
        since = parse_time(ready["lastTransitionTime"]) if ready is not None and ready["status"] == "True" else 0.0
        return (
            bool(node),
            _PHASES.get(pods.phase(pod), 0),
            since > 0,
            _deletion_cost(pod),
            -on_node[node],
            -since,
            -parse_time(pod["metadata"]["creationTimestamp"]),
        )

    return sorted(active, key=rank)


def _deletion_cost(pod: Object) -> int:
    """0 without a cost or with one that is no integer."""
    try:
        return int((pod["metadata"].get("annotations") or {}).get(_DELETION_COST, "0"))
    except ValueError:
        return 0
