"""StatefulSets: pods with a number and claims of their own, in order or all at once.

Claims are kept when pods or sets go, whatever the retention policy says.
Source: pkg/controller/statefulset/stateful_set_control.go and stateful_set_utils.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from kube_pyscheduler.devserver.controllers import pods
from kube_pyscheduler.devserver.controllers.environment import Environment
from kube_pyscheduler.devserver.controllers.owned_pods import OwnedPods
from kube_pyscheduler.devserver.controllers.revisions import HASH_LABEL, Revisions
from kube_pyscheduler.devserver.controllers.writing import pod_from_template, resolve, without_zeros, write_status
from kube_pyscheduler.devserver.resources import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS, Resource
from kube_pyscheduler.devserver.store import DELETED, Change, Key, Object, Subscriber

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"


class StatefulSets:
    """The controller of all StatefulSets."""

    def __init__(self, env: Environment, owned: OwnedPods) -> None:
        self._env = env
        self._owned = owned
        self._revisions = Revisions(env)
        owned.listen("StatefulSet", lambda key, _pod: env.agenda.soon(self._sync, key))

    def subscriptions(self) -> Iterable[tuple[Resource, Subscriber]]:
        yield STATEFUL_SETS, self._follow

    def _follow(self, change: Change) -> None:
        if change.kind == DELETED:
            self._revisions.forget(change.new.obj)
        else:
            self._env.agenda.soon(self._sync, change.new.key)

    def _sync(self, key: Key) -> None:
        stateful_set = self._env.store.get(STATEFUL_SETS, *key)
        if stateful_set is None:
            return
        update = self._revisions.current_hash(stateful_set)
        if not pods.is_terminating(stateful_set):
            self._step(key, stateful_set, update)
        self._report(key, stateful_set, update)

    def _by_ordinal(self, stateful_set: Object) -> dict[int, Object]:
        prefix = stateful_set["metadata"]["name"] + "-"
        found = {}
        for (_, name), pod in self._owned.of(stateful_set).pods.items():
            number = name.removeprefix(prefix)
            if number.isdecimal():
                found[int(number)] = pod
        return found

    # -- steps -------------------------------------------------------------------------------------------------

    def _step(self, key: Key, stateful_set: Object, update: str) -> None:
        """Bring the set as far as its order allows."""
        spec = stateful_set["spec"]
        ordered = spec["podManagementPolicy"] == "OrderedReady"
        first = (spec.get("ordinals") or {}).get("start", 0)
        wanted = range(first, first + spec["replicas"])
        present = self._by_ordinal(stateful_set)
        if not self._fill(key, stateful_set, update, wanted, present, ordered=ordered):
            return
        if self._shrink(key, stateful_set, wanted, present, ordered=ordered):
            self._update(key, stateful_set, update, wanted)

    def _fill(
        self, key: Key, stateful_set: Object, update: str, wanted: range, present: dict[int, Object], *, ordered: bool
    ) -> bool:
        """Make the pods that are missing; whether to go on."""
        for ordinal in wanted:
            pod = present.get(ordinal)
            if pod is None:
                self._create(stateful_set, ordinal, self._hash_for(stateful_set, ordinal, update))
            elif pods.is_terminal(pod) and not pods.is_terminating(pod):
                self._env.registry.delete(PODS, key[0], pod["metadata"]["name"])
            if ordered and not self._is_available(key, stateful_set, ordinal):
                return False
        return True

    def _shrink(
        self, key: Key, stateful_set: Object, wanted: range, present: dict[int, Object], *, ordered: bool
    ) -> bool:
        """Delete the pods beyond the wanted ones, the last first; whether to go on."""
        for ordinal in sorted(present.keys() - set(wanted), reverse=True):
            if not pods.is_terminating(present[ordinal]):
                self._env.registry.delete(PODS, key[0], present[ordinal]["metadata"]["name"])
            if ordered:
                return False
        return True

    def _update(self, key: Key, stateful_set: Object, update: str, wanted: range) -> None:
        """Replace pods of an older revision, the last first, while the others are available."""
        strategy = stateful_set["spec"]["updateStrategy"]
        if strategy["type"] != "RollingUpdate":
            return
        rolling = strategy.get("rollingUpdate") or {}
        allowed = max(1, resolve(rolling.get("maxUnavailable", 1), len(wanted), round_up=True))
        present = self._by_ordinal(stateful_set)
        missing = sum(not self._is_available(key, stateful_set, ordinal) for ordinal in wanted)
        for ordinal in reversed(wanted):
            if ordinal - wanted.start < rolling.get("partition", 0) or missing >= allowed:
                return
            pod = present.get(ordinal)
            if pod is not None and not pods.is_terminating(pod) and _hash_of(pod) != update:
                self._env.registry.delete(PODS, key[0], pod["metadata"]["name"])
                missing += 1

    def _is_available(self, key: Key, stateful_set: Object, ordinal: int) -> bool:
        pod = self._env.store.get(PODS, key[0], f"{key[1]}-{ordinal}")
        if pod is None or not pods.is_active(pod):
            return False
        left = pods.seconds_until_available(pod, stateful_set["spec"].get("minReadySeconds", 0), self._env.clock.now())
        if left:
            self._env.agenda.later(left, self._sync, key)
        return left == 0.0

    def _hash_for(self, stateful_set: Object, ordinal: int, update: str) -> str:
        """The revision of a new pod: below the partition it is the one before the update."""
        strategy = stateful_set["spec"]["updateStrategy"]
        current = (stateful_set["status"].get("currentRevision") or "").rpartition("-")[2]
        if strategy["type"] != "RollingUpdate" or not current:
            return update
        first = (stateful_set["spec"].get("ordinals") or {}).get("start", 0)
        partition = (strategy.get("rollingUpdate") or {}).get("partition", 0)
        return current if ordinal - first < partition else update

    # -- pods and claims ---------------------------------------------------------------------------------------

    def _create(self, stateful_set: Object, ordinal: int, revision_hash: str) -> None:
        set_name, namespace = stateful_set["metadata"]["name"], stateful_set["metadata"]["namespace"]
        name = f"{set_name}-{ordinal}"
        pod = pod_from_template(self._revisions.template(stateful_set, revision_hash), stateful_set)
        metadata = {k: v for k, v in pod["metadata"].items() if k != "generateName"}
        metadata["name"] = name
        metadata["labels"] = {
            **(metadata.get("labels") or {}),
            HASH_LABEL: f"{set_name}-{revision_hash}",
            POD_NAME_LABEL: name,
            POD_INDEX_LABEL: str(ordinal),
        }
        spec = {**pod["spec"], "hostname": name}
        if stateful_set["spec"].get("serviceName"):
            spec["subdomain"] = stateful_set["spec"]["serviceName"]
        claims = {}
        for template in stateful_set["spec"].get("volumeClaimTemplates") or ():
            claim_name = f"{template['metadata']['name']}-{name}"
            claims[template["metadata"]["name"]] = {
                "name": template["metadata"]["name"],
                "persistentVolumeClaim": {"claimName": claim_name},
            }
            self._make_claim(stateful_set, template, claim_name)
        if claims:
            others = [volume for volume in spec.get("volumes") or () if volume["name"] not in claims]
            spec["volumes"] = [*claims.values(), *others]
        if self._env.store.get(PODS, namespace, name) is None:
            self._env.registry.create(PODS, {"metadata": metadata, "spec": spec})

    def _make_claim(self, stateful_set: Object, template: Object, name: str) -> None:
        namespace = stateful_set["metadata"]["namespace"]
        if self._env.store.get(PERSISTENT_VOLUME_CLAIMS, namespace, name) is not None:
            return
        given = template["metadata"]
        labels = {**(given.get("labels") or {}), **(stateful_set["spec"]["selector"].get("matchLabels") or {})}
        metadata = {"name": name, "namespace": namespace, "labels": labels}
        if given.get("annotations"):
            metadata["annotations"] = given["annotations"]
        self._env.registry.create(PERSISTENT_VOLUME_CLAIMS, {"metadata": metadata, "spec": template["spec"]})

    # -- report ------------------------------------------------------------------------------------------------

    def _report(self, key: Key, stateful_set: Object, update: str) -> None:
        group = self._owned.of(stateful_set)
        replicas = len(group.pods)
        live = group.select(pods.is_active)
        updated = sum(_hash_of(pod) == update for pod in live)
        name = stateful_set["metadata"]["name"]
        update_revision = f"{name}-{update}"
        current_revision = stateful_set["status"].get("currentRevision") or update_revision
        if updated == replicas == group.ready == stateful_set["spec"]["replicas"]:
            current_revision = update_revision
        current_hash = current_revision.rpartition("-")[2]
        available = sum(
            pods.seconds_until_available(pod, stateful_set["spec"].get("minReadySeconds", 0), self._env.clock.now())
            == 0.0
            for pod in live
        )
        status = {
            "observedGeneration": stateful_set["metadata"].get("generation", 0),
            "replicas": replicas,
            "readyReplicas": group.ready,
            "availableReplicas": available,
            "currentReplicas": sum(_hash_of(pod) == current_hash for pod in live),
            "updatedReplicas": updated,
            "currentRevision": current_revision,
            "updateRevision": update_revision,
            "collisionCount": 0,
        }
        kept = without_zeros(status, "replicas", "availableReplicas", "collisionCount")
        write_status(self._env.store, STATEFUL_SETS, stateful_set, kept)


def _hash_of(pod: Object) -> str:
    return str((pod["metadata"].get("labels") or {}).get(HASH_LABEL, "")).rpartition("-")[2]
