"""Volumes and claims find each other, and follow each other's phases.

Claims of Immediate classes are bound or provisioned at once; others wait until the scheduler has reserved a volume
or named a node. Source: pkg/controller/volume/persistentvolume/pv_controller.go.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from kube_pyscheduler.devserver.controllers import volume_matching as matching
from kube_pyscheduler.devserver.controllers.environment import Environment
from kube_pyscheduler.devserver.controllers.events import NORMAL, WARNING
from kube_pyscheduler.devserver.controllers.provisioner import Provisioner
from kube_pyscheduler.devserver.controllers.writing import write_status
from kube_pyscheduler.devserver.resources import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    Resource,
)
from kube_pyscheduler.devserver.store import DELETED, Change, Key, Object, Subscriber

COMPONENT = "persistentvolume-controller"


class Volumes:
    """The controller of all PersistentVolumes and their claims."""

    def __init__(self, env: Environment, provisioner: Provisioner) -> None:
        self._env = env
        self._provisioner = provisioner
        self._reserved: dict[Key, set[str]] = defaultdict(set)
        """Claim → the volumes that refer to it."""
        self._free: dict[str, set[str]] = defaultdict(set)
        """Class → its volumes that are available to anybody."""
        self._waiting: dict[str, set[Key]] = defaultdict(set)
        """Class → claims that nothing was found for."""

    def subscriptions(self) -> Iterable[tuple[Resource, Subscriber]]:
        yield STORAGE_CLASSES, self._follow_class
        yield PERSISTENT_VOLUMES, self._follow_volume
        yield PERSISTENT_VOLUME_CLAIMS, self._follow_claim

    def _follow_class(self, change: Change) -> None:
        if change.kind != DELETED:
            self._retry(change.new.key[1])

    def _follow_volume(self, change: Change) -> None:
        name = change.new.key[1]
        if change.old is not None:
            key = matching.claim_key(change.old.obj)
            if key is not None:
                self._reserved[key].discard(name)
                if not self._reserved[key]:
                    del self._reserved[key]
            self._free[matching.class_of(change.old.obj)].discard(name)
        key = matching.claim_key(change.new.obj)
        if change.kind != DELETED:
            if key is not None:
                self._reserved[key].add(name)
            elif (change.new.obj.get("status") or {}).get("phase") == "Available":
                storage_class = matching.class_of(change.new.obj)
                self._free[storage_class].add(name)
                self._retry(storage_class)
            self._env.agenda.soon(self._sync_volume, name)
        if key is not None:
            self._env.agenda.soon(self._sync_claim, key)

    def _follow_claim(self, change: Change) -> None:
        key = change.new.key
        self._waiting[matching.class_of(change.new.obj)].discard(key)
        for name in self._reserved.get(key, ()):
            self._env.agenda.soon(self._sync_volume, name)
        if change.kind != DELETED:
            self._env.agenda.soon(self._sync_claim, key)

    def _retry(self, storage_class: str) -> None:
        for key in self._waiting.pop(storage_class, ()):
            self._env.agenda.soon(self._sync_claim, key)

    # -- claims ------------------------------------------------------------------------------------------------

    def _sync_claim(self, key: Key) -> None:
        claim = self._env.store.get(PERSISTENT_VOLUME_CLAIMS, *key)
        if claim is None:
            return
        if matching.annotation(claim, matching.BIND_COMPLETED) is not None:
            self._sync_bound(claim)
        elif claim["spec"].get("volumeName"):
            self._sync_naming(key, claim)
        else:
            self._sync_open(key, claim)

    def _sync_bound(self, claim: Object) -> None:
        """A claim that was bound once stays bound or is lost."""
        name = claim["spec"].get("volumeName", "")
        volume = self._env.store.get(PERSISTENT_VOLUMES, "", name)
        if volume is not None and (volume["spec"].get("claimRef") is None or matching.is_for(volume, claim)):
            self._bind(volume, claim)
            return
        if (claim.get("status") or {}).get("phase") == "Lost":
            return
        if volume is None:
            reason, message = "ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
        else:
            reason = "ClaimMisbound"
            message = "Two claims are bound to the same volume, this one is bound incorrectly"
        self._env.events.write(COMPONENT, claim, WARNING, reason, message)
        write_status(self._env.store, PERSISTENT_VOLUME_CLAIMS, claim, {"phase": "Lost"})

    def _sync_naming(self, key: Key, claim: Object) -> None:
        """A new claim that asks for a certain volume."""
        volume = self._env.store.get(PERSISTENT_VOLUMES, "", claim["spec"]["volumeName"])
        if volume is None:
            # It may still be made: a volume that refers to the claim brings us back, any other new one through here.
            self._waiting[matching.class_of(claim)].add(key)
        elif volume["spec"].get("claimRef") is None:
            if why := matching.mismatch(volume, claim):
                message = f'Cannot bind to requested volume "{volume["metadata"]["name"]}": {why}'
                self._env.events.write(COMPONENT, claim, WARNING, "VolumeMismatch", message)
            else:
                self._bind(volume, claim)
        elif matching.is_for(volume, claim):
            self._bind(volume, claim)
        else:
            message = f'volume "{volume["metadata"]["name"]}" already bound to a different claim.'
            self._env.events.write(COMPONENT, claim, WARNING, "FailedBinding", message)

    def _sync_open(self, key: Key, claim: Object) -> None:
        """A new claim that takes what suits it."""
        storage_class = matching.class_of(claim)
        found = self._env.store.get(STORAGE_CLASSES, "", storage_class) if storage_class else None
        delayed = found is not None and found["volumeBindingMode"] == "WaitForFirstConsumer"
        reserved = self._volumes(self._reserved.get(key, ()))
        free = [] if delayed else self._volumes(self._free.get(storage_class, ()))
        volume = matching.best_match(claim, reserved, free)
        if volume is not None:
            self._bind(volume, claim)
            return
        if delayed and matching.annotation(claim, matching.SELECTED_NODE) is None:
            message = "waiting for first consumer to be created before binding"
            self._tell_once(claim, NORMAL, "WaitForFirstConsumer", message)
            return
        self._waiting[storage_class].add(key)
        if not storage_class:
            message = "no persistent volumes available for this claim and no storage class is set"
            self._tell_once(claim, NORMAL, "FailedBinding", message)
        elif found is None:
            message = f'storageclass.storage.k8s.io "{storage_class}" not found'
            self._tell_once(claim, WARNING, "ProvisioningFailed", message)
        elif not self._provisioner.begin(key, claim, found):
            message = "no volume plugin matched name: kubernetes.io/no-provisioner"
            self._tell_once(claim, WARNING, "ProvisioningFailed", message)

    def _volumes(self, names: Iterable[str]) -> list[Object]:
        found = (self._env.store.get(PERSISTENT_VOLUMES, "", name) for name in names)
        return [v for v in found if v is not None and "deletionTimestamp" not in v["metadata"]]

    def _tell_once(self, claim: Object, kind: str, reason: str, message: str) -> None:
        self._env.events.write(COMPONENT, claim, kind, reason, message, once=True)

    def _bind(self, volume: Object, claim: Object) -> None:
        """Make the two refer to each other; nothing is written where it is so already."""
        store, metadata = self._env.store, claim["metadata"]
        spec = volume["spec"]
        given = spec.get("claimRef")
        if given is None or given.get("uid") != metadata["uid"]:
            reference = {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": metadata["namespace"],
                "name": metadata["name"],
                "uid": metadata["uid"],
                "resourceVersion": metadata["resourceVersion"],
            }
            volume = {**volume, "spec": {**spec, "claimRef": reference}}
            if given is None:
                volume = _annotated(volume, {matching.BOUND_BY_CONTROLLER: "yes"})
        write_status(store, PERSISTENT_VOLUMES, volume, {**(volume.get("status") or {}), "phase": "Bound"})
        marks = {matching.BIND_COMPLETED: "yes"}
        name = volume["metadata"]["name"]
        if claim["spec"].get("volumeName") != name:
            marks[matching.BOUND_BY_CONTROLLER] = "yes"
            claim = {**claim, "spec": {**claim["spec"], "volumeName": name}}
        status = {
            **(claim.get("status") or {}),
            "phase": "Bound",
            "accessModes": spec["accessModes"],
            "capacity": spec["capacity"],
        }
        write_status(store, PERSISTENT_VOLUME_CLAIMS, _annotated(claim, marks), status)

    # -- volumes -----------------------------------------------------------------------------------------------

    def _sync_volume(self, name: str) -> None:
        volume = self._env.store.get(PERSISTENT_VOLUMES, "", name)
        if volume is None:
            return
        key = matching.claim_key(volume)
        if key is None or not volume["spec"]["claimRef"].get("uid"):
            self._set_phase(volume, "Available")
            return
        claim = self._env.store.get(PERSISTENT_VOLUME_CLAIMS, *key)
        if claim is not None and claim["metadata"]["uid"] == volume["spec"]["claimRef"]["uid"]:
            taken = claim["spec"].get("volumeName", "")
            if taken == name:
                self._set_phase(volume, "Bound")
            elif taken:
                self._let_go(volume)
            return
        self._release(volume)

    def _let_go(self, volume: Object) -> None:
        """The claim took another volume. One that was made for it goes, any other is free again."""
        if self._is_disposable(volume):
            self._release(volume)
            return
        spec = dict(volume["spec"])
        marks = volume["metadata"].get("annotations") or {}
        if matching.BOUND_BY_CONTROLLER in marks:
            del spec["claimRef"]
        else:
            reference = {k: v for k, v in spec["claimRef"].items() if k not in ("uid", "resourceVersion")}
            spec["claimRef"] = reference
        kept = {k: v for k, v in marks.items() if k != matching.BOUND_BY_CONTROLLER}
        metadata = {**volume["metadata"], "annotations": kept}
        self._set_phase({**volume, "metadata": metadata, "spec": spec}, "Available")

    def _release(self, volume: Object) -> None:
        """The claim is gone."""
        volume = self._set_phase(volume, "Released")
        if self._is_disposable(volume) and "deletionTimestamp" not in volume["metadata"]:
            self._env.registry.delete(PERSISTENT_VOLUMES, "", volume["metadata"]["name"])

    def _is_disposable(self, volume: Object) -> bool:
        is_ours = matching.annotation(volume, matching.PROVISIONED_BY) is not None
        return is_ours and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete"

    def _set_phase(self, volume: Object, phase: str) -> Object:
        status = {**(volume.get("status") or {}), "phase": phase}
        return write_status(self._env.store, PERSISTENT_VOLUMES, volume, status)


def _annotated(obj: Object, marks: dict[str, str]) -> Object:
    annotations = {**(obj["metadata"].get("annotations") or {}), **marks}
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}
