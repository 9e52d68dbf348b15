"""Operators and functions of selectors, also where they fail, as cel-go and Kubernetes have them."""

from __future__ import annotations

import pytest

from kube_pyscheduler.cel.errors import EvaluationError
from tests.unit.cel.test_expressions import SUBJECT, selector

TRUE = [
    # Strings
    '"tacocat".indexOf("ac", 3) == -1 && "tacocat".indexOf("a", 3) == 5 && "tacocat".indexOf("", 2) == 2',
    '"tacocat".lastIndexOf("at", 1) == -1 && "tacocat".lastIndexOf("a", 4) == 1 && "x".lastIndexOf("", 1) == 1',
    '"x".lastIndexOf("x", 7) == -1',
    '"AbC".upperAscii() == "ABC" && "ÀB".lowerAscii() == "Àb"',
    '"hello hello".replace("he", "we", 1) == "wello hello" && "ab".replace("", "_") == "_a_b_"',
    '"a,b,c".split(",", 0) == [] && "a,b,c".split(",", 1) == ["a,b,c"] && "abc".split("") == ["a", "b", "c"]',
    '"abc".split("", 2) == ["a", "bc"]',
    '"tacocat".substring(4) == "cat" && "tacocat".charAt(7) == "" && "tacocat".substring(3, 3) == ""',
    '"abc".contains("b") && "abc".endsWith("c") && !"abc".startsWith("b") && ["a", "b"].join() == "ab"',
    r'strings.quote("a\n\"b") == "\"a\\n\\\"b\""',
    '"abc".find("x") == "" && "a1b22c".findAll("[0-9]+", 1) == ["1"] && "[a]".find("[(]|\\\\[a") == "[a"',
    '"k=v".find("(?P<key>k)=(?:v)") == "k=v"',
    # Lists
    '["a", "b", "a"].indexOf("b") == 1 && ["a", "b", "a"].lastIndexOf("a") == 2 && [1].indexOf(2) == -1',
    "[2, 1].min() == 1 && [1.5, 2.5].sum() == 4.0 && [].sum() == 0 && [1u].max() == 1u",
    "[3, 2, 1].reverse() == [1, 2, 3] && [1, 2].first() == optional.of(1) && [].last() == optional.none()",
    "[1, 2].last().value() == 2 && [[[1], [2]], [[3]]].flatten(2) == [1, 2, 3]",
    "[1, 2, 2, 1].distinct() == [1, 2]",
    "!sets.intersects([1], [2]) && !sets.equivalent([1, 2], [1]) && sets.contains([], [])",
    # Numbers
    "7 / -2 == -3 && -7 % 2 == -1 && 7u % 2u == 1u && 2.0 * 1.5 == 3.0 && 3u - 1u == 2u && 2u * 3u == 6u",
    "-1.0 / 0.0 < 0.0 && 0.0 / 0.0 != 0.0 && 1.0 / -0.0 < 0.0 && -(1.5) == -1.5",
    'int(2.9) == 2 && int(3u) == 3 && uint("7") == 7u && uint(2.9) == 2u',
    'double(3) == 3.0 && double("1e3") == 1000.0',
    'bool("F") == false && string(true) == "true" && string(1.5) == "1.5" && string(b"x") == "x" && int("-5") == -5',
    "1 in [1, 2] && 1.0 in [1.0] && !(1 in []) && 'a' in {'a': 1} && 1 in {1: 2} && b'a' < b'b' && false < true",
    # Maps and optional values
    "{'a': 1, 'b': 2} == {'b': 2, 'a': 1} && {'a': 1} != {'a': 2} && {'a': 1} != {'b': 1} && {1: 'x'}[1] == 'x'",
    "has({'a': 1}.a) && !has({'a': 1}.b) && {'a': {'b': 1}}.?a.?b == optional.of(1)",
    "optional.of({'a': 1}).a == optional.of(1) && has(optional.of({'a': 1}).a)",
    "optional.none().or(optional.of(2)) == optional.of(2) && optional.of(1).or(optional.none()) == optional.of(1)",
    "optional.none().optMap(x, x + 1) == optional.none()",
    "optional.of(1).optFlatMap(x, optional.of(x)) == optional.of(1)",
    "[1, 2][?5] == optional.none() && [1, 2][?1] == optional.of(2) && optional.of([7])[0] == optional.of(7)",
    "{?'a': optional.of(1), ?'b': optional.none()} == {'a': 1} && [?optional.of(1), ?optional.none()] == [1]",
    "optional.ofNonZeroValue(0) == optional.none() && optional.ofNonZeroValue([1]).hasValue()",
    # Loops
    "[1, 2].all(i, v, v == i + 1) && ['a'].transformList(i, v, v + 'x') == ['ax'] && [1].existsOne(i, v, v == 1)",
    "{'a': 1}.transformMapEntry(k, v, {v: k}) == {1: 'a'} && {'a': 1, 'b': 2}.map(k, k).size() == 2",
    "[1, 2, 3].map(x, x > 1, x * 2) == [4, 6] && ![1, 2].exists_one(x, x > 0) && [1, 0].exists(x, 1 / x == 1)",
    "![0, 1].all(x, 1 / x == 2) && ![].exists(x, x) && [].all(x, x)",
    # Quantities and versions
    'quantity("5").isInteger() && !quantity("5m").isInteger() && quantity("5k").asInteger() == 5000',
    'sign(quantity("-5")) == -1 && sign(quantity("0")) == 0 && isQuantity("1Gi") && !isQuantity("1Gib")',
    'quantity("1Gi").isLessThan(quantity("2Gi")) && quantity("1k").add(24) == quantity("1024")',
    'quantity("1Gi").sub(quantity("1Mi")) == quantity("1023Mi") && quantity("1").compareTo(quantity("2")) == -1',
    'isSemver("1.2.3-rc.1") && !isSemver("x") && semver("1.2.3", false) == semver("1.2.3")',
]

