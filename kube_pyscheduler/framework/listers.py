"""What plugins may look up besides nodes: objects by key and by namespace, already updated by every event so far."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from kube_pyscheduler.objects.group import (
    Namespace,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from kube_pyscheduler.objects.meta import Object
from kube_pyscheduler.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)

T = TypeVar("T", bound=Object)


class Lister(Generic[T]):
    """Objects of one kind by ``namespace/name`` (or name). ``generation`` grows with every change.

    Plugins read; only the cache writes.
    """

    def __init__(self) -> None:
        self._objects: dict[str, T] = {}
        self._by_namespace: dict[str, dict[str, T]] = {}
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

    def put(self, item: T) -> None:
        """Add or replace. For the cache alone."""
        self.generation += 1
        self._objects[item.key] = item
        self._by_namespace.setdefault(item.namespace, {})[item.name] = item

    def remove(self, item: T) -> None:
        """Forget, if present. For the cache alone."""
        if self._objects.pop(item.key, None) is None:
            return
        self.generation += 1
        siblings = self._by_namespace[item.namespace]
        del siblings[item.name]
        if not siblings:
            del self._by_namespace[item.namespace]


class Listers:
    """One lister a kind."""

    def __init__(self) -> None:
        self.namespaces: Lister[Namespace] = Lister()
        self.persistent_volumes: Lister[PersistentVolume] = Lister()
        self.persistent_volume_claims: Lister[PersistentVolumeClaim] = Lister()
        self.storage_classes: Lister[StorageClass] = Lister()
        self.csi_nodes: Lister[CSINode] = Lister()
        self.csi_drivers: Lister[CSIDriver] = Lister()
        self.csi_storage_capacities: Lister[CSIStorageCapacity] = Lister()
        self.services: Lister[Service] = Lister()
        self.replication_controllers: Lister[ReplicationController] = Lister()
        self.replica_sets: Lister[ReplicaSet] = Lister()
        self.stateful_sets: Lister[StatefulSet] = Lister()
        self.pod_disruption_budgets: Lister[PodDisruptionBudget] = Lister()
