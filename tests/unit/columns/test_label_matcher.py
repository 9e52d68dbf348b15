from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kube_pyscheduler.columns.label_matcher import EVERYTHING, NOTHING, labels_matcher, selector_matcher
from kube_pyscheduler.objects.selectors import LabelSelector

LABELS = [{}, {"a": "1"}, {"a": "2"}, {"a": "1", "b": "x"}, {"b": ""}]


def selector(**fields: Any) -> LabelSelector:
    return msgspec.convert(fields, LabelSelector)


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    "given",
    [
        selector(),
        selector(matchLabels={"a": "1"}),
        selector(matchLabels={"a": "1", "b": "x"}),
        selector(**expression("a", "In", "1", "2")),
        selector(**expression("a", "NotIn", "1")),
        selector(**expression("b", "Exists")),
        selector(**expression("b", "DoesNotExist")),
        selector(matchLabels={"b": "x"}, **expression("a", "NotIn", "2")),
    ],
)
def test_it_matches_what_the_selector_matches(given: LabelSelector) -> None:
    matcher = selector_matcher(given)
    assert [matcher.matches(labels) for labels in LABELS] == [given.matches(labels) for labels in LABELS]
    assert matcher.is_everything == given.is_empty


def test_selectors_that_say_the_same_are_equal() -> None:
    one = selector_matcher(selector(matchLabels={"a": "1", "b": "2"}))
    other = selector_matcher(selector(matchLabels={"b": "2"}, **expression("a", "In", "1")))
    assert one == other
    assert hash(one) == hash(other)
    assert one == labels_matcher({"a": "1", "b": "2"}) == labels_matcher({"a": "1"}).and_labels({"b": "2"})
    assert len({one, other, labels_matcher({"a": "1"}), EVERYTHING, NOTHING}) == 4


def test_no_selector_matches_nothing_and_stays_so() -> None:
    assert selector_matcher(None) == NOTHING
    assert not any(NOTHING.matches(labels) for labels in LABELS)
    assert NOTHING.and_labels({"a": "1"}) is NOTHING
    assert not NOTHING.is_everything


@pytest.mark.parametrize("given", [expression("a", "Near", "1"), expression("a", "In"), expression("a", "Exists", "1")])
def test_selectors_that_make_no_sense_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="operator"):
        selector_matcher(selector(**given))
