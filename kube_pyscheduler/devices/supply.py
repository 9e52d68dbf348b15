"""How many devices of a class each node sees, and how many of these are taken: for scores, not for decisions.

So all slices count, of old generations and of pools that are not whole too.
Source: calculateDRAResourceTotals in pkg/scheduler/framework/plugins/noderesources/resource_allocation.go. It keeps
what selectors once said of a device of the same name; here they are asked again where a device says something else.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from kube_pyscheduler.cel.errors import CompileError, EvaluationError
from kube_pyscheduler.cel.reads import Path
from kube_pyscheduler.cel.selector import Selector, compiled, subject_of
from kube_pyscheduler.columns.arrays import Ints, Mask, RowIndex, grown
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.devices.allocated import AllocatedDevices
from kube_pyscheduler.devices.inventory import Inventory
from kube_pyscheduler.devices.slices import DeviceInfo, SliceInfo
from kube_pyscheduler.objects.resource import DeviceClass

KEEP = 8192
"""Answers about slices kept at most."""

Answers = Sequence[bool | None]
"""Whether each device of a slice is of the class; None where the class's selectors fail."""


class Supply:
    """The devices that serve one extended resource. ``capacity``, ``taken``: int64[C], 0 where a selector fails.
    ``version`` grows when they change."""

    def __init__(self, table: NodeTable, inventory: Inventory, allocated: AllocatedDevices) -> None:
        self.capacity: Ints = np.zeros(table.capacity, dtype=np.int64)
        self.taken: Ints = np.zeros(table.capacity, dtype=np.int64)
        self.version = 0
        self._table = table
        self._inventory = inventory
        self._allocated = allocated
        self._class: DeviceClass | None = None
        self._selectors: list[Selector | CompileError] = []
        self._paths: tuple[Path, ...] | None = ()
        self._answers: dict[Hashable, Answers] = {}
        self._placed_seen = -1
        self._taken_seen = -1

    def sync(self, device_class: DeviceClass | None) -> None:
        """``device_class``: the one that offers the resource. Cost: the nodes that see changed slices, or pools in
        which devices were taken or given back; all nodes where the class changed."""
        if device_class is not self._class:
            self._follow(device_class)
        rows = self._changed_rows()
        if not len(rows):
            return
        self.version += 1
        self.capacity = grown(self.capacity, self._table.capacity)
        self.taken = grown(self.taken, self._table.capacity)
        self.capacity[rows], self.taken[rows] = self._counts(rows)

    def _follow(self, device_class: DeviceClass | None) -> None:
        self._class = device_class
        selectors = device_class.spec.selectors if device_class is not None else ()
        self._selectors = [compiled(selector.cel.expression) for selector in selectors if selector.cel is not None]
        self._paths = _read_by(self._selectors)
        self._answers.clear()
        self._placed_seen = -1

    def _changed_rows(self) -> RowIndex:
        inventory, allocated = self._inventory, self._allocated
        placed = inventory.placed.since(self._placed_seen) if self._placed_seen >= 0 else None
        pools = allocated.changed_since(self._taken_seen) if self._taken_seen >= 0 else None
        self._placed_seen, self._taken_seen = inventory.placed.position, allocated.position
        everything = np.arange(self._table.high, dtype=np.int64)
        if placed is None or pools is None:
            return everything
        rows = set(placed.tolist())
        for info in [info for pool in pools for info in inventory.slices_of(pool)]:
            if not info.local_node:
                return everything
            if info.local_node in self._table.row_of:
                rows.add(self._table.row_of[info.local_node])
        return np.array(sorted(rows), dtype=np.int64)

    def _counts(self, rows: RowIndex) -> tuple[Ints, Ints]:
        table = self._table
        counts = np.zeros((2, len(rows)), dtype=np.int64)
        if self._class is None:
            return counts[0], counts[1]
        fails: Mask = np.zeros(len(rows), dtype=np.bool_)
        for shared in self._inventory.shared():
            masks = shared.masks(rows) | shared.is_for_nobody
            answers = self._answers_for(shared.info)
            for place, device in enumerate(shared.info.devices):
                mask = masks[:, place if shared.has_choosy_devices else 0]
                if answers[place] is None:
                    fails |= mask
                elif answers[place]:
                    counts[0] += mask
                    counts[1] += mask & self._is_taken(device)
        for number, row in enumerate(rows.tolist()):
            for info in self._inventory.local_of(table.names[row]):
                answers = self._answers_for(info)
                found = [device for device, answer in zip(info.devices, answers, strict=True) if answer]
                counts[0, number] += len(found)
                counts[1, number] += sum(self._is_taken(device) for device in found)
                fails[number] |= None in answers
        counts[:, fails | ~table.alive[rows]] = 0
        return counts[0], counts[1]

    def _is_taken(self, device: DeviceInfo) -> bool:
        return self._allocated.use_of(device.pool).is_taken(device.name)

    def _answers_for(self, info: SliceInfo) -> Answers:
        looks: Hashable = info.everything
        if self._paths is not None:
            looks = tuple([info.column(path) for path in self._paths])
        key = info.pool_id[0], len(info.devices), looks
        answers = self._answers.get(key)
        if answers is None:
            if len(self._answers) >= KEEP:
                self._answers.clear()
            answers = self._answers[key] = [self._answer(device) for device in info.devices]
        return answers

    def _answer(self, device: DeviceInfo) -> bool | None:
        subject = subject_of(device.device, device.pool[0], shares=False)
        for selector in self._selectors:
            if isinstance(selector, CompileError):
                return None
            try:
                if not selector.matches(subject):
                    return False
            except EvaluationError:
                return None
        return True


def _read_by(selectors: Sequence[Selector | CompileError]) -> tuple[Path, ...] | None:
    """What the selectors look at; None is everything."""
    reads = [selector.reads for selector in selectors if isinstance(selector, Selector)]
    if any(each.everything for each in reads):
        return None
    return tuple(sorted({path for each in reads for path in each.paths}))
