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
from kube_pyscheduler.columns.topology import NOWHERE, Topologies, Topology
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
        keys = tuple([constraint.topology_key for constraint in constraints]) if require_all else ()
        has_keys = table.attached(Eligibilities).get(Rule(keys)).mask
        scored = feasible & has_keys[: len(feasible)]
        count = int(np.count_nonzero(scored))
        self._has_keys = None if count == np.count_nonzero(feasible) else has_keys
        self._constraints = [SoftConstraint(table, pod, constraint, scored, count, keys) for constraint in constraints]

    def scores(self, table: NodeTable, rows: Rows) -> Scores:
        total = self._constraints[0].scores(table, rows)
        for constraint in self._constraints[1:]:
            total = total + constraint.scores(table, rows)
        raw = _rounded(total)
        if self._has_keys is not None:
            raw[~self._has_keys[rows]] = IGNORED
        return raw


class SoftConstraint:
    """One constraint with how things are. For host names the node's own pods count, for other keys those of all
    eligible nodes in its domain. ``scored``: bool[high], the ``count`` rows that are feasible and not ignored.
    ``keys``: labels that nodes must have to be counted."""

    def __init__(
        self, table: NodeTable, pod: PodInfo, constraint: Constraint, scored: Mask, count: int, keys: tuple[str, ...]
    ) -> None:
        self._counts = _NO_PODS
        if not constraint.selector.is_everything:
            question = ((Namespaces(frozenset((pod.pod.namespace,))), constraint.selector),)
            self._counts = table.attached(PodClasses).counter(question, with_terminating=False).counts
        self._base = float(constraint.max_skew - 1)
        self._by_domain: Floats | None = None
        topology = self._labelled = table.attached(Topologies).get(constraint.topology_key)
        self._some_unlabelled = not keys and topology.inside < table.node_count
        if constraint.topology_key == HOSTNAME:
            self._weight = _weight(count)
            return
        if self._some_unlabelled:
            topology = table.attached(Topologies).get(constraint.topology_key, absent_is_empty=True)
        self._domain = topology.domain
        self._weight = _weight(_domain_count(topology, scored, count))
        eligibility = table.attached(Eligibilities).get(rule_of(pod.pod, constraint, keys))
        everybody = eligibility.members(topology).is_everybody
        sums = topology.sums(self._counts, None if everybody else eligibility.mask)
        self._by_domain = sums * self._weight + self._base

    def scores(self, table: NodeTable, rows: Rows) -> Floats:
        """float64[len(rows)]."""
        if self._by_domain is None:
            by_row = np.full(table.high, self._base)
            by_row[self._counts.rows] = self._counts.counts * self._weight + self._base
            scores = by_row[rows]
        else:
            scores = self._by_domain[self._domain[rows]]
        if self._some_unlabelled:
            scores[self._labelled.domain[rows] == NOWHERE] = 0
        return scores


def spread_normalised(raw: Scores) -> Scores:
    """The rows with the lowest raw score get the most; ignored ones get 0."""
    if not len(raw):
        return raw
    least, greatest = int(raw.min()), int(raw.max())
    if least != IGNORED:
        if greatest == 0:
            return np.full_like(raw, MAX_NODE_SCORE)
        return MAX_NODE_SCORE * (greatest + least - raw) // greatest
    counted = raw != IGNORED
    scores = np.zeros_like(raw)
    if counted.any():
        scores[counted] = spread_normalised(raw[counted])
    return scores


def _domain_count(topology: Topology, scored: Mask, count: int) -> int:
    """In how many domains the ``count`` scored rows (bool[high]) are, all of them being in one."""
    if count == topology.inside:
        return topology.domain_count
    found = np.bincount(topology.domain[: len(scored)] * scored, minlength=topology.size)
    return int(np.count_nonzero(found[NOWHERE + 1 :]))


def _weight(size: int) -> float:
    """Domains that are many weigh more, so that their small counts are not lost. Source: topologyNormalizingWeight."""
    return math.log(size + 2)


def _rounded(scores: Floats) -> Scores:
    """To whole numbers, halves up; scores are not negative."""
    whole = np.floor(scores)
    return (whole + (scores - whole >= 0.5)).astype(np.int64)
