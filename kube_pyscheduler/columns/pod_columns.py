"""The pods on nodes as columns, for preemption: one slot a pod, freed slots are used again."""

from __future__ import annotations

from datetime import datetime

import numpy as np

from kube_pyscheduler.columns.arrays import Ints, Mask, RowIndex, grown
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.columns.what_if import Charges
from kube_pyscheduler.objects.pod import Pod

INITIAL_SLOTS = 256

NOT_STARTED = 2**62
"""Start of pods that have not started: later than all others."""

NOWHERE = -1


class PodColumns:
    """Get it with ``table.attached(PodColumns)``. O(resources of the pod) a change.

    ``row``: int64[S], the pod's row, −1 in free slots. ``priority``: int64[S]. ``start``: int64[S], seconds since the
    epoch. ``infos``: the pods.
    """

    def __init__(self, table: NodeTable) -> None:
        self._resources = table.resources
        self._slot_of: dict[str, int] = {}
        self._free: list[int] = []
        self.infos: list[PodInfo | None] = []
        self.row: RowIndex = np.full(INITIAL_SLOTS, NOWHERE, dtype=np.int64)
        self.priority: Ints = np.zeros(INITIAL_SLOTS, dtype=np.int64)
        self.start: Ints = np.zeros(INITIAL_SLOTS, dtype=np.int64)
        self._requested: Ints = np.zeros((len(table.resources), INITIAL_SLOTS), dtype=np.int64)
        self._non_zero: Ints = np.zeros((2, INITIAL_SLOTS), dtype=np.int64)
        self._has_ports: Mask = np.zeros(INITIAL_SLOTS, dtype=np.bool_)
        table.watch_pods(self)

    def __len__(self) -> int:
        """Pods on nodes, known ones or not."""
        return len(self._slot_of)

    # Reading

    def info(self, slot: int) -> PodInfo:
        """The pod in a slot that is in use."""
        info = self.infos[slot]
        assert info is not None
        return info

    def has_below(self, priority: int) -> bool:
        """Whether some pod has a lower priority."""
        used = len(self.infos)
        return bool(((self.row[:used] != NOWHERE) & (self.priority[:used] < priority)).any())

    def below(self, priority: int, place: RowIndex) -> RowIndex:
        """Slots of the pods of lower priority on some rows: by the place of their row, and on each row the more
        important first. ``place``: int64[capacity], −1 for rows that are not asked for.

        Of two pods the one of higher priority is more important, then the one that runs longer. Among pods that are
        equal so far, which upstream takes as they come, it is the first by name.

        Source: MoreImportantPod in pkg/scheduler/util/utils.go. O(pods) in array steps, O(equal pods) in Python.
        """
        used = self.row[: len(self.infos)]
        slots = np.flatnonzero((used != NOWHERE) & (self.priority[: len(used)] < priority))
        places = place[used[slots]]
        slots, places = slots[places >= 0], places[places >= 0]
        order = np.lexsort((self.start[slots], -self.priority[slots], places))
        slots, places = slots[order], places[order]
        return self._by_name_where_equal(slots, places)

    def charges(self, slots: RowIndex) -> Charges:
        """What these pods take. Slots of one row must stand together."""
        rows = self.row[slots]
        firsts = np.flatnonzero(np.concatenate(([True], rows[1:] != rows[:-1])))
        if len(firsts) == len(slots):
            requested, non_zero = self._requested[:, slots], self._non_zero[:, slots]
            count = np.ones(len(slots), dtype=np.int64)
        else:
            requested = np.add.reduceat(self._requested[:, slots], firsts, axis=1)
            non_zero = np.add.reduceat(self._non_zero[:, slots], firsts, axis=1)
            count = np.diff(np.append(firsts, len(slots)))
        with_ports = slots[self._has_ports[slots]].tolist()
        ports = tuple((self.row.item(slot), self.info(slot).host_ports) for slot in with_ports)
        return Charges(rows[firsts], requested, non_zero, count, ports)

    def _by_name_where_equal(self, slots: RowIndex, places: RowIndex) -> RowIndex:
        priority, start = self.priority[slots], self.start[slots]
        equal = (places[1:] == places[:-1]) & (priority[1:] == priority[:-1]) & (start[1:] == start[:-1])
        if not equal.any():
            return slots
        edges = np.diff(np.concatenate(([False], equal, [False])).astype(np.int8))
        for first, last in zip(np.flatnonzero(edges == 1).tolist(), np.flatnonzero(edges == -1).tolist(), strict=True):
            group = slots[first : last + 1].tolist()
            slots[first : last + 1] = sorted(group, key=lambda slot: self.info(slot).key)
        return slots

    # Told by the table

    def pod_added(self, row: int, info: PodInfo) -> None:
        columns = info.demand.columns(self._resources)
        slot = self._free.pop() if self._free else self._new_slot()
        if len(self._resources) > len(self._requested):
            extra = np.zeros((len(self._resources) - len(self._requested), len(self.row)), dtype=np.int64)
            self._requested = np.concatenate((self._requested, extra))
        self._slot_of[info.uid] = slot
        self.infos[slot] = info
        self.row[slot] = row
        self.priority[slot] = info.pod.priority
        self.start[slot] = started(info.pod.status.start_time)
        self._requested[:, slot] = 0
        for resource, amount in columns.items():
            self._requested[resource, slot] = amount
        self._non_zero[:, slot] = info.demand.non_zero
        self._has_ports[slot] = bool(info.host_ports)

    def pod_removed(self, row: int, info: PodInfo) -> None:
        slot = self._slot_of.pop(info.uid)
        self.infos[slot] = None
        self.row[slot] = NOWHERE
        self._free.append(slot)

    def _new_slot(self) -> int:
        slot = len(self.infos)
        self.infos.append(None)
        if slot == len(self.row):
            size = 2 * slot
            self.row = grown(self.row, size, NOWHERE)
            self.priority = grown(self.priority, size)
            self.start = grown(self.start, size)
            self._requested = grown(self._requested, size)
            self._non_zero = grown(self._non_zero, size)
            self._has_ports = grown(self._has_ports, size)
        return slot


def may_send_away(table: NodeTable, pod: Pod) -> bool:
    """Whether there are pods that this one might preempt."""
    return pod.spec.preemption_policy != "Never" and table.attached(PodColumns).has_below(pod.priority)


def started(start_time: str) -> int:
    """Seconds since the epoch of a ``status.startTime``. A pod without one counts as starting now, or later."""
    if not start_time:
        return NOT_STARTED
    try:
        return int(datetime.fromisoformat(start_time).timestamp())
    except ValueError:
        return NOT_STARTED
