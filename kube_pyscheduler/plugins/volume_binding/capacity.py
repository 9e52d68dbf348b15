"""Where drivers have room for new volumes. Source: hasEnoughCapacity in volumebinding/binder.go."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kube_pyscheduler.columns.arrays import Ints, Rows, grown
from kube_pyscheduler.columns.labels import LabelColumn
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.framework.listers import Lister
from kube_pyscheduler.objects.quantity import RawQuantity, parse_milli, to_units
from kube_pyscheduler.objects.selectors import NodeSelector
from kube_pyscheduler.objects.storage import CSIStorageCapacity
from kube_pyscheduler.plugins.volume_binding.topology import Matchers, label_keys, labelled_nodes, one_label

NO_ROOM = -1


def volume_limit(capacity: CSIStorageCapacity) -> RawQuantity | None:
    """The size a new volume may have; None where that is not known. Source: volumeLimit."""
    return capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size


class LabelRoom:
    """Capacity objects for nodes with certain values of one label; the largest room wins."""

    def __init__(self, column: LabelColumn) -> None:
        self.column = column
        self._by_value: dict[int, dict[str, int]] = {}
        self._room: Ints = np.full(1, NO_ROOM, dtype=np.int64)
        """By value; the last cell is for "absent"."""

    def set(self, key: str, values: frozenset[str], limit: int | None) -> None:
        """Take in what the object ``key`` says of its ``values``; None takes it back."""
        for value in values:
            number = self.column.vocabulary.intern(value)
            limits = self._by_value.setdefault(number, {})
            if limit is None:
                limits.pop(key, None)
            else:
                limits[key] = limit
            self._fit()
            self._room[number] = max(limits.values(), default=NO_ROOM)

    def room(self, rows: Rows) -> Ints:
        """int64[len(rows)], bytes."""
        self._fit()
        room: Ints = self._room[self.column.ids[rows]]
        return room

    def _fit(self) -> None:
        size = len(self.column.vocabulary) + 1
        if len(self._room) < size:
            self._room = grown(self._room, 2 * size, NO_ROOM)


class ClassRoom:
    """The capacity objects of one storage class."""

    def __init__(self, table: NodeTable, matchers: Matchers) -> None:
        self._table = table
        self._matchers = matchers
        self._by_label: dict[str, LabelRoom] = {}
        self._others: dict[str, tuple[NodeSelector, int]] = {}
        self.node_labels: set[str] = set()
        """All labels of nodes that objects look at, or ever did."""

    def set(self, key: str, nodes: NodeSelector, limit: int | None) -> None:
        """Take in what the object ``key`` says of ``nodes``: bytes; None takes it back."""
        self.node_labels.update(label_keys(nodes))
        simple = one_label(nodes)
        if simple is not None:
            label, values = simple
            if label not in self._by_label:
                self._by_label[label] = LabelRoom(self._table.label_column(label))
            self._by_label[label].set(key, values, limit)
        elif limit is None:
            self._others.pop(key, None)
        else:
            self._others[key] = nodes, limit

    def room(self, rows: Rows) -> Ints:
        """int64[len(rows)]: the size in bytes of the largest volume that can be made for each node, or NO_ROOM."""
        found = np.full(len(self._table.alive[rows]), NO_ROOM, dtype=np.int64)
        for by_label in self._by_label.values():
            found = np.maximum(found, by_label.room(rows))
        for nodes, limit in self._others.values():
            found = np.maximum(found, np.where(self._matchers.mask(nodes, rows), limit, NO_ROOM))
        return found


class StorageRoom:
    """All capacity objects, by storage class; follows their lister."""

    def __init__(self, table: NodeTable, matchers: Matchers) -> None:
        self._table = table
        self._matchers = matchers
        self._generation = 0
        self._classes: dict[str, ClassRoom] = {}
        self._known: dict[str, tuple[str, NodeSelector]] = {}

    def sync(self, capacities: Lister[CSIStorageCapacity]) -> None:
        """Cost: the objects that changed."""
        changed = capacities.changed_since(self._generation)
        self._generation = capacities.generation
        if changed is None:
            changed = {*self._known, *(capacity.key for capacity in capacities)}
        for key in changed:
            known = self._known.pop(key, None)
            if known is not None:
                self._classes[known[0]].set(key, known[1], None)
            capacity = capacities.get(key)
            limit = volume_limit(capacity) if capacity is not None else None
            if capacity is None or capacity.node_topology is None or limit is None:
                continue
            nodes = labelled_nodes(capacity.node_topology)
            self._known[key] = capacity.storage_class_name, nodes
            room = self._classes.get(capacity.storage_class_name)
            if room is None:
                room = self._classes[capacity.storage_class_name] = ClassRoom(self._table, self._matchers)
            room.set(key, nodes, to_units(parse_milli(limit)))

    def node_labels(self, storage_class: str) -> Iterable[str]:
        """The labels of nodes that matter for the room of a class."""
        room = self._classes.get(storage_class)
        return () if room is None else room.node_labels

    def room(self, storage_class: str, rows: Rows) -> Ints:
        """int64[len(rows)]: as ``ClassRoom.room``, for volumes of a class."""
        room = self._classes.get(storage_class)
        return np.full(len(self._table.alive[rows]), NO_ROOM, dtype=np.int64) if room is None else room.room(rows)
