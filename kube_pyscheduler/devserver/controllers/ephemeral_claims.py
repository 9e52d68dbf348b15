"""Claims for the generic ephemeral volumes of pods; they go with their pod.

Source: pkg/controller/volume/ephemeral/controller.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from kube_pyscheduler.devserver.controllers import pods
from kube_pyscheduler.devserver.controllers.environment import Environment
from kube_pyscheduler.devserver.controllers.events import WARNING
from kube_pyscheduler.devserver.controllers.owned_pods import controller_of
from kube_pyscheduler.devserver.controllers.writing import controller_reference
from kube_pyscheduler.devserver.resources import PERSISTENT_VOLUME_CLAIMS, PODS, Resource
from kube_pyscheduler.devserver.store import DELETED, Change, Key, Object, Subscriber

COMPONENT = "ephemeral_volume"


class EphemeralClaims:
    """Makes the claims of every pod that has ephemeral volumes."""

    def __init__(self, env: Environment) -> None:
        self._env = env

    def subscriptions(self) -> Iterable[tuple[Resource, Subscriber]]:
        yield PODS, self._follow
        yield PERSISTENT_VOLUME_CLAIMS, self._follow_claim

    def _follow(self, change: Change) -> None:
        if change.old is None and _volumes(change.new.obj):
            self._env.agenda.soon(self._sync, change.new.key)

    def _follow_claim(self, change: Change) -> None:
        """A claim that went before its pod is made again."""
        owner = controller_of(change.new.obj)
        if change.kind == DELETED and owner is not None and owner["kind"] == "Pod":
            self._env.agenda.soon(self._sync, (change.new.key[0], owner["name"]))

    def _sync(self, key: Key) -> None:
        pod = self._env.store.get(PODS, *key)
        if pod is None or not pods.is_active(pod):
            return
        for volume in _volumes(pod):
            self._ensure(key, pod, volume)

    def _ensure(self, key: Key, pod: Object, volume: Object) -> None:
        name = f"{key[1]}-{volume['name']}"
        present = self._env.store.get(PERSISTENT_VOLUME_CLAIMS, key[0], name)
        if present is not None:
            owner = controller_of(present)
            if owner is None or owner["uid"] != pod["metadata"]["uid"]:
                message = f'PVC "{key[0]}/{name}" was not created for pod "{key[0]}/{key[1]}" (pod is not owner)'
                self._env.events.write(COMPONENT, pod, WARNING, "FailedBinding", f"ephemeral volume: {message}")
            return
        template = volume["ephemeral"]["volumeClaimTemplate"]
        given = template.get("metadata") or {}
        metadata: Object = {"name": name, "namespace": key[0], "ownerReferences": [controller_reference(pod)]}
        for part in ("labels", "annotations"):
            if given.get(part):
                metadata[part] = given[part]
        self._env.registry.create(PERSISTENT_VOLUME_CLAIMS, {"metadata": metadata, "spec": template["spec"]})


def _volumes(pod: Object) -> list[Object]:
    return [v for v in pod["spec"].get("volumes") or () if (v.get("ephemeral") or {}).get("volumeClaimTemplate")]
