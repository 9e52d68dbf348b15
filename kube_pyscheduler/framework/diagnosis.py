"""Why a pod fits nowhere, and how kube-scheduler says it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from kube_pyscheduler.columns.arrays import RowIndex
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.framework.status import Code, Status, unresolvable

NO_NODES = "no nodes available to schedule pods"
"""Source: ErrNoNodesAvailable in pkg/scheduler/schedule_one.go."""


UNTRIED = unresolvable()
"""Of nodes that nothing is known about. Source: NewDefaultNodeToStatus in pkg/scheduler/framework/interface.go."""


@dataclass(slots=True)
class Diagnosis:
    """What was found out in one attempt that ended without a node.

    ``node_count``: nodes in the cluster. ``refusals``: each status with the rows it was given for; a row is in one
    of them at most. ``absent``: the status of all nodes in none of them. ``pre_filter_message`` and
    ``post_filter_message``: what these points had to say, or "".
    """

    node_count: int
    refusals: list[tuple[Status, RowIndex]] = field(default_factory=list)
    absent: Status | None = None
    unschedulable_plugins: set[str] = field(default_factory=set)
    pending_plugins: set[str] = field(default_factory=set)
    pre_filter_message: str = ""
    post_filter_message: str = ""

    def refuse(self, status: Status, rows: RowIndex) -> None:
        """Note a refusal, and whose events may lift it."""
        self.refusals.append((status, rows))
        self.blame(status)

    def blame(self, status: Status) -> None:
        """Remember whose events may help."""
        if not status.plugin:
            return
        if status.is_rejected:
            self.unschedulable_plugins.add(status.plugin)
        if status.code == Code.PENDING:
            self.pending_plugins.add(status.plugin)

    def status_of(self, row: int) -> Status:
        """What was said of one node."""
        for status, rows in self.refusals:
            if row in rows:
                return status
        return self.absent or UNTRIED

    def rows_with(self, code: Code, table: NodeTable) -> RowIndex:
        """The nodes that were refused with ``code``, ascending."""
        wanted = np.zeros(table.high, dtype=np.bool_)
        if (self.absent or UNTRIED).code == code:
            wanted[:] = table.alive[: table.high]
        for status, rows in self.refusals:
            wanted[rows] = status.code == code
        return np.flatnonzero(wanted)

    def by_node(self, table: NodeTable) -> Iterator[tuple[str, Status]]:
        """Nodes that were tried, with their refusals. O(nodes) Python steps: for explanations, not for cycles."""
        for status, rows in self.refusals:
            for row in rows.tolist():
                yield table.names[row], status

    def message(self) -> str:
        """The text of the FailedScheduling event before it is cut.

        Source: FitError.Error in pkg/scheduler/framework/types.go.
        """
        text = f"0/{self.node_count} nodes are available:"
        if self.pre_filter_message:
            text += f" {self.pre_filter_message}."
        else:
            counts: Counter[str] = Counter()
            explained = 0
            for status, rows in self.refusals:
                explained += len(rows)
                for reason in status.reasons:
                    counts[reason] += len(rows)
            if explained < self.node_count and self.absent is not None:
                for reason in self.absent.reasons:
                    counts[reason] += self.node_count - explained
            # The finished phrases are sorted, as upstream does: "10 …" comes before "2 …".
            phrases = sorted(f"{count} {reason}" for reason, count in counts.items())
            if phrases:
                text += f" {', '.join(phrases)}."
        if self.post_filter_message:
            text += f" {self.post_filter_message}"
        return text