FAILING = [
    ('"abc".charAt(4) == ""', "index out of range: 4"),
    ('"abc".charAt(-1) == ""', "index out of range: -1"),
    ('"abc".indexOf("a", -1) == 0', "index out of range: -1"),
    ('"abc".lastIndexOf("a", -1) == 0', "index out of range: -1"),
    ('"abc".substring(2, 1) == ""', "invalid substring range. start: 2, end: 1"),
    ('"abc".substring(5) == ""', "index out of range: 5"),
    ('"abc".find("(") == ""', "Illegal regex: error parsing regexp: missing ): ("),
    ("[].min() == 1", "min called on empty list"),
    ("[].max() == 1", "max called on empty list"),
    ("[1, 2].slice(-1, 1) == []", "cannot slice(-1, 1), negative indexes not supported"),
    ("[1, 2].slice(2, 1) == []", "cannot slice(2, 1), start index must be less than or equal to end index"),
    ("[1, 2].slice(0, 3) == []", "cannot slice(0, 3), list is length 2"),
    ("[1].flatten(-1) == []", "level must be non-negative"),
    ("lists.range(1000000).size() == 1", "operation cancelled: actual cost limit exceeded"),
    ("[1, 2][-1] == 1", "index out of bounds: -1"),
    ("{'a': 1}.b == 1", "no such key: b"),
    ("{1: 2}[3] == 2", "no such key: 3"),
    ("int(1e30) == 1", "integer overflow"),
    ("uint(-1.0) == 1u", "unsigned integer overflow"),
    ("1u - 2u == 1u", "unsigned integer overflow"),
    ("-(-9223372036854775807 - 1) == 1", "integer overflow"),
    ("9223372036854775807 * 2 == 1", "integer overflow"),
    ("1u / 0u == 1u", "division by zero"),
    ('int("1_0") == 10', "type conversion error from 'string' to 'int'"),
    ('uint("-1") == 1u', "type conversion error from 'string' to 'uint'"),
    ('double("x") == 1.0', "type conversion error from 'string' to 'double'"),
    ('bool("yes")', "type conversion error from 'string' to 'bool'"),
    (r'string(b"\xff") == "x"', "invalid UTF-8 in bytes, cannot convert to string"),
    ("0.0 / 0.0 < 1.0", "NaN values cannot be ordered"),
    ('quantity("1.5").asInteger() == 1', "cannot convert value to integer"),
    ('semver("1") == semver("1.0.0")', "No Major.Minor.Patch elements found"),
    ("[1].all(x, dyn('a') + 1 == 1)", "no such overload"),
    ("dyn(true) - 1 == 0", "no such overload: _-_"),
    ("dyn('a') * 2 == 0", "no such overload: _*_"),
    ("-dyn('a') == 0", "no such overload: -_"),
    ("dyn(1) in dyn(1)", "no such overload"),
    ("dyn(1) ? true : false", "no such overload"),
    ("dyn(1).contains('a')", "no such overload"),
    ("dyn([1]) + dyn(1) == [1]", "no such overload"),
    ("dyn([1])['a'] == 1", "unsupported index type 'string' in list"),
    ("dyn([1])[0.5] == 1", "unsupported index value 0.5 in list"),
    ("dyn(1).exists(x, x == 1)", "got 'types.Int', expected iterable type"),
    ("dyn([dyn(1), dyn('a')]).sort() == []", "list elements must have the same type"),
]


@pytest.mark.parametrize("expression", TRUE)
def test_what_they_result_in(expression: str) -> None:
    assert selector(expression).matches(SUBJECT)


@pytest.mark.parametrize(("expression", "problem"), FAILING)
def test_what_they_fail_with(expression: str, problem: str) -> None:
    with pytest.raises(EvaluationError) as failed:
        selector(expression).matches(SUBJECT)
    assert str(failed.value) == problem
