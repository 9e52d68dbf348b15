"""Where a pod's volumes still have a place. Source: CSILimits.Filter in nodevolumelimits/csi.go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from kube_pyscheduler.columns.arrays import Codes, Ids, Mask, RowIndex, Rows
from kube_pyscheduler.columns.csi_nodes import CSIFacts, CSINodeColumn
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.vocabulary import ABSENT, LookupTable
from kube_pyscheduler.framework.interfaces import FilterKernel, RowChange
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.framework.status import Code, Status, error, unschedulable
from kube_pyscheduler.plugins.node_volume_limits.attached import AttachedVolumes, Presence
from kube_pyscheduler.plugins.node_volume_limits.volumes import Counted, DriverVolume, uses_of

EXCEEDED = unschedulable("node(s) exceed max volume count")

NO_LIMIT = 2**31 - 1
BROKEN_PODS = 255
"""Code where pods on the node have volumes that cannot be told; their text is found when it is asked for."""


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
        self._by_driver: dict[str, set[DriverVolume]] = {}
        for counted in volumes:
            self._by_driver.setdefault(counted.volume.driver, set()).add(counted.volume)
        self._everywhere = {counted.volume.driver for counted in volumes if not counted.is_in_tree}
        """Drivers of volumes that count on nodes without a CSINode, too."""
        missing = [unschedulable(f"{driver} CSI driver is not installed on the node") for driver in self._required]
        self.statuses = (EXCEEDED, *missing, *(problem.status for problem in problems))
        self.may_fail = any(problem.status.code == Code.ERROR for problem in problems) or any(attached.broken_rows())

    def codes(self, table: NodeTable, rows: Rows) -> Codes:
        ids = self._column.ids[rows]
        codes = self._own_codes(ids)
        for driver, volumes in self._by_driver.items():
            brought: Ids = np.full(table.high, len(volumes), dtype=np.int32)
            for volume in volumes:
                for row, presence in self._attached.presence(volume).items():
                    brought[row] -= presence.uses > 0
            wanted = brought[rows]
            limits = LookupTable(self._column.vocabulary, _limit_of(driver), NO_LIMIT, np.int64).take(ids)
            exceeded = (wanted > 0) & (limits - wanted < self._attached.counts(driver)[rows])
            codes[exceeded & (codes == 0)] = 1
        self._mark_broken_pods(table, rows, codes)
        return codes

    def codes_if(self, table: NodeTable, rows: RowIndex, changes: Mapping[int, RowChange]) -> Codes:
        codes = self.codes(table, rows)
        for place, row in enumerate(rows.tolist()):
            change = changes.get(row)
            if change is not None and codes[place] <= 1:
                codes[place] = self._exceeded_if(row, change)
        return codes

    def explain(self, table: NodeTable, rows: RowIndex, codes: Codes) -> list[tuple[Status, RowIndex]]:
        broken = codes == BROKEN_PODS
        found = super().explain(table, rows[~broken], codes[~broken])
        for row in rows[broken].tolist():
            text = self._attached.problem(self._listers, table.pods[row].values())
            found.append((error(text), np.array([row], dtype=np.int64)))
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

    def _mark_broken_pods(self, table: NodeTable, rows: Rows, codes: Codes) -> None:
        """Where limits are counted at all, pods with unknowable volumes make the attempt fail."""
        broken = [row for row in self._attached.broken_rows() if self._limits_any(row)]
        if broken and self._by_driver:
            marked = np.zeros(table.high, dtype=np.bool_)
            marked[broken] = True
            codes[marked[rows] & (codes <= 1)] = BROKEN_PODS

    def _limits_any(self, row: int) -> bool:
        facts = self._column.facts(row)
        return facts is not None and bool(facts.limits)

    def _exceeded_if(self, row: int, change: RowChange) -> int:
        """1 where a limit is exceeded with other pods on one row."""
        facts = self._column.facts(row)
        if facts is None:
            return 0
        difference: Counter[DriverVolume] = Counter()
        for infos, sign in ((change.added, 1), (change.removed, -1)):
            for info in infos:
                for use in info.derived(uses_of):
                    found = self._attached.meaning(self._listers, use)
                    if isinstance(found, Counted):
                        difference[found.volume] += sign
        return int(any(self._exceeds(driver, row, facts, difference) for driver in self._by_driver))

    def _exceeds(self, driver: str, row: int, facts: CSIFacts, difference: Mapping[DriverVolume, int]) -> bool:
        limit = facts.limit(driver)
        if limit is None:
            return False
        current = int(self._attached.counts(driver)[row])
        for volume, uses in difference.items():
            if volume.driver == driver:
                before = self._attached.presence(volume).get(row, Presence())
                current += Presence(before.uses + uses, before.attachments).counts - before.counts
        wanted = 0
        for volume in self._by_driver[driver]:
            before = self._attached.presence(volume).get(row, Presence())
            wanted += before.uses + difference.get(volume, 0) <= 0
        return wanted > 0 and current + wanted > limit


def _concerned(ids: Ids, needs_csi_node: bool) -> Mask:
    concerned: Mask = ids != ABSENT if needs_csi_node else np.ones(len(ids), dtype=np.bool_)
    return concerned


def _limit_of(driver: str) -> Callable[[CSIFacts], int]:
    def limit(facts: CSIFacts) -> int:
        known = facts.limit(driver)
        return NO_LIMIT if known is None else known

    return limit


def _registers(driver: str) -> Callable[[CSIFacts], bool]:
    return lambda facts: driver in facts.drivers
