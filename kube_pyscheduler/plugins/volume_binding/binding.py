"""Write what was decided for a pod's claims, and wait until the volumes are there.

Source: BindPodVolumes, bindAPIUpdate and checkBindings in volumebinding/binder.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kube_pyscheduler.columns.csi_nodes import facts_of
from kube_pyscheduler.framework.handle import BindingHandle
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.objects.csi_translation import TranslationError, in_tree_plugin, translated
from kube_pyscheduler.objects.meta import Object
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.storage import PersistentVolume, PersistentVolumeClaim
from kube_pyscheduler.plugins.volume_binding.assuming import BOUND_BY_CONTROLLER, Assumed
from kube_pyscheduler.plugins.volume_binding.claims import SELECTED_NODE, is_fully_bound
from kube_pyscheduler.plugins.volume_binding.kernel import Binding
from kube_pyscheduler.plugins.volume_binding.topology import affinity_of

NODE, VOLUME, CLAIM = "Node", "PersistentVolume", "PersistentVolumeClaim"

Watched = tuple[str, str]
"""(kind, key)."""


class BindingFailed(Exception):
    """The pod must be placed anew. ``claim``: the one whose volume could not be provisioned, if that is why."""

    def __init__(self, problem: str, claim: PersistentVolumeClaim | None = None) -> None:
        super().__init__(problem)
        self.claim = claim


async def bind(handle: BindingHandle, assumed: Assumed, node: str, timeout: float) -> None:
    """Write volumes and claims, then wait for at most ``timeout`` seconds until all of them are bound. Raises
    BindingFailed."""
    await _write(handle, assumed)
    deadline = handle.now() + timeout
    progress = Progress(handle.listers, assumed, node)
    try:
        while not progress.is_done:
            left = deadline - handle.now()
            if left <= 0 or not await handle.until_any(progress.watched, progress.look, left):
                raise BindingFailed("context deadline exceeded")
    except BindingFailed as failed:
        raise BindingFailed(f"binding volumes: {failed}", failed.claim) from None


async def _write(handle: BindingHandle, assumed: Assumed) -> None:
    """There is no way back for what was written when a later write fails."""
    try:
        for place, binding in enumerate(assumed.bindings):
            written = await handle.patch(VOLUME, "", binding.volume.name, _volume_patch(binding))
            assumed.bindings[place] = Binding(written, binding.claim)
        for place, claim in enumerate(assumed.provisions):
            patch = {
                "metadata": {**_same(claim), "annotations": {SELECTED_NODE: claim.metadata.annotations[SELECTED_NODE]}}
            }
            assumed.provisions[place] = await handle.patch(CLAIM, claim.namespace, claim.name, patch)
    except Exception as problem:
        raise BindingFailed(str(problem) or repr(problem)) from problem


def _same(item: Object) -> dict[str, Any]:
    """The part of a patch that makes it fail if the object changed meanwhile."""
    return {"resourceVersion": item.metadata.resource_version}


def _volume_patch(binding: Binding) -> dict[str, Any]:
    metadata = _same(binding.volume)
    if BOUND_BY_CONTROLLER in binding.volume.metadata.annotations:
        metadata["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
    claim = binding.claim
    reference = {
        "kind": CLAIM,
        "apiVersion": "v1",
        "namespace": claim.namespace,
        "name": claim.name,
        "uid": claim.metadata.uid,
        "resourceVersion": claim.metadata.resource_version,
    }
    return {"metadata": metadata, "spec": {"claimRef": reference}}


class Progress:
    """How far the binding has come. ``watched``: what that depends on; it grows when volumes get names."""

    def __init__(self, listers: Listers, assumed: Assumed, node: str) -> None:
        self._listers = listers
        self._bindings = assumed.bindings
        self._provisions = assumed.provisions
        self._node = node
        self.is_done = False
        self.watched: list[Watched] = [(NODE, node)]
        for binding in assumed.bindings:
            self.watched += [(VOLUME, binding.volume.name), (CLAIM, binding.claim.key)]
        self.watched += [(CLAIM, claim.key) for claim in assumed.provisions]

    def look(self, *objects: Any) -> bool:
        """Whether there is nothing to wait for any more, or more to watch; ``objects`` are those of ``watched``. Raises
        BindingFailed."""
        found: Mapping[Watched, Any] = dict(zip(self.watched, objects, strict=True))
        known = len(self.watched)
        self.is_done = self._look(found)
        return self.is_done or len(self.watched) > known

    def _look(self, found: Mapping[Watched, Any]) -> bool:
        node: Node | None = found[NODE, self._node]
        if node is None:
            raise BindingFailed(f'failed to get node "{self._node}": node "{self._node}" not found')
        for binding in self._bindings:
            if not self._is_bound(binding, found, node):
                return False
        return all(self._is_provisioned(claim, found, node) for claim in self._provisions)

    def _is_bound(self, binding: Binding, found: Mapping[Watched, Any], node: Node) -> bool:
        volume: PersistentVolume | None = found[VOLUME, binding.volume.name]
        claim: PersistentVolumeClaim | None = found[CLAIM, binding.claim.key]
        if volume is None:
            raise BindingFailed(f'failed to check binding: persistentvolumes "{binding.volume.name}" not found')
        if claim is None:
            raise BindingFailed(f'failed to check binding: persistentvolumeclaims "{binding.claim.key}" not found')
        if _is_older(volume, binding.volume):
            return False
        try:
            self._check_reach(volume, node)
        except TranslationError as problem:
            raise BindingFailed(f"failed to translate pv to csi: could not translate pv: {problem}") from None
        if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
            raise BindingFailed(f'ClaimRef got reset for pv "{volume.name}"')
        return is_fully_bound(claim)

    def _is_provisioned(self, written: PersistentVolumeClaim, found: Mapping[Watched, Any], node: Node) -> bool:
        claim: PersistentVolumeClaim | None = found[CLAIM, written.key]
        if claim is None:
            raise BindingFailed(f'failed to check provisioning pvc: persistentvolumeclaims "{written.key}" not found')
        if _is_older(claim, written):
            return False
        if not claim.metadata.annotations:
            raise BindingFailed(f'selectedNode annotation reset for PVC "{claim.name}"', claim)
        if claim.metadata.annotations.get(SELECTED_NODE) != self._node:
            raise BindingFailed(f'provisioning failed for PVC "{claim.name}"', claim)
        name = claim.spec.volume_name
        if name:
            if (VOLUME, name) not in found:
                self.watched.append((VOLUME, name))
                return False
            volume: PersistentVolume | None = found[VOLUME, name]
            if volume is None:
                # The watch may tell of the claim before it tells of the volume.
                return False
            try:
                self._check_reach(volume, node)
            except TranslationError as problem:
                raise BindingFailed(f"could not translate pv: {problem}") from None
        return is_fully_bound(claim)

    def _check_reach(self, volume: PersistentVolume, node: Node) -> None:
        plugin = in_tree_plugin(volume.spec)
        csi_node = self._listers.csi_nodes.get(node.name)
        migrated = facts_of(csi_node).migrated if csi_node is not None else frozenset()
        if plugin is not None and plugin.migrated and plugin.name in migrated:
            volume = translated(volume)
        affinity = affinity_of(volume)
        if affinity is not None and not affinity.matches(node.metadata.labels, ""):
            raise BindingFailed(
                f'pv "{volume.name}" node affinity doesn\'t match node "{node.name}": no matching NodeSelectorTerms'
            )


def _is_older(told: Object, written: Object) -> bool:
    """Whether the watch has not yet told of what we wrote. Resource versions are numbers that grow."""
    before, after = told.metadata.resource_version, written.metadata.resource_version
    if before.isdecimal() and after.isdecimal():
        return int(before) < int(after)
    return before != after
