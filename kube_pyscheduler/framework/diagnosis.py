"""Why a pod fits nowhere, and how kube-scheduler says it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from kube_pyscheduler.framework.status import Status

NO_NODES = "no nodes available to schedule pods"
"""Source: ErrNoNodesAvailable in pkg/scheduler/schedule_one.go."""


@dataclass(slots=True)
class Diagnosis:
    """What was found out in one attempt that ended without a node.

    ``statuses``: node name → its first refusal. ``absent``: the status of all nodes that are not in there.
    ``pre_filter_message``: why PreFilter refused, "" when it did not.
    """

    node_count: int
    statuses: dict[str, Status] = field(default_factory=dict)
    absent: Status | None = None
    unschedulable_plugins: set[str] = field(default_factory=set)
    pending_plugins: set[str] = field(default_factory=set)
    pre_filter_message: str = ""
    post_filter_message: str = ""

    def blame(self, status: Status) -> None:
        """Remember whose events may help."""
        if status.plugin and status.is_rejected:
            self.unschedulable_plugins.add(status.plugin)
            if status.code.name == "PENDING":
                self.pending_plugins.add(status.plugin)

    def status_of(self, node: str) -> Status | None:
        """The refusal of ``node``, also when it was never tried."""
        return self.statuses.get(node, self.absent)

    def refused(self) -> Iterator[tuple[str, Status]]:
        """Nodes that were tried, with their refusals."""
        return iter(self.statuses.items())

    def message(self) -> str:
        """The text of the FailedScheduling event before it is cut.

        Source: FitError.Error in pkg/scheduler/framework/types.go.
        """
        text = f"0/{self.node_count} nodes are available:"
        if self.pre_filter_message:
            text += f" {self.pre_filter_message}."
        else:
            counts: Counter[str] = Counter()
            for status, nodes in Counter(self.statuses.values()).items():
                for reason in status.reasons:
                    counts[reason] += nodes
            missing = self.node_count - len(self.statuses)
            if missing > 0 and self.absent is not None:
                for reason in self.absent.reasons:
                    counts[reason] += missing
            # Upstream sorts the finished phrases, so "10 …" comes before "2 …".
            phrases = sorted(f"{count} {reason}" for reason, count in counts.items())
            if phrases:
                text += f" {', '.join(phrases)}."
        if self.post_filter_message:
            text += f" {self.post_filter_message}"
        return text
