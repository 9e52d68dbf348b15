from __future__ import annotations

import random
from collections import Counter

import pytest

from kube_pyscheduler.columns import pod_classes
from kube_pyscheduler.columns.label_matcher import EVERYTHING, NOTHING, LabelMatcher, Requirement, labels_matcher
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_classes import PodClasses, PodCounter, Question, matches
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.columns.selector_index import ALL_NAMESPACES, Namespaces
from tests.builders import make_info

WEB = labels_matcher({"app": "web"})
IN_A = Namespaces(frozenset({"a"}))


def having(key: str, operator: str, *values: str) -> LabelMatcher:
    return LabelMatcher(frozenset([Requirement(key, operator, frozenset(values))]))


QUESTIONS: list[Question] = [
    ((IN_A, WEB),),
    ((Namespaces(frozenset({"a", "b"})), WEB),),
    ((ALL_NAMESPACES, having("app", "In", "web", "db")),),
    ((Namespaces(frozenset({"a"}), others=True), having("app", "NotIn", "web")),),
    ((IN_A, having("tier", "Exists")), (ALL_NAMESPACES, WEB)),
    ((ALL_NAMESPACES, EVERYTHING),),
    ((ALL_NAMESPACES, NOTHING),),
    ((IN_A, labels_matcher({"app": "web", "tier": "x"})),),
]


def random_pod(rng: random.Random, number: int) -> PodInfo:
    labels = {"app": rng.choice(["web", "db", "cache"])}
    if rng.random() < 0.5:
        labels["tier"] = rng.choice(["x", "y"])
    terminating = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if rng.random() < 0.2 else None
    return make_info(f"p{number}", namespace=rng.choice(["a", "b", "c"]), labels=labels, metadata=terminating)


def by_row(counter: PodCounter) -> dict[int, int]:
    return dict(zip(counter.counts.rows.tolist(), counter.counts.counts.tolist(), strict=True))


def test_counters_agree_with_a_scan_of_all_pods_whenever_they_are_made() -> None:
    rng = random.Random(5)
    table = NodeTable()
    classes = table.attached(PodClasses)
    there: dict[str, tuple[PodInfo, str]] = {}
    for number in range(600):
        if there and rng.random() < 0.45:
            info, node = there.pop(rng.choice(sorted(there)))
            table.remove_pod(info, node)
        else:
            info, node = random_pod(rng, number), f"n{rng.randrange(5)}"
            table.add_pod(info, node)
            there[info.uid] = info, node
        for question in rng.sample(QUESTIONS, 2):
            for with_terminating in (True, False):
                expected = Counter(
                    table.row_of[node]
                    for info, node in there.values()
                    if matches(question, info.pod.namespace, info.pod.metadata.labels)
                    and (with_terminating or not info.pod.is_terminating)
                )
                assert by_row(classes.counter(question, with_terminating=with_terminating)) == expected


def test_a_question_asked_again_has_the_same_counter() -> None:
    classes = NodeTable().attached(PodClasses)
    again: Question = ((Namespaces(frozenset({"a"})), labels_matcher({"app": "web"})),)
    assert classes.counter(QUESTIONS[0], with_terminating=True) is classes.counter(again, with_terminating=True)
    assert classes.counter(again, with_terminating=True) is not classes.counter(again, with_terminating=False)


def test_counters_not_asked_for_longest_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_classes, "MAX_COUNTERS", 4)
    table = NodeTable()
    classes = table.attached(PodClasses)
    table.add_pod(make_info("p0", namespace="a", labels={"app": "web"}), "n")
    old, *others = [classes.counter(question, with_terminating=True) for question in QUESTIONS[:4]]
    kept = classes.counter(QUESTIONS[0], with_terminating=True)
    assert kept is old
    classes.counter(QUESTIONS[5], with_terminating=True)
    assert [counter.alive for counter in (old, *others)] == [True, False, False, True]
    table.add_pod(make_info("p1", namespace="a", labels={"app": "web"}), "n")
    assert by_row(old) == {table.row_of["n"]: 2}
    assert by_row(classes.counter(QUESTIONS[1], with_terminating=True)) == {table.row_of["n"]: 2}


def test_classes_without_pods_are_forgotten() -> None:
    table = NodeTable()
    classes = table.attached(PodClasses)
    for number in range(50):
        info = make_info(f"p{number}", labels={"pod-name": f"p{number}", "app": "web"})
        table.add_pod(info, "n")
        table.remove_pod(info, "n")
    assert not classes._classes
    assert not classes._by_label
    assert not classes._by_namespace
