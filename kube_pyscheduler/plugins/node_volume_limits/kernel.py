"""Where a pod's volumes still have a place. Source: CSILimits.Filter in nodevolumelimits/csi.go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from kube_pyscheduler.columns.arrays import Codes, Ids, Ints, Mask, RowIndex, Rows
from kube_pyscheduler.columns.csi_nodes import CSIFacts, CSINodeColumn
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.columns.vocabulary import ABSENT, LookupTable
from kube_pyscheduler.framework.interfaces import FilterKernel, RowChange, RowChanges
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.framework.row_changes import NO_CHANGES, UNCHANGED
from kube_pyscheduler.framework.status import Code, Status, error, unschedulable
from kube_pyscheduler.plugins.node_volume_limits.attached import AttachedVolumes, Presence
from kube_pyscheduler.plugins.node_volume_limits.volumes import Counted, DriverVolume, uses_of

EXCEEDED = unschedulable("node(s) exceed max volume count")

BROKEN_PODS = 255
"""Code where pods on the node have volumes that cannot be told; each row has a text of its own."""


class Problem(NamedTuple):
    """Why the pod's own volumes keep it away. ``is_in_tree``: only from nodes with a CSINode."""

    status: Status
    is_in_tree: bool = False


class VolumeLimitsKernel(FilterKernel):
    """``volumes``: what the pod brings, in so far as it counts; ``required``: drivers of these that must be registered
    on the node.

    Cost: a few array operations for each driver, and the rows that have one of the volumes already.
    """

    def __init__(
        self,
        table: NodeTable,
        column: CSINodeColumn,
        attached: AttachedVolumes,
        listers: Listers,
        volumes: Sequence[Counted],
        required: frozenset[str],
        problems: Sequence[Problem],
    ) -> None:
        self._column = column
        self._attached = attached
        self._listers = listers
        self._required = sorted(required)
        self._problems = problems
        self._broken: dict[int, str] = {}
        """By row: why volumes of its pods cannot be told."""
        self._by_driver: dict[str, set[DriverVolume]] = {}
        for counted in volumes:
            self._by_driver.setdefault(counted.volume.driver, set()).add(counted.volume)
        self._everywhere = {counted.volume.driver for counted in volumes if not counted.is_in_tree}
        """Drivers of volumes that count on nodes without a CSINode, too."""
        self._freed = {driver: partial(self._freed_by, driver=driver, table=table) for driver in self._by_driver}
        missing = [unschedulable(f"{driver} CSI driver is not installed on the node") for driver in self._required]
        self.statuses = (EXCEEDED, *missing, *(problem.status for problem in problems))
        self.may_fail = any(problem.status.code == Code.ERROR for problem in problems) or bool(attached.broken_rows())

    def codes(self, table: NodeTable, rows: Rows) -> Codes:
        codes = self._own_codes(self._column.ids[rows])
        for driver in self._by_driver:
            exceeded = self._exceeded(table, driver, rows, self._attached.counts(driver).volumes[rows])
            codes[exceeded & (codes == 0)] = 1
        self._mark_broken_pods(table, rows, codes, self._attached.broken_rows(), NO_CHANGES)
        return codes

    def codes_if(self, table: NodeTable, rows: RowIndex, changes: RowChanges) -> Codes:
        codes = self._own_codes(self._column.ids[rows])
        visited = changes.sums(rows, _uses_that_come) > 0
        for driver, volumes in self._by_driver.items():
            counts = self._attached.counts(driver)
            exceeded = self._exceeded(table, driver, rows, counts.volumes[rows])
            # The places of pods that go are free where each volume has one user, and where that is not one of ours.
            intricate = visited | (self._brought(table, driver)[rows] < len(volumes))
            intricate |= exceeded & (counts.shared[rows] > 0)
            relieved = np.flatnonzero(exceeded & ~intricate)
            if len(relieved):
                freed = changes.sums(rows[relieved], self._freed[driver])
                left = counts.volumes[rows[relieved]] + freed
                exceeded[relieved] = self._exceeded(table, driver, rows[relieved], left)
            for place in np.flatnonzero(intricate).tolist():
                row = int(rows[place])
                exceeded[place] = self._exceeds(driver, row, changes.get(row, UNCHANGED))
            codes[exceeded & (codes == 0)] = 1
        suspects = {*self._attached.broken_rows(), *rows[visited].tolist()}
        self._mark_broken_pods(table, rows, codes, suspects, changes)
        return codes

    def explain(self, table: NodeTable, rows: RowIndex, codes: Codes) -> list[tuple[Status, RowIndex]]:
        broken = codes == BROKEN_PODS
        found = super().explain(table, rows[~broken], codes[~broken])
        found += [(error(self._broken[row]), np.array([row], dtype=np.int64)) for row in rows[broken].tolist()]
        return found

    def _own_codes(self, ids: Ids) -> Codes:
        """What the pod's volumes say themselves, whatever else is on the nodes."""
        codes = np.zeros(len(ids), dtype=np.uint8)
        for number, problem in enumerate(self._problems, start=2 + len(self._required)):
            codes[(codes == 0) & _concerned(ids, problem.is_in_tree)] = number
        for number, driver in enumerate(self._required, start=2):
            registered = LookupTable(self._column.vocabulary, _registers(driver), False, np.bool_).take(ids)
            codes[(codes == 0) & ~registered & _concerned(ids, driver not in self._everywhere)] = number
        return codes

    def _mark_broken_pods(
        self, table: NodeTable, rows: Rows, codes: Codes, suspects: Iterable[int], changes: RowChanges
    ) -> None:
        """Where limits are counted at all, pods with volumes that cannot be told make the attempt fail."""
        if not self._by_driver:
            return
        marked = np.zeros(table.high, dtype=np.bool_)
        for row in suspects:
            facts = self._column.facts(row)
            if facts is None or not facts.limits:
                continue
            change = changes.get(row, UNCHANGED)
            gone = {info.uid for info in change.removed}
            left = [info for uid, info in table.pods[row].items() if uid not in gone]
            problem = self._attached.problem(self._listers, (*left, *change.added))
            if problem:
                self._broken[row] = problem
                marked[row] = True
        codes[marked[rows] & (codes <= 1)] = BROKEN_PODS

    def _brought(self, table: NodeTable, driver: str) -> Ids:
        """int32[high]: volumes of the driver that the pod brings to each row, where no other pod has them yet."""
        volumes = self._by_driver[driver]
        brought: Ids = np.full(table.high, len(volumes), dtype=np.int32)
        for volume in volumes:
            for row, presence in self._attached.presence(volume).items():
                brought[row] -= presence.uses > 0
        return brought

    def _exceeded(self, table: NodeTable, driver: str, rows: Rows, current: Ints | Ids) -> Mask:
        """bool[len(rows)]: where the pod brings too much to the ``current`` volumes of the driver."""
        brought = self._brought(table, driver)[rows]
        # So and not with a sum, which would overflow where there is no limit.
        exceeded: Mask = (brought > 0) & (self._column.limits(driver, rows) - brought < current)
        return exceeded

    def _exceeds(self, driver: str, row: int, change: RowChange) -> bool:
        """As ``_exceeded`` for one row with other pods on it, whatever they share."""
        facts = self._column.facts(row)
        limit = facts.limit(driver) if facts is not None else None
        if limit is None:
            return False
        difference: Counter[DriverVolume] = Counter()
        for infos, sign in ((change.added, 1), (change.removed, -1)):
            for info in infos:
                for volume in self._volumes_of(info, driver):
                    difference[volume] += sign
        current = int(self._attached.counts(driver).volumes[row])
        for volume, uses in difference.items():
            before = self._attached.presence(volume).get(row, Presence())
            current += Presence(before.uses + uses, before.attachments).counts - before.counts
        brought = 0
        for volume in self._by_driver[driver]:
            before = self._attached.presence(volume).get(row, Presence())
            brought += before.uses + difference[volume] <= 0
        return brought > 0 and current + brought > limit

    def _volumes_of(self, info: PodInfo, driver: str) -> list[DriverVolume]:
        """The volumes of the driver that a pod has, one entry a use."""
        found = [self._attached.meaning(self._listers, use) for use in info.derived(uses_of)]
        return [use.volume for use in found if isinstance(use, Counted) and use.volume.driver == driver]

    def _freed_by(self, info: PodInfo, *, driver: str, table: NodeTable) -> int:
        """How many places are free when the pod goes from its node, if it shares no volume."""
        row = table.row_of.get(info.pod.spec.node_name, -1)
        presences = [self._attached.presence(volume).get(row) for volume in self._volumes_of(info, driver)]
        return sum(presence is not None and not presence.attachments for presence in presences)


def _uses_that_come(info: PodInfo) -> int:
    """Volumes of pods that are on no node yet."""
    return 0 if info.pod.spec.node_name else len(info.derived(uses_of))


def _concerned(ids: Ids, needs_csi_node: bool) -> Mask:
    concerned: Mask = ids != ABSENT if needs_csi_node else np.ones(len(ids), dtype=np.bool_)
    return concerned


def _registers(driver: str) -> Callable[[CSIFacts], bool]:
    return lambda facts: driver in facts.drivers
