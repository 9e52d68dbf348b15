"""Soft constraints: the fewer matching pods in a node's domains, the better.

Source: pkg/scheduler/framework/plugins/podtopologyspread/scoring.go.
"""

from __future__ import annotations

import math

import numpy as np

from kube_pyscheduler.columns.arrays import Floats, Mask, Rows, Scores
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_classes import PodClasses
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.columns.row_counts import RowCounts
from kube_pyscheduler.columns.selector_index import Namespaces
from kube_pyscheduler.columns.topology import NOWHERE, Topologies
from kube_pyscheduler.columns.vocabulary import ABSENT
from kube_pyscheduler.framework.interfaces import MAX_NODE_SCORE, ScoreKernel
from kube_pyscheduler.plugins.pod_topology_spread.constraints import HOSTNAME, Constraint, Constraints
from kube_pyscheduler.plugins.pod_topology_spread.eligible import Eligibilities, Rule, rule_of

IGNORED = -1
"""Raw score of nodes that are outside some topology."""

_NO_PODS = RowCounts()


class SoftSpreadKernel(ScoreKernel):
    """``feasible``: bool[high]. ``require_all``: nodes that lack one of the topology keys get no score; otherwise the
    constraints whose key they lack are left out for them, and together they count as one more domain."""

    def __init__(
        self, table: NodeTable, pod: PodInfo, constraints: Constraints, feasible: Mask, *, require_all: bool
    ) -> None:
        self.normalize = spread_normalised
        self._require_all = require_all
        keys = tuple([constraint.topology_key for constraint in constraints]) if require_all else ()
        self._has_keys: Mask = table.attached(Eligibilities).get(Rule(keys)).mask
        scored = feasible & self._has_keys[: len(feasible)]
        self._constraints = [
            SoftConstraint(table, pod, constraint, scored, keys, require_all=require_all) for constraint in constraints
        ]

    def scores(self, table: NodeTable, rows: Rows) -> Scores:
        total: Floats | None = None
        for constraint in self._constraints:
            scores = constraint.scores(table, rows)
            total = scores if total is None else total + scores
        assert total is not None
        raw = _rounded(total)
        return np.where(self._has_keys[rows], raw, IGNORED) if self._require_all else raw


class SoftConstraint:
    """One constraint with how things are. For host names the node's own pods count, for other keys those of all
    eligible nodes in its domain. ``scored``: bool[high], the rows that are feasible and not ignored."""

    def __init__(
        self,
        table: NodeTable,
        pod: PodInfo,
        constraint: Constraint,
        scored: Mask,
        keys: tuple[str, ...],
        *,
        require_all: bool,
    ) -> None:
        self._counts = _NO_PODS
        if not constraint.selector.is_everything:
            question = ((Namespaces(frozenset((pod.pod.namespace,))), constraint.selector),)
            self._counts = table.attached(PodClasses).counter(question, with_terminating=False).counts
        self._base = float(constraint.max_skew - 1)
        self._column = table.label_column(constraint.topology_key)
        self._may_lack_key = not require_all
        self._by_domain: Floats | None = None
        if constraint.topology_key == HOSTNAME:
            self._weight = _weight(int(np.count_nonzero(scored)))
            return
        topology = table.attached(Topologies).get(constraint.topology_key, absent_is_empty=not require_all)
        self._domain = topology.domain
        found = np.bincount(topology.domain[: len(scored)][scored], minlength=topology.size)
        found[NOWHERE] = 0
        self._weight = _weight(int(np.count_nonzero(found)))
        eligible = table.attached(Eligibilities).get(rule_of(pod.pod, constraint, keys)).mask
        self._by_domain = topology.sums(self._counts, eligible) * self._weight + self._base

    def scores(self, table: NodeTable, rows: Rows) -> Floats:
        """float64[len(rows)]."""
        if self._by_domain is None:
            scores = np.full(table.high, self._base)
            scores[self._counts.rows] = self._counts.counts * self._weight + self._base
            scores = scores[rows]
        else:
            scores = self._by_domain[self._domain[rows]]
        if self._may_lack_key:
            scores = np.where(self._column.ids[rows] == ABSENT, 0.0, scores)
        return scores


def spread_normalised(raw: Scores) -> Scores:
    """The rows with the lowest raw score get the most; ignored ones get 0."""
    counted = raw != IGNORED
    least = int(np.min(raw, where=counted, initial=np.iinfo(np.int64).max))
    greatest = max(int(np.max(raw, where=counted, initial=0)), 0)
    if greatest == 0:
        return np.where(counted, MAX_NODE_SCORE, 0)
    return np.where(counted, MAX_NODE_SCORE * (greatest + least - raw) // greatest, 0)


def _weight(size: int) -> float:
    """Domains that are many weigh more, so that their small counts are not lost. Source: topologyNormalizingWeight."""
    return math.log(size + 2)


def _rounded(scores: Floats) -> Scores:
    """To whole numbers, halves up; scores are not negative."""
    whole = np.floor(scores)
    return (whole + (scores - whole >= 0.5)).astype(np.int64)
