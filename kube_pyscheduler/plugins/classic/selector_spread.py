"""SelectorSpread and ServiceSpreading: the fewer pods of the same kind on a node and in its zone, the better.

Source: pkg/scheduler/framework/plugins/selectorspread of 1.22, and selector_spreading.go in
pkg/scheduler/algorithm/priorities before.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from kube_pyscheduler.columns.arrays import Floats, Ints, Mask, Rows, Scores
from kube_pyscheduler.columns.label_matcher import LabelMatcher
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_classes import PodClasses
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.columns.selector_index import Namespaces
from kube_pyscheduler.framework.cycle_state import StateKey
from kube_pyscheduler.framework.default_selector import DefaultSelectors
from kube_pyscheduler.framework.interfaces import MAX_NODE_SCORE, CycleContext, NodeScore, PreScore, ScoreKernel
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.framework.status import SKIP, Status, error
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.plugins.classic.zones import Zones

ZONE_WEIGHT = 2.0 / 3.0
"""What the zone counts for on nodes that are in one; the node itself counts for the rest."""


def matching_pods(table: NodeTable, namespace: str, selector: LabelMatcher | None) -> Ints:
    """int64[high]: the pods on each row that the selector matches, without those that are going. A selector that
    matches everything, or None, is taken to match nothing."""
    counts = np.zeros(table.high, dtype=np.int64)
    if selector is not None and not selector.is_everything:
        question = ((Namespaces(frozenset((namespace,))), selector),)
        found = table.attached(PodClasses).counter(question, with_terminating=False).counts
        counts[found.rows] = found.counts
    return counts


class SpreadKernel(ScoreKernel):
    """Final scores of all rows. ``counts``: int64[high], matching pods. ``feasible``: bool[high]."""

    def __init__(self, table: NodeTable, counts: Ints, feasible: Mask) -> None:
        score = _share_of_most(counts, counts[feasible])
        zones = table.attached(Zones)
        zones.sync()
        ids = zones.ids[: table.high]
        scored = ids[feasible]
        inside = scored != zones.nowhere
        if inside.any():
            by_zone = np.bincount(scored[inside], counts[feasible][inside], len(zones.vocabulary)).astype(np.int64)
            zone_score = _share_of_most(by_zone, by_zone)[ids]
            weighted = score * (1.0 - ZONE_WEIGHT) + ZONE_WEIGHT * zone_score
            score = np.where(ids == zones.nowhere, score, weighted)
        self._scores = score.astype(np.int64)

    def scores(self, table: NodeTable, rows: Rows) -> Scores:
        return self._scores[rows]


def _share_of_most(counts: Ints, among: Ints) -> Floats:
    """100 × (most − count) ÷ most, where the most is that of ``among``; 100 where that is 0."""
    most = int(among.max(initial=0))
    if not most:
        return np.full(len(counts), float(MAX_NODE_SCORE))
    return float(MAX_NODE_SCORE) * ((most - counts).astype(np.float64) / float(most))


class _Spread(PreScore, NodeScore):
    """Pods that are spread by constraints of their own are left alone."""

    def __init__(self) -> None:
        self._selectors = DefaultSelectors()
        self._key: StateKey[SpreadKernel] = StateKey(self.name)

    @abstractmethod
    def selector(self, pod: Pod, listers: Listers) -> LabelMatcher:
        """What selects the pods that this one should be away from."""

    def prepare(self, ctx: CycleContext) -> None:
        ctx.table.attached(PodClasses)
        ctx.table.attached(Zones).sync()

    def pre_score(self, ctx: CycleContext, pod: PodInfo, feasible: Mask) -> Status | None:
        if pod.pod.spec.topology_spread_constraints:
            return SKIP
        selector = self.selector(pod.pod, ctx.listers)
        counts = matching_pods(ctx.table, pod.pod.namespace, selector)
        ctx.state.write(self._key, SpreadKernel(ctx.table, counts, feasible))
        return None

    def score_kernel(self, ctx: CycleContext, pod: PodInfo) -> ScoreKernel | Status:
        kernel = ctx.state.read(self._key)
        return kernel if kernel is not None else error(f'reading "PreScore{self.name}" from cycleState: not found')


class SelectorSpread(_Spread):
    """Away from the pods of the same services and the same controller."""

    name = "SelectorSpread"

    def selector(self, pod: Pod, listers: Listers) -> LabelMatcher:
        return self._selectors.selector(pod, listers)


class ServiceSpreading(_Spread):
    """Away from the pods of the same services."""

    name = "ServiceSpreading"

    def selector(self, pod: Pod, listers: Listers) -> LabelMatcher:
        return self._selectors.services(pod, listers).selector
