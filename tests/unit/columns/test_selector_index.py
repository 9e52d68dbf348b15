from __future__ import annotations

import random

from kube_pyscheduler.columns.label_matcher import EVERYTHING, LabelMatcher, Requirement, labels_matcher
from kube_pyscheduler.columns.selector_index import ALL_NAMESPACES, Namespaces, SelectorIndex


def in_values(key: str, *values: str) -> LabelMatcher:
    return LabelMatcher(frozenset([Requirement(key, "In", frozenset(values))]))


def random_item(rng: random.Random, number: int) -> tuple[str, Namespaces, LabelMatcher]:
    namespaces = rng.choice([ALL_NAMESPACES, Namespaces(frozenset({"a"})), Namespaces(frozenset({"a", "b"}))])
    selector = rng.choice(
        [
            EVERYTHING,
            labels_matcher({"app": "web"}),
            labels_matcher({"app": "web", "tier": "x"}),
            in_values("app", "web", "db"),
            LabelMatcher(frozenset([Requirement("tier", "Exists", frozenset())])),
        ]
    )
    return f"i{number}", namespaces, selector


def test_everything_that_matches_is_a_candidate_once() -> None:
    rng = random.Random(2)
    index: SelectorIndex[str] = SelectorIndex()
    items: dict[str, tuple[Namespaces, LabelMatcher]] = {}
    for number in range(400):
        if items and rng.random() < 0.4:
            name = rng.choice(sorted(items))
            index.remove(name, items.pop(name)[0])
        else:
            name, namespaces, selector = random_item(rng, number)
            index.add(name, namespaces, selector)
            items[name] = namespaces, selector
        namespace, labels = rng.choice(["a", "b", "c"]), {"app": rng.choice(["web", "db"]), "tier": "x"}
        found = list(index.candidates(namespace, labels))
        matching = {name for name, (spaces, s) in items.items() if namespace in spaces and s.matches(labels)}
        assert matching <= set(found)
        assert len(found) == len(set(found))
        assert len(index) == len(items)


def test_items_that_need_other_labels_are_not_looked_at() -> None:
    index: SelectorIndex[str] = SelectorIndex()
    own = Namespaces(frozenset({"a"}))
    for number in range(100):
        index.add(f"i{number}", own, labels_matcher({"tier": "x", "app": f"app-{number}"}))
    assert len(list(index.candidates("a", {"tier": "x", "app": "app-50"}))) <= 2
    assert list(index.candidates("b", {"tier": "x", "app": "app-50"})) == []
