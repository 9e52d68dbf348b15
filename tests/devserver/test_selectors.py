from __future__ import annotations

from typing import Any

import pytest

from kube_pyscheduler.devserver.errors import StatusError
from kube_pyscheduler.devserver.resources import NODES, PODS, builtin
from kube_pyscheduler.devserver.selectors import (
    matches_label_selector,
    parse_fields,
    parse_labels,
    parse_selectors,
    selector_text,
)


@pytest.mark.parametrize(
    ("selector", "matches", "refuses"),
    [
        ("a=1", [{"a": "1"}], [{"a": "2"}, {}]),
        ("a==1", [{"a": "1"}], [{}]),
        ("a!=1", [{"a": "2"}, {}], [{"a": "1"}]),
        ("a", [{"a": ""}], [{}]),
        ("!a", [{}], [{"a": "1"}]),
        ("a in (1, 2)", [{"a": "1"}, {"a": "2"}], [{"a": "3"}, {}]),
        ("a notin (1,2)", [{"a": "3"}, {}], [{"a": "2"}]),
        ("a>5", [{"a": "6"}], [{"a": "5"}, {"a": "x"}, {}]),
        ("a<5", [{"a": "4"}], [{"a": "5"}]),
        ("a=1,b!=2,!c", [{"a": "1"}], [{"a": "1", "b": "2"}, {"a": "1", "c": ""}]),
        ("example.com/a=", [{"example.com/a": ""}], [{"example.com/a": "1"}]),
    ],
)
def test_label_selectors(selector: str, matches: list[dict[str, str]], refuses: list[dict[str, str]]) -> None:
    test = parse_labels(selector)
    assert test is not None
    assert all(map(test, matches))
    assert not any(map(test, refuses))


def test_an_empty_selector_selects_everything() -> None:
    assert parse_labels(" ") is None
    assert parse_fields("", PODS) is None
    assert parse_selectors("", "", PODS) is None


@pytest.mark.parametrize("selector", ["a in 1", "=1", "a=b=c", "a>x", "a in (1"])
def test_malformed_label_selectors_are_refused(selector: str) -> None:
    with pytest.raises(StatusError) as refused:
        parse_labels(selector)
    assert refused.value.code == 400


POD: dict[str, Any] = {
    "metadata": {"name": "p", "namespace": "ns", "labels": {"a": "1"}},
    "spec": {"nodeName": "n1", "schedulerName": "s"},
    "status": {"phase": "Running"},
}


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("spec.nodeName=n1", True),
        ("spec.nodeName==n2", False),
        ("spec.nodeName!=", True),
        ("status.phase!=Succeeded,status.phase!=Failed", True),
        ("status.phase!=Running", False),
        ("metadata.name=p,metadata.namespace=ns", True),
        ("spec.schedulerName=s", True),
        ("status.nominatedNodeName=", True),
    ],
)
def test_field_selectors_of_pods(selector: str, expected: bool) -> None:
    test = parse_fields(selector, PODS)
    assert test is not None
    assert test(POD) is expected


def test_field_selectors_of_other_kinds() -> None:
    unschedulable = parse_fields("spec.unschedulable=true", NODES)
    assert unschedulable is not None
    assert unschedulable({"metadata": {"name": "n"}, "spec": {"unschedulable": True}})
    assert not unschedulable({"metadata": {"name": "n"}, "spec": {}})
    event = {"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "name": "p"}, "reportingComponent": "x"}
    for resource, selector in (
        ("events", "involvedObject.name=p,reportingComponent=x"),
        ("events.events.k8s.io", "regarding.name=p,reportingController=x"),
    ):
        test = parse_fields(selector, builtin(resource))
        assert test is not None
        assert test(event)


@pytest.mark.parametrize("selector", ["spec.containers=x", "spec.nodeName"])
def test_unknown_fields_and_malformed_selectors_are_refused(selector: str) -> None:
    with pytest.raises(StatusError) as refused:
        parse_fields(selector, PODS)
    assert refused.value.code == 400


def test_both_selectors_must_match() -> None:
    test = parse_selectors("a=1", "spec.nodeName=n1", PODS)
    assert test is not None
    assert test(POD)
    assert not test({**POD, "metadata": {**POD["metadata"], "labels": {}}})


SELECTOR = {
    "matchLabels": {"a": "1"},
    "matchExpressions": [
        {"key": "b", "operator": "In", "values": ["2", "1"]},
        {"key": "c", "operator": "DoesNotExist"},
    ],
}


def test_label_selector_objects() -> None:
    assert matches_label_selector(SELECTOR, {"a": "1", "b": "2"})
    assert not matches_label_selector(SELECTOR, {"a": "1", "b": "3"})
    assert not matches_label_selector(SELECTOR, {"a": "1", "b": "2", "c": ""})
    assert matches_label_selector({}, {"x": "y"})
    assert not matches_label_selector(None, {"x": "y"})


def test_selector_text_can_be_parsed_again() -> None:
    text = selector_text(SELECTOR)
    assert text == "a=1,b in (1,2),!c"
    test = parse_labels(text)
    assert test is not None
    assert test({"a": "1", "b": "1"})
    assert selector_text({"app": "x"}) == "app=x"
