"""PodDisruptionBudgets: how many of their pods may be evicted now.

Each budget knows its pods; a change of a pod touches the budgets of its namespace only.
Source: pkg/controller/disruption/disruption.go.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from kube_pyscheduler.devserver.controllers import pods
from kube_pyscheduler.devserver.controllers.environment import Environment
from kube_pyscheduler.devserver.controllers.owned_pods import controller_of
from kube_pyscheduler.devserver.controllers.writing import resolve, with_condition, write_status
from kube_pyscheduler.devserver.resources import (
    DEPLOYMENTS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Resource,
    builtin,
)
from kube_pyscheduler.devserver.selectors import matches_label_selector
from kube_pyscheduler.devserver.store import DELETED, Change, Key, Object, Subscriber
from kube_pyscheduler.devserver.times import parse_time

DELETION_TIMEOUT = 120.0
"""Seconds in which an evicted pod should begin to go; after that it counts as healthy again."""
_SCALES = {
    "ReplicaSet": REPLICA_SETS,
    "StatefulSet": STATEFUL_SETS,
    "ReplicationController": builtin("replicationcontrollers"),
    "Deployment": DEPLOYMENTS,
}


class _Unscalable(Exception):
    """A percentage is asked of pods whose number nobody states."""


class _Members:
    """The pods of one budget. ``healthy`` holds the names of those that are ready and not being deleted."""

    __slots__ = ("controllers", "healthy", "pods")

    def __init__(self) -> None:
        self.pods: dict[str, tuple[str, str] | None] = {}
        """Pod name → kind and name of its controller."""
        self.controllers: Counter[tuple[str, str]] = Counter()
        self.healthy: set[str] = set()

    def put(self, name: str, pod: Object | None) -> bool:
        """Replace a pod, None removes it; whether there was anything to do."""
        known = name in self.pods
        if pod is None and not known:
            return False
        old = self.pods.pop(name, None)
        if old is not None:
            self.controllers -= Counter([old])
        self.healthy.discard(name)
        if pod is not None:
            owner = controller_of(pod)
            self.pods[name] = reference = None if owner is None else (owner["kind"], owner["name"])
            if reference is not None:
                self.controllers[reference] += 1
            if not pods.is_terminating(pod) and pods.is_ready(pod):
                self.healthy.add(name)
        return True


class DisruptionBudgets:
    """The controller of all PodDisruptionBudgets."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._budgets: dict[str, dict[str, _Members]] = defaultdict(dict)
        """Namespace → budget name → its pods."""

    def subscriptions(self) -> Iterable[tuple[Resource, Subscriber]]:
        yield POD_DISRUPTION_BUDGETS, self._follow
        yield PODS, self._follow_pod
        for resource in _SCALES.values():
            yield resource, self._follow_scale

    def _follow(self, change: Change) -> None:
        namespace, name = change.new.key
        if change.kind == DELETED:
            self._budgets[namespace].pop(name, None)
            if not self._budgets[namespace]:
                del self._budgets[namespace]
            return
        if change.old is None or change.old.obj.get("spec") != change.new.obj.get("spec"):
            members = self._budgets[namespace][name] = _Members()
            for pod in self._env.store.list_objects(PODS, namespace):
                if _selects(change.new.obj, pod):
                    members.put(pod["metadata"]["name"], pod)
        self._env.agenda.soon(self._sync, change.new.key)

    def _follow_pod(self, change: Change) -> None:
        namespace, name = change.new.key
        for budget_name, members in self._budgets.get(namespace, {}).items():
            budget = self._env.store.get(POD_DISRUPTION_BUDGETS, namespace, budget_name)
            pod = None if change.kind == DELETED else change.new.obj
            if budget is None or (pod is not None and not _selects(budget, pod)):
                pod = None
            if members.put(name, pod):
                self._env.agenda.soon(self._sync, (namespace, budget_name))

    def _follow_scale(self, change: Change) -> None:
        """The percentages of budgets are taken of their controllers' replicas."""
        namespace = change.new.key[0]
        if change.old is not None and change.old.obj["spec"] == change.new.obj["spec"]:
            return
        for name, members in self._budgets.get(namespace, {}).items():
            if members.controllers:
                self._env.agenda.soon(self._sync, (namespace, name))

    def _sync(self, key: Key) -> None:
        budget = self._env.store.get(POD_DISRUPTION_BUDGETS, *key)
        members = self._budgets.get(key[0], {}).get(key[1])
        if budget is None or members is None:
            return
        now = self._env.registry.now()
        try:
            expected, desired = self._expected_and_desired(key[0], budget.get("spec") or {}, members)
        except (_Unscalable, ValueError) as error:
            status = dict(budget.get("status") or {})
            condition = {
                "type": "DisruptionAllowed",
                "status": "False",
                "reason": "SyncFailed",
                "message": str(error),
                "observedGeneration": status.get("observedGeneration", 0),
            }
            status["disruptionsAllowed"] = 0
            status["conditions"] = with_condition(status.get("conditions"), condition, now)
            write_status(self._env.store, POD_DISRUPTION_BUDGETS, budget, status)
            return
        disrupted = self._still_disrupted(key, budget, members)
        healthy = len(members.healthy - disrupted.keys())
        allowed = max(0, healthy - desired) if expected > 0 else 0
        generation = budget["metadata"].get("generation", 0)
        condition = {
            "type": "DisruptionAllowed",
            "status": "True" if allowed else "False",
            "reason": "SufficientPods" if allowed else "InsufficientPods",
            "message": "",
            "observedGeneration": generation,
        }
        status = {
            "observedGeneration": generation,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
            "disruptionsAllowed": allowed,
            "conditions": with_condition((budget.get("status") or {}).get("conditions"), condition, now),
        }
        if disrupted:
            status["disruptedPods"] = disrupted
        write_status(self._env.store, POD_DISRUPTION_BUDGETS, budget, status)

    def _still_disrupted(self, key: Key, budget: Object, members: _Members) -> dict[str, str]:
        """Evicted pods that have not begun to go yet, with the time of their eviction."""
        now = self._env.clock.now()
        result = {}
        for name, since in ((budget.get("status") or {}).get("disruptedPods") or {}).items():
            pod = self._env.store.get(PODS, key[0], name) if name in members.pods else None
            left = parse_time(since) + DELETION_TIMEOUT - now
            if pod is not None and not pods.is_terminating(pod) and left > 0:
                result[name] = since
                self._env.agenda.later(left, self._sync, key)
        return result

    def _expected_and_desired(self, namespace: str, spec: Object, members: _Members) -> tuple[int, int]:
        """How many pods there should be, and how many of them must be healthy."""
        if "maxUnavailable" in spec:
            expected = self._scale(namespace, members)
            return expected, max(0, expected - resolve(spec["maxUnavailable"], expected, round_up=True))
        least = spec.get("minAvailable")
        if isinstance(least, str):
            expected = self._scale(namespace, members)
            return expected, resolve(least, expected, round_up=True)
        if least is None:
            return 0, 0
        return len(members.pods), least

    def _scale(self, namespace: str, members: _Members) -> int:
        """The replicas of all controllers of the pods, each counted once."""
        owners: dict[str, int] = {}
        for kind, name in members.controllers:
            resource = _SCALES.get(kind)
            owner = None if resource is None else self._env.store.get(resource, namespace, name)
            if owner is None:
                pod_name = next(pod for pod, reference in members.pods.items() if reference == (kind, name))
                raise _Unscalable(f'found no controllers for pod "{pod_name}"')
            above = controller_of(owner)
            if above is not None and above["kind"] == "Deployment":
                owner = self._env.store.get(_SCALES["Deployment"], namespace, above["name"]) or owner
            owners[owner["metadata"]["uid"]] = int(owner["spec"].get("replicas", 1))
        return sum(owners.values())


def _selects(budget: Object, pod: Object) -> bool:
    selector = (budget.get("spec") or {}).get("selector")
    return matches_label_selector(selector, pod["metadata"].get("labels") or {})
