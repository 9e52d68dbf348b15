"""Hard constraints: no node whose domain would have too many pods more than the emptiest one.

Source: pkg/scheduler/framework/plugins/podtopologyspread/filtering.go.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property

import numpy as np

from kube_pyscheduler.columns.arrays import Codes, Floats, Ints, Mask, RowIndex, Rows
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_classes import PodClasses
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.columns.selector_index import Namespaces
from kube_pyscheduler.columns.topology import NOWHERE, Topologies
from kube_pyscheduler.framework.interfaces import FilterKernel, RowChanges
from kube_pyscheduler.framework.status import unresolvable, unschedulable
from kube_pyscheduler.plugins.pod_topology_spread.constraints import Constraint, Constraints
from kube_pyscheduler.plugins.pod_topology_spread.eligible import NO_MINIMUM, Eligibilities, rule_of

NO_LABEL, TOO_MANY = np.uint8(1), np.uint8(2)

REASON = "node(s) didn't match pod topology spread constraints"


class HardConstraint:
    """One constraint with how things are. ``domain``: int64[capacity]. ``counts``: float64[domains], matching pods on
    eligible nodes, in whole numbers; that of NOWHERE means nothing."""

    def __init__(self, table: NodeTable, pod: PodInfo, constraint: Constraint, keys: tuple[str, ...]) -> None:
        topology = table.attached(Topologies).get(constraint.topology_key)
        eligibility = table.attached(Eligibilities).get(rule_of(pod.pod, constraint, keys))
        members = eligibility.members(topology)
        self._selector = constraint.selector
        self._namespace = pod.pod.namespace
        self.domain: RowIndex = topology.domain
        self.counts: Floats
        self._eligible: Mask = eligibility.mask
        self._handicap: Floats = members.handicap
        if constraint.selector.is_everything:
            # The empty selector counts nothing, as upstream. Source: countPodsMatchSelector.
            self.counts = np.zeros(topology.size)
        else:
            question = ((Namespaces(frozenset((pod.pod.namespace,))), constraint.selector),)
            counter = table.attached(PodClasses).counter(question, with_terminating=False)
            self.counts = topology.sums(counter.counts, None if members.is_everybody else eligibility.mask)
        # With fewer domains than minDomains the global minimum counts as 0.
        self._minimum_is_zero = members.domain_count < constraint.min_domains
        # So many pods a domain may have beyond the global minimum before this one comes.
        self._slack = constraint.max_skew - int(constraint.selector.matches(pod.pod.metadata.labels))

    def refusals(self) -> Codes:
        """uint8[domains]: what becomes of nodes in each domain."""
        minimum = 0.0 if self._minimum_is_zero else float((self.counts + self._handicap).min())
        refused: Codes = (self.counts > minimum + self._slack).view(np.uint8) * TOO_MANY
        refused[NOWHERE] = NO_LABEL
        return refused

    def refusals_if(self, rows: RowIndex, deltas: Ints) -> Codes:
        """uint8[len(rows)]: what becomes of each row when it has ``deltas`` matching pods more, and no other row
        changes."""
        domain = self.domain[rows]
        eligible = self._eligible[rows]
        counts = self.counts[domain] + deltas * eligible
        minimum = np.zeros(len(rows))
        if not self._minimum_is_zero:
            least, next_least, where = self._lowest
            others = np.where(domain == where, next_least, least)
            minimum = np.where(eligible, np.minimum(counts, others), least)
        refused: Codes = (counts > minimum + self._slack).view(np.uint8) * TOO_MANY
        refused[domain == NOWHERE] = NO_LABEL
        return refused

    def relieved(self, row: int, delta: int, rows: slice, assumed: Collection[tuple[int, PodInfo]]) -> Mask | bool:
        """Which rows may be taken now and were not before ``row`` got ``delta`` matching pods more: those of its domain
        where it got less, all where it got more and was the emptiest alone. Pods ``assumed`` on rows count already, but
        it may have been them that raised the least count, and they are told of one by one."""
        if not delta or not self._eligible[row]:
            return False
        where = self.domain[row]
        if delta < 0:
            return np.asarray(self.domain[rows] == where)
        surplus = self.counts[where] - delta - self._lowest[0]
        if self._minimum_is_zero or surplus >= len(assumed):
            return not self._minimum_is_zero and bool(surplus < 0)
        untold = sum(self.value(info) for place, info in assumed if self.domain[place] == where)
        return bool(surplus < untold)

    def value(self, info: PodInfo) -> int:
        """Whether another pod counts; terminating ones do here. Source: updateWithPod."""
        other = info.pod
        return int(other.namespace == self._namespace and self._selector.matches(other.metadata.labels))

    @cached_property
    def _lowest(self) -> tuple[float, float, int]:
        """The least count, the least of the other domains, and the domain that has the first."""
        counts = self.counts + self._handicap
        where = int(np.argmin(counts))
        least = float(counts[where])
        counts[where] = NO_MINIMUM
        return least, float(counts.min()), where


class HardSpreadKernel(FilterKernel):
    """Cost: one lookup a constraint and row."""

    statuses = (unresolvable(f"{REASON} (missing required label)"), unschedulable(REASON))

    def __init__(self, table: NodeTable, pod: PodInfo, constraints: Constraints) -> None:
        keys = tuple([constraint.topology_key for constraint in constraints])
        self._constraints = [HardConstraint(table, pod, constraint, keys) for constraint in constraints]

    def codes(self, table: NodeTable, rows: Rows) -> Codes:
        return _first([c.refusals()[c.domain[rows]] for c in self._constraints])

    def is_relieved(self, table: NodeTable, row: int, deltas: Sequence[int], assumed: Collection[PodInfo]) -> bool:
        """Whether some node is taken now that may not have been before ``row`` got so many more pods that match each
        constraint. ``assumed``: pods that no event has told of yet."""
        rows = table.all_rows
        places = [(table.row_of[info.pod.spec.node_name], info) for info in assumed]
        taken = table.alive[rows] & (self.codes(table, rows) == 0)
        reliefs = [c.relieved(row, delta, rows, places) for c, delta in zip(self._constraints, deltas, strict=True)]
        return any(bool((taken & relief).any()) for relief in reliefs)

    def codes_if(self, table: NodeTable, rows: RowIndex, changes: RowChanges) -> Codes:
        return _first([c.refusals_if(rows, changes.sums(rows, c.value)) for c in self._constraints])


def _first(answers: list[Codes]) -> Codes:
    """For each row the first answer that refuses it."""
    codes = answers[0]
    for later in answers[1:]:
        codes += later * (codes == 0)
    return codes
