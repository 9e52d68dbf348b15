"""Pods counted by what selectors can tell apart, so that nobody has to scan pods.

A *class* is the pods of one namespace with the same labels. A *counter* has, for one question of the form "pods that
all of these selectors match", the matching pods of each row. A selector meets each class once; from then on a pod that
comes or goes changes the counters its class is in, and nothing else is looked at. Rows without a node are counted like
the others: whoever reads a counter leaves them out.
"""

from __future__ import annotations

from kube_pyscheduler.columns.label_matcher import LabelMatcher
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.columns.row_counts import RowCounts
from kube_pyscheduler.columns.selector_index import Namespaces, SelectorIndex

MAX_COUNTERS = 16384
"""Counters kept at most; when there are more, those not read for longest go, half of them at a time."""

Question = tuple[tuple[Namespaces, LabelMatcher], ...]
"""Namespaces and selectors, one pair at least, all of which must match a pod."""


class PodClass:
    """Pods that no selector tells apart. ``rows``: how many are on each row."""

    __slots__ = ("counters", "labels", "namespace", "rows", "terminating")

    def __init__(self, namespace: str, labels: dict[str, str], terminating: bool) -> None:
        self.namespace = namespace
        self.labels = labels
        self.terminating = terminating
        self.rows = RowCounts()
        self.counters: list[PodCounter] = []


class PodCounter:
    """``counts``: matching pods by row, as long as the counter is ``alive``: ask for it in every attempt."""

    __slots__ = ("alive", "counts", "question", "read_at", "with_terminating")

    def __init__(self, question: Question, with_terminating: bool) -> None:
        self.question = question
        self.with_terminating = with_terminating
        self.counts = RowCounts()
        self.read_at = 0
        self.alive = True

    def counts_class(self, pods: PodClass) -> bool:
        """Whether pods of the class are counted."""
        return (self.with_terminating or not pods.terminating) and matches(self.question, pods.namespace, pods.labels)


def matches(question: Question, namespace: str, labels: dict[str, str]) -> bool:
    """Whether a pod with these labels in this namespace is one of those asked for."""
    return all(namespace in namespaces and selector.matches(labels) for namespaces, selector in question)


ClassKey = tuple[str, frozenset[tuple[str, str]], bool]
CounterKey = tuple[Question, bool]


class PodClasses:
    """All classes and counters over one table; get it with ``table.attached(PodClasses)``.

    A pod coming or going costs O(counters that count it), and O(counters that may count it) if it is the first of its
    class. A new counter costs O(classes that may match it and the rows they are on).
    """

    def __init__(self, table: NodeTable) -> None:
        self._classes: dict[ClassKey, PodClass] = {}
        self._of_pod: dict[str, tuple[ClassKey, PodClass]] = {}
        self._by_label: dict[tuple[str, str], dict[str, dict[PodClass, None]]] = {}
        self._by_namespace: dict[str, dict[PodClass, None]] = {}
        self._counters: dict[CounterKey, PodCounter] = {}
        self._index: SelectorIndex[PodCounter] = SelectorIndex()
        self._clock = 0
        table.watch_pods(self)

    # Reading

    def counter(self, question: Question, *, with_terminating: bool) -> PodCounter:
        """The counter of a question; made on first use."""
        key = (question, with_terminating)
        counter = self._counters.get(key)
        if counter is None:
            counter = self._make_counter(key)
        self._clock += 1
        counter.read_at = self._clock
        return counter

    # Told by the table

    def pod_added(self, row: int, info: PodInfo) -> None:
        meta = info.pod.metadata
        key = (meta.namespace, frozenset(meta.labels.items()), meta.deletion_timestamp != "")
        pods = self._classes.get(key)
        if pods is None:
            pods = self._make_class(key, meta.labels)
        self._of_pod[meta.uid] = key, pods
        pods.rows.change(row, 1)
        for counter in pods.counters:
            counter.counts.change(row, 1)

    def pod_removed(self, row: int, info: PodInfo) -> None:
        key, pods = self._of_pod.pop(info.uid)
        pods.rows.change(row, -1)
        for counter in pods.counters:
            counter.counts.change(row, -1)
        if pods.rows.total == 0:
            self._drop_class(key, pods)

    # Inside

    def _make_class(self, key: ClassKey, labels: dict[str, str]) -> PodClass:
        namespace, _items, terminating = key
        pods = self._classes[key] = PodClass(namespace, labels, terminating)
        self._by_namespace.setdefault(namespace, {})[pods] = None
        for label in labels.items():
            self._by_label.setdefault(label, {}).setdefault(namespace, {})[pods] = None
        pods.counters = [c for c in self._index.candidates(namespace, labels) if c.counts_class(pods)]
        return pods

    def _drop_class(self, key: ClassKey, pods: PodClass) -> None:
        del self._classes[key]
        namespace = pods.namespace
        siblings = self._by_namespace[namespace]
        del siblings[pods]
        if not siblings:
            del self._by_namespace[namespace]
        for label in pods.labels.items():
            by_namespace = self._by_label[label]
            siblings = by_namespace[namespace]
            del siblings[pods]
            if not siblings:
                del by_namespace[namespace]
                if not by_namespace:
                    del self._by_label[label]

    def _make_counter(self, key: CounterKey) -> PodCounter:
        question, with_terminating = key
        if len(self._counters) >= MAX_COUNTERS:
            self._forget_counters()
        counter = self._counters[key] = PodCounter(question, with_terminating)
        namespaces, selector = question[0]
        self._index.add(counter, namespaces, selector)
        for pods in self._candidates(namespaces, selector):
            if counter.counts_class(pods):
                pods.counters.append(counter)
                for row, count in zip(pods.rows.rows.tolist(), pods.rows.counts.tolist(), strict=True):
                    counter.counts.change(row, count)
        return counter

    def _candidates(self, namespaces: Namespaces, selector: LabelMatcher) -> list[PodClass]:
        """Classes that a selector may match: by the values of the equality requirement that fewest of them have."""
        if selector.never:
            return []
        best = _of_namespaces(self._by_namespace, namespaces)
        for key, operator, values in selector.requirements:
            if operator != "In":
                continue
            having = [
                group
                for value in values
                if (by_namespace := self._by_label.get((key, value))) is not None
                for group in _of_namespaces(by_namespace, namespaces)
            ]
            if sum(map(len, having)) < sum(map(len, best)):
                best = having
        return [pods for group in best for pods in group]

    def _forget_counters(self) -> None:
        oldest = sorted(self._counters.items(), key=lambda item: item[1].read_at)
        for key, counter in oldest[: len(oldest) // 2]:
            counter.alive = False
            del self._counters[key]
            self._index.remove(counter, counter.question[0][0])
        for pods in self._classes.values():
            pods.counters = [counter for counter in pods.counters if counter.alive]


def _of_namespaces(groups: dict[str, dict[PodClass, None]], namespaces: Namespaces) -> list[dict[PodClass, None]]:
    """The groups of these namespaces."""
    if namespaces.others:
        return [group for namespace, group in groups.items() if namespace in namespaces]
    return [group for namespace in namespaces.names if (group := groups.get(namespace)) is not None]
