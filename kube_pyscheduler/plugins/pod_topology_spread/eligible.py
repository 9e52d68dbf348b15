"""Which nodes take part in a count: those with all topology keys that the inclusion policies do not leave out."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from kube_pyscheduler.columns.arrays import Floats, Mask, Rows, grown
from kube_pyscheduler.columns.node_selector import RequiredNodeAffinity
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.topology import NOWHERE, Topology
from kube_pyscheduler.columns.vocabulary import ABSENT, LookupTable
from kube_pyscheduler.objects.node import Node, Taint
from kube_pyscheduler.objects.pod import Pod, Toleration
from kube_pyscheduler.objects.selectors import NodeSelector
from kube_pyscheduler.objects.tolerations import has_untolerated
from kube_pyscheduler.plugins.pod_topology_spread.constraints import Constraint

NO_MINIMUM = float(2**31 - 1)
"""The minimum of no domains. Source: newCriticalPaths in podtopologyspread/filtering.go."""

KEEP = 1024
"""Sets of eligible rows kept at most; the least recently used go first."""


@dataclass(frozen=True, slots=True)
class Rule:
    """``keys``: labels that a node must have. ``node_selector`` and ``required``: what it must match. ``tolerations``:
    what it must not be tainted beyond; None where taints do not matter."""

    keys: tuple[str, ...]
    node_selector: tuple[tuple[str, str], ...] = ()
    required: NodeSelector | None = None
    tolerations: tuple[Toleration, ...] | None = None

    def includes(self, node: Node) -> bool:
        """Whether a node counts; the plain form."""
        labels = node.metadata.labels
        if any(key not in labels for key in self.keys) or any(labels.get(key) != v for key, v in self.node_selector):
            return False
        if self.required is not None and not self.required.matches(labels, node.name):
            return False
        return self.tolerations is None or not has_untolerated(self.tolerations, node.spec.taints)


def rule_of(pod: Pod, constraint: Constraint, keys: tuple[str, ...]) -> Rule:
    """Which nodes count for a constraint of this pod, of those with all ``keys``."""
    spec = pod.spec
    tolerations = spec.tolerations if constraint.honor_taints else None
    if not constraint.honor_affinity:
        return Rule(keys, tolerations=tolerations)
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = affinity.required if affinity is not None else None
    return Rule(keys, tuple(sorted(spec.node_selector.items())), required, tolerations)


@dataclass(frozen=True, slots=True)
class Members:
    """How the eligible nodes are spread over the domains of a topology. ``handicap``: float64[domains], 0 for those
    that have some, NO_MINIMUM for the others, so that these are never the lowest of counts. ``domain_count``: domains
    that have some. ``is_everybody``: each node of each domain is eligible."""

    handicap: Floats
    domain_count: int
    is_everybody: bool


class Eligibility:
    """The rows that a rule lets count. ``mask``: bool[capacity]; ``version`` grows when it changes."""

    def __init__(self, table: NodeTable, rule: Rule) -> None:
        self.version = 0
        self._columns = [table.label_column(key) for key in rule.keys]
        self._affinity = RequiredNodeAffinity(table, dict(rule.node_selector), rule.required)
        self._tolerated: LookupTable[tuple[Taint, ...], np.bool_] | None = None
        tolerations = rule.tolerations
        if tolerations is not None:
            self._tolerated = LookupTable(
                table.taint_sets, lambda taints: not has_untolerated(tolerations, taints), True, np.bool_
            )
        self._members: dict[Topology, tuple[int, int, Members]] = {}
        self._seen = table.facts.position
        self.mask: Mask = np.zeros(table.capacity, dtype=np.bool_)
        self._judge(table, table.all_rows)

    def sync(self, table: NodeTable) -> None:
        """Take notice of all nodes that changed. O(changed rows)."""
        if len(self.mask) != table.capacity:
            self.mask = grown(self.mask, table.capacity)
        if self._seen == table.facts.position:
            return
        rows = table.facts.since(self._seen)
        self._seen = table.facts.position
        self._judge(table, table.all_rows if rows is None else rows)

    def members(self, topology: Topology) -> Members:
        """The eligible nodes by domain; O(nodes) when they or their domains have changed."""
        known = self._members.get(topology)
        if known is None or known[:2] != (topology.version, self.version):
            counts = np.bincount(topology.domain[self.mask], minlength=topology.size)
            counts[NOWHERE] = 0
            members = Members(
                handicap=np.where(counts > 0, 0.0, NO_MINIMUM),
                domain_count=int(np.count_nonzero(counts)),
                is_everybody=int(counts.sum()) == topology.inside,
            )
            known = self._members[topology] = topology.version, self.version, members
        return known[2]

    def _judge(self, table: NodeTable, rows: Rows) -> None:
        mask = table.alive[rows] & self._affinity.mask(table, rows)
        for column in self._columns:
            mask &= column.ids[rows] != ABSENT
        if self._tolerated is not None:
            mask &= self._tolerated.take(table.taint_set[rows])
        if not np.array_equal(mask, self.mask[rows]):
            self.mask[rows] = mask
            self.version += 1


class Eligibilities:
    """All rules in use over one table; get it with ``table.attached(Eligibilities)``."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._known: OrderedDict[Hashable, Eligibility] = OrderedDict()

    def get(self, rule: Rule) -> Eligibility:
        """The eligible rows, up to date. O(nodes) the first time."""
        eligibility = self._known.get(rule)
        if eligibility is None:
            eligibility = self._known[rule] = Eligibility(self._table, rule)
            if len(self._known) > KEEP:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(rule)
            eligibility.sync(self._table)
        return eligibility
