"""The cluster as columns: one row a node, live.

Shapes: R resources, capacity C ≥ rows in use. A node keeps its row for life; freed rows are reused; C doubles.
Rows whose ``alive`` is False hold no node: they are free, or pods arrived before their node did (or outlived it).
Every write of a row enters a log: ``facts`` for what comes from the Node, ``usage`` for what comes from its pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

import numpy as np

from kube_pyscheduler.columns.arrays import Ids, Ints, Mask, RowIndex, grown
from kube_pyscheduler.columns.host_ports import HostPorts
from kube_pyscheduler.columns.images import Images
from kube_pyscheduler.columns.labels import LabelColumn
from kube_pyscheduler.columns.node_info import NodeInfo
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.columns.resources import column_amounts, new_resource_vocabulary
from kube_pyscheduler.columns.row_log import RowLog
from kube_pyscheduler.columns.vocabulary import ABSENT, Vocabulary
from kube_pyscheduler.columns.what_if import WhatIf
from kube_pyscheduler.objects.node import Node, Taint
from kube_pyscheduler.objects.quantity import parse_list, to_units

INITIAL_CAPACITY = 64

A = TypeVar("A")


class PodWatcher(Protocol):
    """Something that keeps counts of the pods on rows. What-ifs do not reach it."""

    def pod_added(self, row: int, info: PodInfo) -> None: ...

    def pod_removed(self, row: int, info: PodInfo) -> None: ...


class NodeTable:
    """See the module. One writer: the cache. Readers keep no array across writes: growing replaces columns."""

    def __init__(self) -> None:
        self.resources = new_resource_vocabulary()
        self.capacity = INITIAL_CAPACITY
        self.high = 0
        """Rows 0…high−1 are or were in use."""
        self.node_count = 0
        self.layout = 0
        """Grows when the columns are replaced by larger ones."""
        self.names: list[str] = []
        self.nodes: list[Node | None] = []
        self.pods: list[dict[str, PodInfo]] = []
        self.row_of: dict[str, int] = {}
        self.alive: Mask = np.zeros(self.capacity, dtype=np.bool_)
        resource_count = len(self.resources)
        self.allocatable: Ints = np.zeros((resource_count, self.capacity), dtype=np.int64)
        self.requested: Ints = np.zeros((resource_count, self.capacity), dtype=np.int64)
        self.nonzero_requested: Ints = np.zeros((2, self.capacity), dtype=np.int64)
        """Milli-CPU and bytes as scoring sees them: containers that ask for nothing count as 100m and 200Mi."""
        self.pod_count: Ints = np.zeros(self.capacity, dtype=np.int64)
        self.pod_limit: Ints = np.zeros(self.capacity, dtype=np.int64)
        self.unschedulable: Mask = np.zeros(self.capacity, dtype=np.bool_)
        self.taint_set: Ids = np.full(self.capacity, ABSENT, dtype=np.int32)
        self.taint_sets: Vocabulary[tuple[Taint, ...]] = Vocabulary()
        self.feature_set: Ids = np.full(self.capacity, ABSENT, dtype=np.int32)
        self.feature_sets: Vocabulary[frozenset[str]] = Vocabulary()
        self.images = Images()
        self.host_ports = HostPorts()
        self.facts = RowLog()
        self.usage = RowLog()
        self._columns: dict[str, LabelColumn] = {}
        self._watchers: list[PodWatcher] = []
        self._attached: dict[Callable[[NodeTable], Any], Any] = {}
        self._free: list[int] = []
        self._node_infos: dict[int, NodeInfo] = {}

    # Reading

    @property
    def all_rows(self) -> slice:
        return slice(0, self.high)

    def label_column(self, key: str) -> LabelColumn:
        """The column of a label key; made on first use, O(rows), kept up to date from then on."""
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = LabelColumn(key, self.capacity)
            for row, node in enumerate(self.nodes):
                if node is not None:
                    column.write(row, node.metadata.labels)
        return column

    def resource_row(self, name: str) -> int:
        """The row of a resource in ``allocatable`` and ``requested``."""
        row = self.resources.intern(name)
        self._fit_resources()
        return row

    def node_info(self, row: int) -> NodeInfo:
        """One live row as an object; kept until the row is written."""
        info = self._node_infos.get(row)
        if info is None:
            info = self._node_infos[row] = self._make_node_info(row, tuple(self.pods[row].values()))
        return info

    def changed_node_info(self, row: int, added: tuple[PodInfo, ...], removed: tuple[PodInfo, ...]) -> NodeInfo:
        """One live row as an object within a what-if that adds and removes these pods."""
        gone = {info.uid for info in removed}
        return self._make_node_info(row, (*(pod for uid, pod in self.pods[row].items() if uid not in gone), *added))

    def live_rows(self) -> Ints:
        """The rows that hold a node, ascending."""
        return np.flatnonzero(self.alive[: self.high])

    def watch_pods(self, watcher: PodWatcher) -> None:
        """Tell ``watcher`` of all pods on rows: those that are there now, and every change from now on."""
        self._watchers.append(watcher)
        for row, pods in enumerate(self.pods):
            for info in pods.values():
                watcher.pod_added(row, info)

    def attached(self, make: Callable[[NodeTable], A]) -> A:
        """What ``make`` built over this table; built on first use and shared by everybody who asks."""
        if make not in self._attached:
            self._attached[make] = make(self)
        built: A = self._attached[make]
        return built

    # Writing: nodes

    def set_node(self, node: Node) -> int:
        """Add a node or replace what is known of it. O(label columns). Raises QuantityError."""
        allocatable = parse_list(node.status.allocatable)
        row = self._row_for(node.name)
        if self.nodes[row] is None:
            self.node_count += 1
        columns = column_amounts(allocatable, self.resources)
        self._fit_resources()
        self.allocatable[:, row] = 0
        for resource, amount in columns.items():
            self.allocatable[resource, row] = amount
        self.pod_limit[row] = to_units(allocatable.get("pods", 0))
        self.unschedulable[row] = node.spec.unschedulable
        self.taint_set[row] = self.taint_sets.intern(node.spec.taints)
        self.feature_set[row] = self.feature_sets.intern(frozenset(node.status.declared_features))
        for column in self._columns.values():
            column.write(row, node.metadata.labels)
        self.images.set_row(row, node.status.images)
        self.nodes[row] = node
        self.alive[row] = True
        self._wrote(row, self.facts)
        return row

    def remove_node(self, name: str) -> None:
        """The node is gone; its row lives on while pods are on it. Unknown names are ignored."""
        row = self.row_of.get(name)
        if row is None or self.nodes[row] is None:
            return
        self.node_count -= 1
        self.nodes[row] = None
        self.alive[row] = False
        self.allocatable[:, row] = 0
        self.pod_limit[row] = 0
        self.unschedulable[row] = False
        self.taint_set[row] = ABSENT
        self.feature_set[row] = ABSENT
        for column in self._columns.values():
            column.ids[row] = ABSENT
        self.images.set_row(row, ())
        self._wrote(row, self.facts)
        self._release(row)

    # Writing: pods

    def add_pod(self, info: PodInfo, node: str) -> int:
        """Charge a pod to a node, known or not. O(resources and ports of the pod)."""
        row = self._row_for(node)
        self.pods[row][info.uid] = info
        self._charge(row, info, 1)
        self._wrote(row, self.usage)
        for watcher in self._watchers:
            watcher.pod_added(row, info)
        return row

    def remove_pod(self, info: PodInfo, node: str) -> None:
        """Give back what ``add_pod`` charged for the same PodInfo."""
        row = self.row_of[node]
        del self.pods[row][info.uid]
        self._charge(row, info, -1)
        self._wrote(row, self.usage)
        for watcher in self._watchers:
            watcher.pod_removed(row, info)
        self._release(row)

    def swap_pod(self, info: PodInfo, node: str) -> None:
        """Replace a pod by a newer version of itself that charges the same. The row counts as unwritten."""
        row = self.row_of[node]
        old = self.pods[row][info.uid]
        self.pods[row][info.uid] = info
        self._node_infos.pop(row, None)
        for watcher in self._watchers:
            watcher.pod_removed(row, old)
            watcher.pod_added(row, info)

    @contextmanager
    def what_if(self, rows: RowIndex) -> Iterator[WhatIf]:
        """Usage columns of ``rows`` changed for a moment; everything is as before when the block ends. Nothing enters
        the logs, and ``pods`` stays as it is."""
        change = WhatIf(self, rows)
        try:
            yield change
        finally:
            change.undo()

    # Inside

    def _make_node_info(self, row: int, pods: tuple[PodInfo, ...]) -> NodeInfo:
        node = self.nodes[row]
        if node is None:
            raise LookupError(f"row {row} holds no node")
        names = self.resources.values
        return NodeInfo(
            node=node,
            pods=pods,
            allocatable=dict(zip(names, self.allocatable[:, row].tolist(), strict=False)),
            requested=dict(zip(names, self.requested[:, row].tolist(), strict=False)),
            allowed_pods=int(self.pod_limit[row]),
        )

    def _row_for(self, name: str) -> int:
        row = self.row_of.get(name)
        if row is not None:
            return row
        if self._free:
            row = self._free.pop()
            self.names[row] = name
        else:
            row = self.high
            if row == self.capacity:
                self._grow()
            self.high += 1
            self.names.append(name)
            self.nodes.append(None)
            self.pods.append({})
        self.row_of[name] = row
        return row

    def _release(self, row: int) -> None:
        """Free a row that neither a node nor a pod needs."""
        if self.nodes[row] is None and not self.pods[row]:
            del self.row_of[self.names[row]]
            self.names[row] = ""
            self._free.append(row)

    def _charge(self, row: int, info: PodInfo, sign: int) -> None:
        demand = info.demand
        columns = demand.columns(self.resources)
        self._fit_resources()
        requested = self.requested
        for resource, amount in columns.items():
            requested[resource, row] += sign * amount
        cpu, memory = demand.non_zero
        self.nonzero_requested[0, row] += sign * cpu
        self.nonzero_requested[1, row] += sign * memory
        self.pod_count[row] += sign
        if info.host_ports:
            self.host_ports.change(row, info.host_ports, sign)

    def _wrote(self, row: int, log: RowLog) -> None:
        log.append(row)
        self._node_infos.pop(row, None)

    def _fit_resources(self) -> None:
        missing = len(self.resources) - self.allocatable.shape[0]
        if missing > 0:
            # Nobody had this resource so far, so the new cells are 0.
            extra = np.zeros((missing, self.capacity), dtype=np.int64)
            self.allocatable = np.concatenate((self.allocatable, extra))
            self.requested = np.concatenate((self.requested, extra))

    def _grow(self) -> None:
        capacity = self.capacity * 2
        arrays: dict[str, Any] = {
            name: grown(getattr(self, name), capacity, fill)
            for name, fill in (
                ("alive", 0),
                ("allocatable", 0),
                ("requested", 0),
                ("nonzero_requested", 0),
                ("pod_count", 0),
                ("pod_limit", 0),
                ("unschedulable", 0),
                ("taint_set", ABSENT),
                ("feature_set", ABSENT),
            )
        }
        for name, array in arrays.items():
            setattr(self, name, array)
        for column in self._columns.values():
            column.ids = grown(column.ids, capacity, ABSENT)
        self.capacity = capacity
        self.layout += 1
