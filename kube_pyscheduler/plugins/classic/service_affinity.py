"""ServiceAffinity: the pods of a service on nodes that agree in some labels, or spread over the values of others.

Source: pkg/scheduler/framework/plugins/serviceaffinity of 1.22; before that the predicate CheckServiceAffinity and
custom priorities with ``serviceAntiAffinity``.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from kube_pyscheduler.columns.arrays import Codes, Floats, Ints, Mask, RowIndex, Rows, Scores
from kube_pyscheduler.columns.label_matcher import labels_matcher
from kube_pyscheduler.columns.labels import LabelColumn
from kube_pyscheduler.columns.node_selector import LabelsMatcher, row_numbers
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_classes import PodClasses, matches
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.columns.selector_index import Namespaces
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
from kube_pyscheduler.framework.cycle_state import StateKey
from kube_pyscheduler.framework.default_selector import DefaultSelectors
from kube_pyscheduler.framework.interfaces import (
    MAX_NODE_SCORE,
    CycleContext,
    FilterKernel,
    NodeFilter,
    NodeScore,
    PreScore,
    RowChanges,
    ScoreKernel,
)
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.framework.status import SKIP, Status, error, unschedulable
from kube_pyscheduler.objects.group import Service
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.plugins.classic.arguments import ServiceAffinityArgs
from kube_pyscheduler.plugins.classic.selector_spread import matching_pods

NO_ROW = 2**62
"""In place of a row: behind all rows."""


class Fellows:
    """The pods on nodes that have all labels of a pod, in its namespace; whether a service selects them is not asked.

    Upstream looks at whichever of them it lists first. Here that is one on the first row.
    """

    def __init__(self, table: NodeTable, pod: Pod) -> None:
        namespaces = Namespaces(frozenset((pod.namespace,)))
        self._question = ((namespaces, labels_matcher(pod.metadata.labels)),)
        counts = table.attached(PodClasses).counter(self._question, with_terminating=True).counts
        self._by_row: Ints = np.zeros(table.high, dtype=np.int64)
        self._by_row[counts.rows] = counts.counts
        rows = np.sort(counts.rows[table.alive[counts.rows]])
        self._first, self._second = [*rows[:2].tolist(), NO_ROW, NO_ROW][:2]

    def first(self, rows: RowIndex) -> RowIndex:
        """int64[len(rows)]: for each row the first row with such pods, or NO_ROW."""
        return np.full(len(rows), self._first, dtype=np.int64)

    def first_if(self, rows: RowIndex, changes: RowChanges) -> RowIndex:
        """As ``first``, in a world where the row's own pods are changed."""
        elsewhere: RowIndex = np.where(rows == self._first, self._second, self._first)
        here = self._by_row[rows] + changes.sums(rows, self._counts) > 0
        return np.where(here, np.minimum(rows, elsewhere), elsewhere)

    def _counts(self, info: PodInfo) -> int:
        meta = info.pod.metadata
        return int(matches(self._question, meta.namespace, meta.labels))


class ServiceAffinityKernel(FilterKernel):
    """``own``: the labels that the pod's nodeSelector names. ``open_keys``: those that its fellows decide, if there are
    ``fellows``."""

    statuses = (unschedulable("node(s) didn't match service affinity"),)

    def __init__(
        self, table: NodeTable, own: Mapping[str, str], open_keys: Sequence[str], fellows: Fellows | None
    ) -> None:
        self._own = LabelsMatcher(table, own)
        self._open: list[LabelColumn] = [table.label_column(key) for key in open_keys]
        self._fellows = fellows

    def codes(self, table: NodeTable, rows: Rows) -> Codes:
        numbers = row_numbers(table, rows)
        leaders = None if self._fellows is None else self._fellows.first(numbers)
        return self._codes(table, numbers, leaders)

    def codes_if(self, table: NodeTable, rows: RowIndex, changes: RowChanges) -> Codes:
        leaders = None if self._fellows is None else self._fellows.first_if(rows, changes)
        return self._codes(table, rows, leaders)

    def _codes(self, table: NodeTable, rows: RowIndex, leaders: RowIndex | None) -> Codes:
        fits = self._own.mask(table, rows)
        if leaders is not None:
            led = leaders != NO_ROW
            # Rows that nobody leads may be compared with themselves.
            leaders = np.where(led, leaders, rows)
            for column in self._open:
                wanted = column.ids[leaders]
                fits &= (wanted == ABSENT) | (wanted == column.ids[rows])
        return (~fits).astype(np.uint8)


