"""What plugins may look up: objects by key and by namespace, already updated by every event so far."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.objects.group import (
    Namespace,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from kube_pyscheduler.objects.meta import Object
from kube_pyscheduler.objects.resource import DeviceClass, ResourceClaim, ResourceSlice
from kube_pyscheduler.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)

T = TypeVar("T", bound=Object)

KEEP = 8192
"""Changes a lister remembers at least; a reader that is further behind is told to look at everything."""


class Lister(Generic[T]):
    """Objects of one kind by ``namespace/name`` (or name). ``generation`` grows by one with every change.

    Plugins read; only the cache writes.
    """

    def __init__(self) -> None:
        self._objects: dict[str, T] = {}
        self._by_namespace: dict[str, dict[str, T]] = {}
        self._changes: list[str] = []
        self.generation = 0

    def get(self, key: str) -> T | None:
        return self._objects.get(key)

    def in_namespace(self, namespace: str) -> Iterable[T]:
        found: Mapping[str, T] = self._by_namespace.get(namespace, {})
        return found.values()

    def __iter__(self) -> Iterator[T]:
        return iter(self._objects.values())

    def __len__(self) -> int:
        return len(self._objects)

    def changed_since(self, generation: int) -> set[str] | None:
        """Keys of what came, changed or went after ``generation``; None if that is too long ago to tell."""
        behind = self.generation - generation
        if behind > len(self._changes):
            return None
        return set(self._changes[-behind:]) if behind else set()

    def put(self, item: T) -> None:
        """Add or replace. For the cache alone."""
        self._changed(item.key)
        self._objects[item.key] = item
        self._by_namespace.setdefault(item.namespace, {})[item.name] = item

    def remove(self, item: T) -> None:
        """Forget, if present. For the cache alone."""
        if self._objects.pop(item.key, None) is None:
            return
        self._changed(item.key)
        siblings = self._by_namespace[item.namespace]
        del siblings[item.name]
        if not siblings:
            del self._by_namespace[item.namespace]

    def _changed(self, key: str) -> None:
        self.generation += 1
        self._changes.append(key)
        if len(self._changes) > 2 * KEEP:
            del self._changes[:KEEP]


class AssumingLister(Lister[T]):
    """A lister whose objects may be assumed to be what we are about to write, until the watch tells of them.

    An assumed object counts as long as what the watch knows has its resource version; anything newer wins over it.
    Source: pkg/scheduler/framework/plugins/volumebinding/passive_assume_cache.go.
    """

    def __init__(self) -> None:
        super().__init__()
        self._assumed: dict[str, T] = {}

    def latest(self, key: str) -> T | None:
        """The object as it is assumed to be, else as the watch told."""
        return self._assumed.get(key) or self._objects.get(key)

    def assume(self, item: T) -> None:
        """Count ``item`` as what its object is. Raises LookupError where the watch knows no such object, or one of
        another resource version."""
        known = self._objects.get(item.key)
        if known is None:
            raise LookupError(f'"{item.key}" not found')
        told, assumed = known.metadata.resource_version, item.metadata.resource_version
        if told != assumed:
            raise LookupError(f'"{item.key}" is out of sync (stored: {told}, assume: {assumed})')
        self._assumed[item.key] = item
        self._changed(item.key)

    def restore(self, item: T) -> None:
        """Take back that ``item`` is assumed, unless the assumed object has another resource version by now."""
        assumed = self._assumed.get(item.key)
        if assumed is not None and assumed.metadata.resource_version == item.metadata.resource_version:
            del self._assumed[item.key]
            self._changed(item.key)

    def put(self, item: T) -> None:
        """As in Lister; what was assumed of another resource version is forgotten."""
        assumed = self._assumed.get(item.key)
        if assumed is not None and assumed.metadata.resource_version != item.metadata.resource_version:
            del self._assumed[item.key]
        super().put(item)

    def remove(self, item: T) -> None:
        """As in Lister; what was assumed is forgotten."""
        self._assumed.pop(item.key, None)
        super().remove(item)


class WrittenLister(AssumingLister[T]):
    """Objects are assumed once they are written: what the server answered counts until the watch has caught up.

    Source: Assume and add in pkg/scheduler/util/assumecache/assume_cache.go.
    """

    def assume(self, item: T) -> None:
        """Count ``item``, which the server answered, as what its object is. Raises LookupError where the watch knows
        no such object, or a newer one."""
        known = self._objects.get(item.key)
        if known is None:
            raise LookupError(f'"{item.key}" not found')
        if _version(item) < _version(known):
            raise LookupError(f'"{item.key}" is out of sync')
        self._assumed[item.key] = item
        self._changed(item.key)

    def put(self, item: T) -> None:
        """As in Lister; what was assumed counts on while it is newer."""
        assumed = self._assumed.get(item.key)
        if assumed is not None and (_version(assumed) <= _version(item) or assumed.metadata.uid != item.metadata.uid):
            del self._assumed[item.key]
        Lister.put(self, item)


def _version(item: Object) -> int:
    version = item.metadata.resource_version
    return int(version) if version.isdecimal() else 0


class Listers:
    """One lister a kind, and the table of ``nodes`` with their pods; no event has told yet of those that are
    ``assumed``, by uid."""

    def __init__(self, nodes: NodeTable | None = None, assumed: Mapping[str, PodInfo] | None = None) -> None:
        self.nodes = NodeTable() if nodes is None else nodes
        self.assumed: Mapping[str, PodInfo] = {} if assumed is None else assumed
        self.namespaces: Lister[Namespace] = Lister()
        self.persistent_volumes: AssumingLister[PersistentVolume] = AssumingLister()
        self.persistent_volume_claims: AssumingLister[PersistentVolumeClaim] = AssumingLister()
        self.storage_classes: Lister[StorageClass] = Lister()
        self.csi_nodes: Lister[CSINode] = Lister()
        self.csi_drivers: Lister[CSIDriver] = Lister()
        self.csi_storage_capacities: Lister[CSIStorageCapacity] = Lister()
        self.volume_attachments: Lister[VolumeAttachment] = Lister()
        self.resource_claims: WrittenLister[ResourceClaim] = WrittenLister()
        self.resource_slices: Lister[ResourceSlice] = Lister()
        self.device_classes: Lister[DeviceClass] = Lister()
        self.services: Lister[Service] = Lister()
        self.replication_controllers: Lister[ReplicationController] = Lister()
        self.replica_sets: Lister[ReplicaSet] = Lister()
        self.stateful_sets: Lister[StatefulSet] = Lister()
        self.pod_disruption_budgets: Lister[PodDisruptionBudget] = Lister()
