"""DaemonSets: one pod a node, tied to it by node affinity.

Each (set, node) is looked at only when something about it changed. Rolling updates delete before they create;
maxSurge is not honoured. Source: pkg/controller/daemon/daemon_controller.go and update.go.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from kube_pyscheduler.devserver.controllers import pods
from kube_pyscheduler.devserver.controllers.daemon_rules import Placement, target_node
from kube_pyscheduler.devserver.controllers.environment import Environment
from kube_pyscheduler.devserver.controllers.owned_pods import OwnedPods
from kube_pyscheduler.devserver.controllers.revisions import HASH_LABEL, Revisions
from kube_pyscheduler.devserver.controllers.writing import pod_from_template, resolve, write_status
from kube_pyscheduler.devserver.resources import DAEMON_SETS, NODES, PODS, Resource
from kube_pyscheduler.devserver.store import ADDED, DELETED, MODIFIED, Change, Key, Object, Subscriber


class _Counts(NamedTuple):
    """What one node, or all of them, add to the status."""

    desired: int = 0
    current: int = 0
    misscheduled: int = 0
    ready: int = 0
    available: int = 0
    updated: int = 0


_NOTHING = _Counts()


class _Daemons:
    """What is known of one DaemonSet."""

    def __init__(self, daemon_set: Object) -> None:
        self.key: Key = (daemon_set["metadata"]["namespace"], daemon_set["metadata"]["name"])
        self.pods: dict[str, dict[Key, Object]] = defaultdict(dict)
        """Node name → the pods there."""
        self.outdated: dict[str, None] = {}
        """Nodes whose pod is of an earlier template, in the order in which that was seen."""
        self.counts = _NOTHING
        self._by_node: dict[str, _Counts] = {}
        self.read(daemon_set, "")

    def read(self, daemon_set: Object, revision_hash: str) -> None:
        self.placement = Placement(daemon_set["spec"]["template"])
        self.generation: int = daemon_set["metadata"].get("generation", 0)
        self.hash = revision_hash

    def set_counts(self, node: str, counts: _Counts) -> None:
        old = self._by_node.pop(node, _NOTHING)
        if counts != _NOTHING:
            self._by_node[node] = counts
        self.counts = _Counts(*(a - b + c for a, b, c in zip(self.counts, old, counts, strict=True)))


class DaemonSets:
    """The controller of all DaemonSets."""

    def __init__(self, env: Environment, owned: OwnedPods) -> None:
        self._env = env
        self._owned = owned
        self._revisions = Revisions(env)
        self._sets: dict[Key, _Daemons] = {}
        owned.listen("DaemonSet", self._follow_pod)

    def subscriptions(self) -> Iterable[tuple[Resource, Subscriber]]:
        yield DAEMON_SETS, self._follow
        yield NODES, self._follow_node

    def _follow(self, change: Change) -> None:
        key = change.new.key
        if change.kind == DELETED:
            self._sets.pop(key, None)
            self._revisions.forget(change.new.obj)
            return
        if change.kind == ADDED:
            self._sets[key] = _Daemons(change.new.obj)
            for pod in self._owned.of(change.new.obj).pods.values():
                self._follow_pod(key, pod)
        self._env.agenda.soon(self._sync, key)

    def _follow_node(self, change: Change) -> None:
        if (
            change.kind == MODIFIED
            and change.old is not None
            and _place_of(change.new.obj) == _place_of(change.old.obj)
        ):
            return
        for key in self._sets:
            self._env.agenda.soon(self._sync_node, (key, change.new.key[1]))

    def _follow_pod(self, key: Key, pod: Object) -> None:
        """Note where the pod is now; the store knows whether it still exists."""
        daemons = self._sets.get(key)
        if daemons is None:
            return
        node = target_node(pod)
        pod_key = (key[0], pod["metadata"]["name"])
        current = self._env.store.get(PODS, *pod_key)
        if current is None:
            daemons.pods[node].pop(pod_key, None)
            if not daemons.pods[node]:
                del daemons.pods[node]
        else:
            daemons.pods[node][pod_key] = current
        self._env.agenda.soon(self._sync_node, (key, node))

    # -- syncing -----------------------------------------------------------------------------------------------

    def _sync(self, key: Key) -> None:
        daemon_set, daemons = self._env.store.get(DAEMON_SETS, *key), self._sets.get(key)
        if daemon_set is None or daemons is None:
            return
        revision_hash = self._revisions.current_hash(daemon_set)
        if daemons.generation != daemon_set["metadata"].get("generation", 0) or daemons.hash != revision_hash:
            daemons.read(daemon_set, revision_hash)
            for node in self._env.store.list_objects(NODES):
                self._env.agenda.soon(self._sync_node, (key, node["metadata"]["name"]))
        self._env.agenda.soon(self._finish, key)

    def _sync_node(self, which: tuple[Key, str]) -> None:
        key, name = which
        daemon_set, daemons = self._env.store.get(DAEMON_SETS, *key), self._sets.get(key)
        if daemon_set is None or daemons is None or not daemons.hash:
            return
        node = self._env.store.get(NODES, "", name)
        should_run, may_stay = (False, False) if node is None else daemons.placement.judge(node)
        if not pods.is_terminating(daemon_set):
            self._manage(daemon_set, daemons, name, should_run=should_run, may_stay=may_stay)
        self._count(daemon_set, daemons, name, should_run=should_run)
        self._env.agenda.soon(self._finish, key)

    def _manage(self, daemon_set: Object, daemons: _Daemons, node: str, *, should_run: bool, may_stay: bool) -> None:
        present = [pod for pod in daemons.pods.get(node, {}).values() if not pods.is_terminating(pod)]
        alive = sorted(
            (pod for pod in present if not pods.is_terminal(pod)),
            key=lambda pod: (not pod["spec"].get("nodeName"), pod["metadata"]["creationTimestamp"]),
        )
        doomed = [pod for pod in present if pods.is_terminal(pod)]
        if should_run:
            doomed += alive[1:]
        elif not may_stay:
            doomed += alive
        for pod in doomed:
            self._env.registry.delete(PODS, daemons.key[0], pod["metadata"]["name"])
        if should_run and not alive and not daemons.pods.get(node):
            self._create(daemon_set, daemons, node)

    def _create(self, daemon_set: Object, daemons: _Daemons, node: str) -> None:
        pod = pod_from_template(daemon_set["spec"]["template"], daemon_set)
        labels = {
            **(pod["metadata"].get("labels") or {}),
            HASH_LABEL: daemons.hash,
            "pod-template-generation": str(daemons.generation),
        }
        metadata = {**pod["metadata"], "labels": labels}
        self._env.registry.create(PODS, {"metadata": metadata, "spec": daemons.placement.pod_spec(node)})

    def _count(self, daemon_set: Object, daemons: _Daemons, node: str, *, should_run: bool) -> None:
        present = list(daemons.pods.get(node, {}).values())
        daemons.outdated.pop(node, None)
        if not should_run:
            daemons.set_counts(node, _Counts(misscheduled=int(bool(present))))
            return
        if not present:
            daemons.set_counts(node, _Counts(desired=1))
            return
        pod = min(present, key=lambda p: (pods.is_terminating(p), p["metadata"]["creationTimestamp"]))
        updated = (pod["metadata"].get("labels") or {}).get(HASH_LABEL) == daemons.hash
        left = pods.seconds_until_available(pod, daemon_set["spec"].get("minReadySeconds", 0), self._env.clock.now())
        if left:
            self._env.agenda.later(left, self._sync_node, (daemons.key, node))
        if not updated and not pods.is_terminating(pod):
            daemons.outdated[node] = None
        ready, available = left is not None, left == 0.0 and not pods.is_terminating(pod)
        daemons.set_counts(node, _Counts(1, 1, 0, int(ready), int(available), int(updated)))

    # -- the set as a whole ------------------------------------------------------------------------------------

    def _finish(self, key: Key) -> None:
        """Replace outdated pods as far as availability allows, and report."""
        daemon_set, daemons = self._env.store.get(DAEMON_SETS, *key), self._sets.get(key)
        if daemon_set is None or daemons is None:
            return
        if daemon_set["spec"]["updateStrategy"]["type"] == "RollingUpdate" and not pods.is_terminating(daemon_set):
            self._roll(daemon_set, daemons)
        counts = daemons.counts
        status = {
            "currentNumberScheduled": counts.current,
            "numberMisscheduled": counts.misscheduled,
            "desiredNumberScheduled": counts.desired,
            "numberReady": counts.ready,
            "observedGeneration": daemon_set["metadata"].get("generation", 0),
        }
        if counts.updated:
            status["updatedNumberScheduled"] = counts.updated
        if counts.available:
            status["numberAvailable"] = counts.available
        if counts.desired - counts.available:
            status["numberUnavailable"] = counts.desired - counts.available
        write_status(self._env.store, DAEMON_SETS, daemon_set, status)

    def _roll(self, daemon_set: Object, daemons: _Daemons) -> None:
        if not daemons.outdated:
            return
        rolling = daemon_set["spec"]["updateStrategy"].get("rollingUpdate") or {}
        counts = daemons.counts
        allowed = max(1, resolve(rolling.get("maxUnavailable", 1), counts.desired, round_up=True))
        room = allowed - (counts.desired - counts.available)
        for node in tuple(daemons.outdated):
            for pod in tuple(daemons.pods.get(node, {}).values()):
                if pods.is_terminating(pod):
                    continue
                if pods.is_ready(pod):
                    if room <= 0:
                        continue
                    room -= 1
                self._env.registry.delete(PODS, daemons.key[0], pod["metadata"]["name"])


def _place_of(node: Object) -> tuple[object, object]:
    """What decides whether pods of a DaemonSet belong there."""
    return node["metadata"].get("labels"), (node.get("spec") or {}).get("taints")
