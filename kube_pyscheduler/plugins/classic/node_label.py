"""NodeLabel: nodes must have some labels and lack others, or had better.

Source: pkg/scheduler/framework/plugins/nodelabel of 1.22; before that the predicate CheckNodeLabelPresence and custom
priorities with ``labelPreference``.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from kube_pyscheduler.columns.arrays import Codes, Rows, Scores
from kube_pyscheduler.columns.labels import LabelColumn
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.columns.vocabulary import ABSENT
from kube_pyscheduler.config.decode import read_struct
from kube_pyscheduler.framework.cluster_event import (
    Action,
    ClusterEvent,
    EventRegistration,
    QueueingHint,
    Resource,
    queue_if,
)
from kube_pyscheduler.framework.interfaces import (
    MAX_NODE_SCORE,
    CycleContext,
    FilterKernel,
    NodeFilter,
    NodeScore,
    Scope,
    ScoreKernel,
)
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.framework.status import Status, unresolvable
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.plugins.classic.arguments import NodeLabelArgs

Wishes = Sequence[tuple[str, bool]]
"""(label key, whether nodes should have it)."""


class _Labels:
    def __init__(self, table: NodeTable, wishes: Wishes) -> None:
        self._columns: list[tuple[LabelColumn, bool]] = [(table.label_column(key), wanted) for key, wanted in wishes]

    def granted(self, table: NodeTable, rows: Rows) -> Scores:
        """int64[len(rows)]: how many wishes a node grants."""
        granted = np.zeros(len(table.alive[rows]), dtype=np.int64)
        for column, wanted in self._columns:
            granted += (column.ids[rows] != ABSENT) == wanted
        return granted


class LabelPresenceKernel(FilterKernel):
    reads_usage = False
    statuses = (unresolvable("node(s) didn't have the requested labels"),)

    def __init__(self, table: NodeTable, wishes: Wishes) -> None:
        self._labels = _Labels(table, wishes)
        self._count = len(wishes)

    def codes(self, table: NodeTable, rows: Rows) -> Codes:
        return (self._labels.granted(table, rows) < self._count).astype(np.uint8)


class LabelPreferenceKernel(ScoreKernel):
    """The share of the wishes that a node grants."""

    reads_usage = False
    dtype = np.int8

    def __init__(self, table: NodeTable, wishes: Wishes) -> None:
        self._labels = _Labels(table, wishes)
        self._count = len(wishes)

    def scores(self, table: NodeTable, rows: Rows) -> Scores:
        # Without wishes every share of them is granted to nobody.
        return MAX_NODE_SCORE * self._labels.granted(table, rows) // max(self._count, 1)


class NodeLabel(NodeFilter, NodeScore):
    name = "NodeLabel"
    scope = Scope.NODE

    def __init__(self, args: Any = None) -> None:
        read = read_struct(NodeLabelArgs, args, "args")
        _refuse_contradictions(read.present_labels, read.absent_labels)
        _refuse_contradictions(read.present_labels_preference, read.absent_labels_preference)
        self._demands = [(key, True) for key in read.present_labels] + [(key, False) for key in read.absent_labels]
        self._preferences = [(key, True) for key in read.present_labels_preference]
        self._preferences += [(key, False) for key in read.absent_labels_preference]

    def fragment(self, pod: PodInfo) -> Hashable:
        return None

    def filter_kernel(self, ctx: CycleContext, pod: PodInfo) -> FilterKernel | None:
        return LabelPresenceKernel(ctx.table, self._demands) if self._demands else None

    def score_kernel(self, ctx: CycleContext, pod: PodInfo) -> ScoreKernel | Status:
        return LabelPreferenceKernel(ctx.table, self._preferences)

    def events(self) -> Sequence[EventRegistration]:
        event = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
        return (EventRegistration(event, self._labelled_now, _nothing),)

    def _labelled_now(self, pod: Pod, old: Node | None, new: Node, view: Listers) -> QueueingHint:
        return queue_if(self._is_fit(new) and (old is None or not self._is_fit(old)))

    def _is_fit(self, node: Node) -> bool:
        return all((key in node.metadata.labels) == wanted for key, wanted in self._demands)


def _nothing(pod: Pod) -> Hashable:
    """All pods are refused alike."""
    return None


def _refuse_contradictions(present: Sequence[str], absent: Sequence[str]) -> None:
    """Source: ValidateNodeLabelArgs in pkg/scheduler/apis/config/validation."""
    both = sorted(set(present) & set(absent))
    if both:
        raise ValueError(f"labels are wanted both present and absent: {', '.join(both)}")
