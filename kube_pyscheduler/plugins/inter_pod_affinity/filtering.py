"""Required terms: those of the incoming pod, and the anti-affinity of pods that are there.

Source: pkg/scheduler/framework/plugins/interpodaffinity/filtering.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import numpy as np

from kube_pyscheduler.columns.arrays import Codes, Floats, Ints, Mask, RowIndex, Rows
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_classes import PodClasses, Question, matches
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.columns.row_counts import RowCounts
from kube_pyscheduler.columns.topology import NOWHERE, Topologies, Topology
from kube_pyscheduler.framework.interfaces import FilterKernel, RowChanges
from kube_pyscheduler.framework.status import unresolvable, unschedulable
from kube_pyscheduler.plugins.inter_pod_affinity.existing import ExistingTerm
from kube_pyscheduler.plugins.inter_pod_affinity.terms import pod_terms

NOT_WANTED, TOO_NEAR, NOT_NEAR = np.uint8(1), np.uint8(2), np.uint8(3)
"""Where several apply the greatest is given."""

Asked = tuple[tuple[str, Question], ...]
"""(topology key, which pods) of each term of an incoming pod."""


class KeyCounts:
    """Pods by domain of one topology key. ``counts``: float64[domains], whole numbers; nobody is nowhere."""

    __slots__ = ("counts", "topology")

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.counts: Floats = np.zeros(topology.size)

    def add(self, pods: RowCounts) -> None:
        """Add these pods, by row."""
        self.counts += self.topology.sums(pods)
        self.counts[NOWHERE] = 0

    def if_changed(self, rows: RowIndex, delta: Ints) -> Floats:
        """What each row sees in its domain when ``delta`` pods more are on it, and no other row changes."""
        domain = self.topology.domain[rows]
        seen: Floats = (self.counts[domain] + delta) * (domain != NOWHERE)
        return seen


class CountsByKey(dict[str, KeyCounts]):
    """Counts for each topology key that some term has, made on first use."""

    def __init__(self, table: NodeTable) -> None:
        super().__init__()
        self._topologies = table.attached(Topologies)

    def __missing__(self, key: str) -> KeyCounts:
        counts = self[key] = KeyCounts(self._topologies.get(key))
        return counts


def refusing_counts(table: NodeTable, existing: Iterable[ExistingTerm]) -> CountsByKey:
    """The pods with these terms, for the keys of which any of them is in a domain."""
    found = CountsByKey(table)
    for entry in existing:
        found[entry.term.topology_key].add(entry.pods)
    for key in [key for key, counts in found.items() if not counts.counts.any()]:
        del found[key]
    return found


class InterPodAffinityKernel(FilterKernel):
    """``near`` and ``far``: what the pod's required terms ask for. ``refusing``: who does not want the pod.

    Cost: one lookup a topology key and row.
    """

    statuses = (
        unschedulable("node(s) didn't satisfy existing pods anti-affinity rules"),
        unschedulable("node(s) didn't match pod anti-affinity rules"),
        unresolvable("node(s) didn't match pod affinity rules"),
    )

    def __init__(
        self,
        table: NodeTable,
        pod: PodInfo,
        namespace_labels: Mapping[str, str],
        near: Asked,
        far: Asked,
        refusing: CountsByKey,
    ) -> None:
        classes = table.attached(PodClasses)
        self._pod = pod.pod
        self._namespace_labels = namespace_labels
        self._near_question: Question = tuple([pair for _key, question in near for pair in question])
        self._far_asked = far
        self._near = CountsByKey(table)
        self._far = CountsByKey(table)
        self._refusing = refusing
        self._far_value = {key: partial(self._far_terms, key) for key, _question in far}
        self._refusing_value: dict[str, Callable[[PodInfo], int]] = {}
        for key in refusing:
            self._hear_of(key)
        self._starts_group = False
        if near:
            # Only a pod that all terms speak of counts, for each of them.
            everywhere = classes.counter(self._near_question, with_terminating=True).counts
            for key in dict.fromkeys([key for key, _question in near]):
                self._near[key].add(everywhere)
            self._starts_group = matches(self._near_question, pod.pod.namespace, pod.pod.metadata.labels)
        self._near_total = sum([float(counts.counts.sum()) for counts in self._near.values()])
        for key, question in far:
            self._far[key].add(classes.counter(question, with_terminating=True).counts)

    def codes(self, table: NodeTable, rows: Rows) -> Codes:
        refused: Codes = np.zeros(len(table.alive[rows]), dtype=np.uint8)
        for group, code in ((self._refusing, NOT_WANTED), (self._far, TOO_NEAR)):
            for counts in group.values():
                by_domain = (counts.counts > 0).view(np.uint8) * code
                np.maximum(refused, by_domain[counts.topology.domain[rows]], out=refused)
        # The first pod of a group may go wherever there is a domain at all.
        first = self._starts_group and self._near_total == 0
        for counts in self._near.values():
            by_domain = (counts.counts <= (-1 if first else 0)).view(np.uint8) * NOT_NEAR
            by_domain[NOWHERE] = NOT_NEAR
            np.maximum(refused, by_domain[counts.topology.domain[rows]], out=refused)
        return refused

    def codes_if(self, table: NodeTable, rows: RowIndex, changes: RowChanges) -> Codes:
        """Source: updateWithPod."""
        refused = np.zeros(len(rows), dtype=np.uint8)
        changes.sums(rows, self._hear)
        for key, value in self._refusing_value.items():
            delta = changes.sums(rows, value)
            refused[self._refusing[key].if_changed(rows, delta) > 0] = NOT_WANTED
        for key, value in self._far_value.items():
            delta = changes.sums(rows, value)
            refused[self._far[key].if_changed(rows, delta) > 0] = TOO_NEAR
        if self._near:
            refused[self._not_near_if(rows, changes.sums(rows, self._is_near))] = NOT_NEAR
        return refused

    def _not_near_if(self, rows: RowIndex, delta: Ints) -> Mask:
        nowhere = np.zeros(len(rows), dtype=np.bool_)
        lonely = nowhere.copy()
        for counts in self._near.values():
            nowhere |= counts.topology.domain[rows] == NOWHERE
            lonely |= counts.if_changed(rows, delta) <= 0
        if self._starts_group:
            # Right for rows in a domain of every key, and the others do not matter.
            lonely &= self._near_total + len(self._near) * delta != 0
        return nowhere | lonely

    # What one other pod means for the incoming one

    def _is_near(self, info: PodInfo) -> int:
        """Whether it is one to be near to."""
        return int(matches(self._near_question, info.pod.namespace, info.pod.metadata.labels))

    def _far_terms(self, key: str, info: PodInfo) -> int:
        """By how many terms with this topology key it is one to be far from."""
        namespace, labels = info.pod.namespace, info.pod.metadata.labels
        return sum(matches(question, namespace, labels) for other, question in self._far_asked if other == key)

    def _refusing_terms(self, key: str, info: PodInfo) -> int:
        """How many of its own terms with this topology key do not want the incoming pod."""
        pod, namespace_labels = self._pod, self._namespace_labels
        return sum(
            term.topology_key == key and term.matches(pod.namespace, namespace_labels, pod.metadata.labels)
            for term in info.derived(pod_terms).required_anti
        )

    def _hear(self, info: PodInfo) -> int:
        """Takes note of the topology keys by which a pod may not want the incoming one; counts its terms."""
        terms = info.derived(pod_terms).required_anti
        for term in terms:
            self._hear_of(term.topology_key)
        return len(terms)

    def _hear_of(self, key: str) -> None:
        if key not in self._refusing_value:
            self._refusing_value[key] = partial(self._refusing_terms, key)
