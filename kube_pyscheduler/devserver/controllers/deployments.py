"""Deployments: one ReplicaSet a template, and the way from one to the next.

Scaling while a rollout is under way is not proportional: the new ReplicaSet takes all of it.
Source: pkg/controller/deployment.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import count

from kube_pyscheduler.devserver.controllers import pods, rollout
from kube_pyscheduler.devserver.controllers.environment import Environment
from kube_pyscheduler.devserver.controllers.events import NORMAL
from kube_pyscheduler.devserver.controllers.owned_pods import OwnedPods, controller_of
from kube_pyscheduler.devserver.controllers.writing import controller_reference, template_hash, write_status
from kube_pyscheduler.devserver.resources import DEPLOYMENTS, REPLICA_SETS, Resource
from kube_pyscheduler.devserver.store import DELETED, Change, Key, Object, Subscriber

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
_DESIRED = "deployment.kubernetes.io/desired-replicas"
_MAXIMUM = "deployment.kubernetes.io/max-replicas"
_NOT_COPIED = frozenset({"kubectl.kubernetes.io/last-applied-configuration", REVISION, _DESIRED, _MAXIMUM})
COMPONENT = "deployment-controller"


class Deployments:
    """The controller of all Deployments."""

    def __init__(self, env: Environment, owned: OwnedPods) -> None:
        self._env = env
        self._owned = owned
        self._sets: dict[str, set[Key]] = defaultdict(set)
        """UID of a Deployment → its ReplicaSets."""

    def subscriptions(self) -> Iterable[tuple[Resource, Subscriber]]:
        yield REPLICA_SETS, self._follow_set
        yield DEPLOYMENTS, self._follow

    def _follow(self, change: Change) -> None:
        if change.kind != DELETED:
            self._env.agenda.soon(self._sync, change.new.key)

    def _follow_set(self, change: Change) -> None:
        owner = controller_of(change.new.obj)
        if owner is None or owner["kind"] != "Deployment":
            return
        keys = self._sets[owner["uid"]]
        if change.kind == DELETED:
            keys.discard(change.new.key)
            if not keys:
                del self._sets[owner["uid"]]
        else:
            keys.add(change.new.key)
        self._env.agenda.soon(self._sync, (change.new.key[0], owner["name"]))

    def _sync(self, key: Key) -> None:
        deployment = self._env.store.get(DEPLOYMENTS, *key)
        if deployment is None or pods.is_terminating(deployment):
            return
        replica_sets = self._replica_sets(deployment)
        new = next((s for s in replica_sets if _same_template(s, deployment)), None)
        old = [s for s in replica_sets if s is not new]
        if deployment["spec"].get("paused"):
            newest = new or (replica_sets[-1] if replica_sets else None)
            if newest is not None:
                self._scale(deployment, newest, deployment["spec"]["replicas"])
        elif deployment["spec"]["strategy"]["type"] == "Recreate":
            self._recreate(deployment, new, old)
        else:
            self._roll(deployment, new, old)
        self._report(key)

    def _replica_sets(self, deployment: Object) -> list[Object]:
        """The ReplicaSets of a Deployment, oldest first."""
        keys = self._sets.get(deployment["metadata"]["uid"], ())
        found = [s for key in keys if (s := self._env.store.get(REPLICA_SETS, *key)) is not None]
        return sorted(found, key=lambda s: (s["metadata"]["creationTimestamp"], _revision(s), s["metadata"]["name"]))

    # -- strategies --------------------------------------------------------------------------------------------

    def _roll(self, deployment: Object, new: Object | None, old: list[Object]) -> None:
        new = self._with_revision(deployment, new, old, replicas=0)
        plan = rollout.plan(deployment, rollout.size_of(new), [rollout.size_of(replica_set) for replica_set in old])
        if plan.new is not None:
            self._scale(deployment, new, plan.new)
        for replica_set, replicas in zip(old, plan.old, strict=True):
            self._scale(deployment, replica_set, replicas)

    def _recreate(self, deployment: Object, new: Object | None, old: list[Object]) -> None:
        """All old pods must be gone before the first new one is made."""
        for replica_set in old:
            self._scale(deployment, replica_set, 0)
        if any(not pods.is_terminal(pod) for s in old for pod in self._owned.of(s).pods.values()):
            return
        new = self._with_revision(deployment, new, old, replicas=deployment["spec"]["replicas"])
        self._scale(deployment, new, deployment["spec"]["replicas"])

    def _with_revision(self, deployment: Object, new: Object | None, old: list[Object], *, replicas: int) -> Object:
        """The ReplicaSet of the current template, made if need be, as the latest revision."""
        revision = str(max((_revision(s) for s in old), default=0) + 1)
        if new is None:
            new = self._create(deployment, revision, replicas)
        elif _revision(new) < int(revision):
            metadata = new["metadata"]
            changed = {**new, "metadata": _annotated(metadata, {REVISION: revision})}
            new = self._env.registry.update(REPLICA_SETS, changed)
        else:
            revision = str(_revision(new))
        metadata = deployment["metadata"]
        if (metadata.get("annotations") or {}).get(REVISION) != revision:
            current = self._env.store.get(DEPLOYMENTS, metadata["namespace"], metadata["name"]) or deployment
            changed = {**current, "metadata": _annotated(current["metadata"], {REVISION: revision})}
            self._env.registry.update(DEPLOYMENTS, changed)
        return new

    def _create(self, deployment: Object, revision: str, replicas: int) -> Object:
        metadata, spec = deployment["metadata"], deployment["spec"]
        template = spec["template"]
        suffix = self._free_suffix(deployment)
        labels = {**(template["metadata"].get("labels") or {}), HASH_LABEL: suffix}
        copied = {k: v for k, v in (metadata.get("annotations") or {}).items() if k not in _NOT_COPIED}
        created = self._env.registry.create(
            REPLICA_SETS,
            {
                "metadata": {
                    "name": f"{metadata['name']}-{suffix}",
                    "namespace": metadata["namespace"],
                    "labels": labels,
                    "annotations": {**copied, REVISION: revision, **_sizes(deployment)},
                    "ownerReferences": [controller_reference(deployment)],
                },
                "spec": {
                    "replicas": replicas,
                    "minReadySeconds": spec.get("minReadySeconds", 0),
                    "selector": {
                        **spec["selector"],
                        "matchLabels": {**(spec["selector"].get("matchLabels") or {}), HASH_LABEL: suffix},
                    },
                    "template": {**template, "metadata": {**template["metadata"], "labels": labels}},
                },
            },
        )
        if replicas:
            self._tell(deployment, created, 0, replicas)
        return created

    def _free_suffix(self, deployment: Object) -> str:
        """The hash of the template, or another one where the name with it is taken."""
        metadata = deployment["metadata"]
        for collisions in count():
            suffix = template_hash(deployment["spec"]["template"], collisions)
            if self._env.store.get(REPLICA_SETS, metadata["namespace"], f"{metadata['name']}-{suffix}") is None:
                return suffix
        raise AssertionError("unreachable")

    def _scale(self, deployment: Object, replica_set: Object, replicas: int) -> None:
        before = replica_set["spec"]["replicas"]
        annotations = replica_set["metadata"].get("annotations") or {}
        sizes = _sizes(deployment)
        if before == replicas and all(annotations.get(key) == value for key, value in sizes.items()):
            return
        metadata = replica_set["metadata"]
        self._env.registry.modify(
            REPLICA_SETS,
            metadata["namespace"],
            metadata["name"],
            lambda current: {
                **current,
                "metadata": _annotated(current["metadata"], sizes),
                "spec": {**current["spec"], "replicas": replicas},
            },
        )
        if before != replicas:
            self._tell(deployment, replica_set, before, replicas)

    def _tell(self, deployment: Object, replica_set: Object, before: int, replicas: int) -> None:
        way = "up" if replicas > before else "down"
        message = f"Scaled {way} replica set {replica_set['metadata']['name']} from {before} to {replicas}"
        self._env.events.write(COMPONENT, deployment, NORMAL, "ScalingReplicaSet", message)

    # -- report ------------------------------------------------------------------------------------------------

    def _report(self, key: Key) -> None:
        deployment = self._env.store.get(DEPLOYMENTS, *key)
        if deployment is None:
            return
        replica_sets = self._replica_sets(deployment)
        new = next((s for s in replica_sets if _same_template(s, deployment)), None)
        status = rollout.status(deployment, new, replica_sets, self._env.registry.now())
        write_status(self._env.store, DEPLOYMENTS, deployment, status)
        if new is not None and rollout.is_complete(deployment, status):
            self._forget_history(deployment, [s for s in replica_sets if s is not new])

    def _forget_history(self, deployment: Object, old: list[Object]) -> None:
        idle = [s for s in old if not s["spec"]["replicas"] and not s["status"].get("replicas")]
        for replica_set in idle[: max(0, len(idle) - deployment["spec"]["revisionHistoryLimit"])]:
            metadata = replica_set["metadata"]
            self._env.registry.delete(REPLICA_SETS, metadata["namespace"], metadata["name"])


def _same_template(replica_set: Object, deployment: Object) -> bool:
    template = replica_set["spec"]["template"]
    labels = {k: v for k, v in (template["metadata"].get("labels") or {}).items() if k != HASH_LABEL}
    wanted = deployment["spec"]["template"]
    return bool(
        labels == (wanted["metadata"].get("labels") or {})
        and template["spec"] == wanted["spec"]
        and template["metadata"].get("annotations") == wanted["metadata"].get("annotations")
    )


def _revision(replica_set: Object) -> int:
    return int((replica_set["metadata"].get("annotations") or {}).get(REVISION, "0"))


def _sizes(deployment: Object) -> dict[str, str]:
    replicas = deployment["spec"]["replicas"]
    return {_DESIRED: str(replicas), _MAXIMUM: str(replicas + rollout.max_surge(deployment))}


def _annotated(metadata: Object, annotations: dict[str, str]) -> Object:
    return {**metadata, "annotations": {**(metadata.get("annotations") or {}), **annotations}}