class ServiceAntiAffinityKernel(ScoreKernel):
    """Final scores of all rows. ``counts``: int64[high], the service's pods. ``feasible``: bool[high]."""

    def __init__(self, table: NodeTable, labels: Sequence[str], counts: Ints, feasible: Mask) -> None:
        total: Floats = np.zeros(table.high, dtype=np.float64)
        for label in labels:
            total += _share_elsewhere(table.label_column(label), counts, feasible) / float(len(labels))
        self._scores = total.astype(np.int64)

    def scores(self, table: NodeTable, rows: Rows) -> Scores:
        return self._scores[rows]


def _share_elsewhere(column: LabelColumn, counts: Ints, feasible: Mask) -> Floats:
    """float64[high]: 100 × the share of the pods on feasible nodes that are under another value of the label; 100 where
    there are no pods, 0 for nodes without the label."""
    ids = column.ids[: len(counts)]
    everywhere = int(counts[feasible].sum())
    if everywhere:
        counted = feasible & (ids != ABSENT)
        by_value = np.bincount(ids[counted], counts[counted], len(column.vocabulary) + 1)
        shares = float(MAX_NODE_SCORE) * ((everywhere - by_value[ids]) / float(everywhere))
    else:
        shares = np.full(len(counts), float(MAX_NODE_SCORE))
    return np.where(ids == ABSENT, 0.0, shares)


class ServiceAffinity(NodeFilter, PreScore, NodeScore):
    name = "ServiceAffinity"

    def __init__(self, args: Any = None) -> None:
        read = read_struct(ServiceAffinityArgs, args, "args")
        self._affinity = read.affinity_labels
        self._anti_affinity = read.anti_affinity_labels_preference
        self._services = DefaultSelectors()
        self._key: StateKey[ServiceAntiAffinityKernel] = StateKey(self.name)

    def prepare(self, ctx: CycleContext) -> None:
        ctx.table.attached(PodClasses)

    def filter_kernel(self, ctx: CycleContext, pod: PodInfo) -> FilterKernel | None:
        if not self._affinity:
            return None
        wanted = pod.pod.spec.node_selector
        own = {key: wanted[key] for key in self._affinity if key in wanted}
        open_keys = [key for key in self._affinity if key not in wanted]
        has_service = bool(open_keys) and self._services.services(pod.pod, ctx.listers).first is not None
        return ServiceAffinityKernel(ctx.table, own, open_keys, Fellows(ctx.table, pod.pod) if has_service else None)

    def pre_score(self, ctx: CycleContext, pod: PodInfo, feasible: Mask) -> Status | None:
        if not self._anti_affinity:
            return SKIP
        service = self._services.services(pod.pod, ctx.listers).first
        counts = matching_pods(ctx.table, pod.pod.namespace, service)
        ctx.state.write(self._key, ServiceAntiAffinityKernel(ctx.table, self._anti_affinity, counts, feasible))
        return None

    def score_kernel(self, ctx: CycleContext, pod: PodInfo) -> ScoreKernel | Status:
        kernel = ctx.state.read(self._key)
        return kernel if kernel is not None else error(f'reading "PreScore{self.name}" from cycleState: not found')

    def events(self) -> Sequence[EventRegistration]:
        pod_changed = ClusterEvent(Resource.POD, Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE)
        return (
            EventRegistration(pod_changed, _fellow_changed, _waiting_for),
            EventRegistration(ClusterEvent(Resource.NODE, Action.ADD)),
            EventRegistration(ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL), self._relabelled, _waiting_for),
            EventRegistration(ClusterEvent(Resource.SERVICE, Action.ALL), _service_changed, _waiting_for),
        )

    def _relabelled(self, pod: Pod, old: Node, new: Node, view: Listers) -> QueueingHint:
        before, after = old.metadata.labels, new.metadata.labels
        return queue_if(any(before.get(key) != after.get(key) for key in self._affinity))


def _waiting_for(pod: Pod) -> Hashable:
    """What the hints read of a waiting pod. Events of the pod itself are judged for it alone."""
    return pod.namespace, frozenset(pod.metadata.labels.items())


def _fellow_changed(pod: Pod, old: Pod | None, new: Pod | None, view: Listers) -> QueueingHint:
    """Pods come to be, or cease to be, among those that lead the waiting one."""
    if old is not None and new is not None and pod.uid == new.uid:
        return QueueingHint.QUEUE
    return queue_if(_leads(old, pod) != _leads(new, pod))


def _leads(other: Pod | None, pod: Pod) -> bool:
    if other is None or other.namespace != pod.namespace:
        return False
    return pod.metadata.labels.items() <= other.metadata.labels.items()


def _service_changed(pod: Pod, old: Service | None, new: Service | None, view: Listers) -> QueueingHint:
    return queue_if(_selects(old, pod) != _selects(new, pod))


def _selects(service: Service | None, pod: Pod) -> bool:
    if service is None or service.namespace != pod.namespace or not service.spec.selector:
        return False
    return service.spec.selector.items() <= pod.metadata.labels.items()
