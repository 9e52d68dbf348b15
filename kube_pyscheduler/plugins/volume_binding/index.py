"""Volumes and capacities arranged for decisions, kept up to date change by change."""

from __future__ import annotations

from kube_pyscheduler.columns.csi_nodes import CSINodeColumn
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.framework.listers import AssumingLister, Listers
from kube_pyscheduler.objects.storage import PersistentVolume, PersistentVolumeClaim, claim_class, volume_class
from kube_pyscheduler.plugins.volume_binding.capacity import StorageRoom
from kube_pyscheduler.plugins.volume_binding.pool import VolumePool, is_available, suits
from kube_pyscheduler.plugins.volume_binding.topology import Matchers, affinity_of, allowed_nodes, label_keys


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume is meant for the claim. Source: IsVolumeBoundToClaim."""
    ref = volume.spec.claim_ref
    if ref is None or (ref.namespace, ref.name) != (claim.namespace, claim.name):
        return False
    return not ref.uid or ref.uid == claim.metadata.uid


class VolumeIndex:
    """Assumed volumes count as what they are assumed to be. ``sync`` before use."""

    def __init__(self, table: NodeTable) -> None:
        self.table = table
        self.matchers = Matchers(table)
        self.room = StorageRoom(table, self.matchers)
        self._pools: dict[str, VolumePool] = {}
        self._class_of: dict[str, str] = {}
        """Of volumes in pools."""
        self._meant_for: dict[str, set[str]] = {}
        """Key of a claim → names of volumes that refer to it."""
        self._claim_of: dict[str, str] = {}
        self._generation = 0

    def sync(self, listers: Listers) -> None:
        """Cost: what changed since the last time."""
        volumes = listers.persistent_volumes
        changed = volumes.changed_since(self._generation)
        self._generation = volumes.generation
        if changed is None:
            changed = {*self._class_of, *self._claim_of, *(volume.name for volume in volumes)}
        self._take_in(volumes, changed)
        self.room.sync(listers.csi_storage_capacities)

    def csi_nodes(self, listers: Listers) -> CSINodeColumn:
        """What CSINodes say, up to date."""
        column = self.table.attached(CSINodeColumn)
        column.sync(listers.csi_nodes)
        return column

    def pool(self, storage_class: str) -> VolumePool:
        """The volumes of a class that wait for a claim."""
        pool = self._pools.get(storage_class)
        if pool is None:
            pool = self._pools[storage_class] = VolumePool(self.table, self.matchers)
        return pool

    def node_labels(self, listers: Listers, claim: PersistentVolumeClaim) -> set[str]:
        """The labels of nodes that decide where the claim can be bound; perhaps some that once did."""
        name = claim_class(claim)
        found = {*self.pool(name).node_labels, *self.room.node_labels(name)}
        known = listers.storage_classes.get(name)
        if known is not None:
            found.update(label_keys(allowed_nodes(known.allowed_topologies)))
        for volume in self.meant_for(listers.persistent_volumes, claim):
            found.update(label_keys(affinity_of(volume)))
        return found

    def meant_for(
        self, volumes: AssumingLister[PersistentVolume], claim: PersistentVolumeClaim
    ) -> list[PersistentVolume]:
        """The volumes of the claim's class that were bound to the claim from their side and suit it, by name."""
        found = [volumes.latest(name) for name in sorted(self._meant_for.get(claim.key, ()))]
        return [
            volume
            for volume in found
            if volume is not None
            and is_bound_to(volume, claim)
            and volume_class(volume) == claim_class(claim)
            and suits(volume, claim)
        ]

    def _take_in(self, volumes: AssumingLister[PersistentVolume], names: set[str]) -> None:
        fresh: dict[str, list[PersistentVolume]] = {}
        for name in names:
            volume = volumes.latest(name)
            in_class = volume_class(volume) if volume is not None and is_available(volume) else None
            before = self._class_of.pop(name, None)
            if before is not None and before != in_class:
                self._pools[before].discard(name)
            if volume is not None and in_class is not None:
                self._class_of[name] = in_class
                fresh.setdefault(in_class, []).append(volume)
            self._refer(name, volume)
        for storage_class, found in fresh.items():
            self.pool(storage_class).put(found)

    def _refer(self, name: str, volume: PersistentVolume | None) -> None:
        before = self._claim_of.pop(name, None)
        if before is not None:
            names = self._meant_for[before]
            names.discard(name)
            if not names:
                del self._meant_for[before]
        ref = volume.spec.claim_ref if volume is not None else None
        if ref is not None:
            key = self._claim_of[name] = f"{ref.namespace}/{ref.name}"
            self._meant_for.setdefault(key, set()).add(name)
