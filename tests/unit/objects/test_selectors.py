"""Label selectors and node selector terms."""

from __future__ import annotations

import msgspec
import pytest

from kube_pyscheduler.objects.selectors import (
    LabelSelector,
    NodeSelectorTerm,
    label_value_problems,
    parse_int64,
)


def selector(**fields: object) -> LabelSelector:
    return msgspec.convert(fields, LabelSelector)


def term(
    *expressions: tuple[str, str, list[str]], fields: list[tuple[str, str, list[str]]] | None = None
) -> NodeSelectorTerm:
    def requirements(items: list[tuple[str, str, list[str]]]) -> list[dict[str, object]]:
        return [{"key": key, "operator": operator, "values": values} for key, operator, values in items]

    document = {"matchExpressions": requirements(list(expressions)), "matchFields": requirements(fields or [])}
    return msgspec.convert(document, NodeSelectorTerm)


def test_the_empty_selector_matches_everything() -> None:
    assert selector().matches({})
    assert selector().matches({"a": "b"})


@pytest.mark.parametrize(
    ("operator", "values", "labels", "matches"),
    [
        ("In", ["x", "y"], {"k": "y"}, True),
        ("In", ["x"], {"k": "y"}, False),
        ("In", ["x"], {}, False),
        ("NotIn", ["x"], {"k": "y"}, True),
        ("NotIn", ["x"], {"k": "x"}, False),
        ("NotIn", ["x"], {}, True),
        ("Exists", [], {"k": ""}, True),
        ("Exists", [], {}, False),
        ("DoesNotExist", [], {}, True),
        ("DoesNotExist", [], {"k": ""}, False),
    ],
)
def test_operators(operator: str, values: list[str], labels: dict[str, str], matches: bool) -> None:
    expressions = [{"key": "k", "operator": operator, "values": values}]
    assert selector(matchExpressions=expressions).matches(labels) is matches
    assert term(("k", operator, values)).matches(labels, "n") is matches


def test_canonical_forms_do_not_depend_on_order() -> None:
    one = selector(
        matchLabels={"a": "1", "b": "2"}, matchExpressions=[{"key": "k", "operator": "In", "values": ["x", "y"]}]
    )
    two = selector(
        matchLabels={"b": "2", "a": "1"}, matchExpressions=[{"key": "k", "operator": "In", "values": ["y", "x"]}]
    )
    assert one.canonical() == two.canonical()
    assert one.canonical() != selector(matchLabels={"a": "1"}).canonical()


@pytest.mark.parametrize(
    ("operator", "bound", "value", "matches"),
    [
        ("Gt", "3", "4", True),
        ("Gt", "3", "3", False),
        ("Lt", "3", "2", True),
        ("Lt", "3", "x", False),
        ("Gt", "3", None, False),
    ],
)
def test_numbers(operator: str, bound: str, value: str | None, matches: bool) -> None:
    labels = {} if value is None else {"k": value}
    assert term(("k", operator, [bound])).matches(labels, "n") is matches


def test_an_empty_term_matches_nothing() -> None:
    assert not term().matches({}, "n")


def test_a_term_with_a_problem_matches_nothing() -> None:
    assert not term(("k", "In", [])).matches({"k": ""}, "n")
    assert not term(("k", "Gt", ["many"])).matches({"k": "5"}, "n")
    assert not term(("k", "Sometimes", ["x"])).matches({"k": "x"}, "n")
    assert not term(fields=[("metadata.name", "In", ["n", "m"])]).matches({}, "n")


def test_problems_are_told_as_the_api_machinery_tells_them() -> None:
    problems = term(("gen", "Lt", ["-5"])).problems("[0]")
    assert len(problems) == 1
    assert problems[0].startswith('[0].matchExpressions[0].values[0][gen]: Invalid value: "-5": a valid label must be')


def test_fields() -> None:
    assert term(fields=[("metadata.name", "In", ["n"])]).matches({}, "n")
    assert not term(fields=[("metadata.name", "NotIn", ["n"])]).matches({}, "n")
    assert term(fields=[("metadata.name", "NotIn", ["m"])]).matches({}, "n")


def test_integers_as_go_reads_them() -> None:
    assert parse_int64("+7") == 7
    assert parse_int64("-9223372036854775808") == -(2**63)
    assert [parse_int64(text) for text in ("9223372036854775808", "1_0", " 1", "", "1.0", "٣")] == [None] * 6


def test_label_values() -> None:
    assert label_value_problems("") == []
    assert label_value_problems("a-b_c.d") == []
    assert len(label_value_problems("-a")) == 1
    assert len(label_value_problems("a" * 64)) == 1
