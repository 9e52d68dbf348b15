"""Selectors as kube-scheduler evaluates them: results, run-time errors and compile-time errors, word by word."""

from __future__ import annotations

import msgspec
import pytest

from kube_pyscheduler.cel.errors import CompileError, EvaluationError
from kube_pyscheduler.cel.selector import Selector, compiled, subject_of
from kube_pyscheduler.objects.resource import Device

GPU = msgspec.convert(
    {
        "name": "gpu-0",
        "attributes": {
            "model": {"string": "a100"},
            "index": {"int": 3},
            "healthy": {"bool": True},
            "driverVersion": {"version": "1.10.2"},
            "other.example.com/zone": {"string": "z1"},
        },
        "capacity": {"memory": {"value": "80Gi"}, "cores": {"value": "1500m"}},
    },
    Device,
)
SUBJECT = subject_of(GPU, "gpu.example.com")

TRUE = [
    "true",
    'device.driver == "gpu.example.com"',
    'device.attributes["gpu.example.com"].model == "a100"',
    'device.attributes["gpu.example.com"].?model.orValue("x") == "a100"',
    'device.attributes[?"gpu.example.com"].?none.orValue(4) == 4',
    'has(device.attributes["gpu.example.com"].model)',
    'device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("60Gi"))',
    'cel.bind(a, device.attributes["gpu.example.com"], a.healthy && a.index == 3)',
    '[1,2,3].exists(x, x == device.attributes["gpu.example.com"].index)',
    "[1,2,3].sum() == 6",
    '"abc".matches("a.c")',
    '"abc 12".find("[0-9]+") == "12"',
    '"a,b".split(",") == ["a","b"]',
    "1 / 0 == 1 || true",
    "true || 1/0 == 1",
    "optional.of(3).value() == 3",
    "optional.none().orValue(2) == 2",
    "[1,2].map(x, x*2) == [2,4]",
    '{"a": 1}.a == 1',
    "type(1) == int",
    "'a' in ['a']",
    "[3,1].sort() == [1,3]",
    "lists.range(3) == [0,1,2]",
    "sets.contains([1,2],[1])",
    '"ABC".lowerAscii() == "abc"',
    "{1: 2}.exists(k, k == 1)",
    "{1: 2}.all(k, v, v == 2)",
    'device.attributes["gpu.example.com"].exists(k, k == "model")',
    'device.attributes["gpu.example.com"].driverVersion.isGreaterThan(semver("1.9.0"))',
    'device.attributes["gpu.example.com"].driverVersion.compareTo(semver("1.10.2")) == 0',
    'device.capacity["gpu.example.com"].memory.compareTo(quantity("60Gi")) > 0',
    'device.attributes["other.example.com"].zone == "z1" && device.attributes["gpu.example.com"].index >= 3',
    '"gpu.example.com" in device.attributes && "model" in device.attributes["gpu.example.com"]',
    "has(device.attributes.foo)",
    'isSemver("1.2.3") && !isSemver("v1.2") && isSemver("v1.2", true)',
    'semver("v1.2", true) == semver("1.2.0")',
    'semver("1.2.3").major() == 1',
    "[1, 2].exists(i, i / 0 == 1 || i == 2)",
    'device.attributes["gpu.example.com"].healthy',
    'device.attributes["gpu.example.com"].model.size() == 4',
    'cel.bind(d, device, d.attributes["gpu.example.com"].model == "a100")',
    'cel.bind(dra, device.attributes["gpu.example.com"], dra.model == "a100" && dra.?nope.orValue(1) == 1)',
    'device.attributes["gpu.example.com"].map(k, k).size() == 4',
    "1 < 2.5 && 3u > 2",
    '"a,b,c".split(",", 2) == ["a", "b,c"]',
    '"abc 123 45".findAll("[0-9]+") == ["123", "45"]',
    '"abc 123".find("([a-z]+) ([0-9]+)") == "abc 123"',
    '"hello".substring(1,3) == "el" && "hello".charAt(0) == "h"',
    '"hello".indexOf("l") == 2 && "hello".lastIndexOf("l") == 3',
    "[3,1,2].sort() == [1,2,3] && [1,2,3].max() == 3 && [1,2].isSorted()",
    "lists.range(3) == [0,1,2] && [[1],[2]].flatten() == [1,2] && [1,1].distinct() == [1]",
    '{"a": 1, "b": 2}.transformMap(k, v, v * 2) == {"a": 2, "b": 4}',
    "[1,2].exists(i, v, i == 1 && v == 2)",
    "sets.intersects([1],[1,2]) && sets.equivalent([1,1],[1])",
    'int("12") + 1 == 13',
    'device.attributes["gpu.example.com"].model in ["a100", "h100"]',
    'device.driver.startsWith("gpu") && device.allowMultipleAllocations == false',
    '-device.attributes["gpu.example.com"].index == -3',
    'device.capacity["gpu.example.com"].memory == quantity("80Gi")',
    'device.capacity["gpu.example.com"].memory.add(quantity("1Gi")).isGreaterThan(quantity("80Gi"))',
    'device.attributes["gpu.example.com"].?model.hasValue() && !device.attributes["gpu.example.com"].?nope.hasValue()',
    'device.attributes["gpu.example.com"].?model.optMap(m, m + "!").orValue("") == "a100!"',
    '{?"a": optional.none()} == {}',
    "optional.of(1) == optional.of(1) && optional.of(1) != optional.none()",
    'optional.ofNonZeroValue("") == optional.none()',
    "[1, 2, 3].filter(i, i > 1) == [2, 3]",
    '["a", "b"].exists_one(x, x == "a")',
    '"a b".replace(" ", "-") == "a-b" && " x ".trim() == "x" && ["a", "b"].join("-") == "a-b"',
    "[1, 2, 3].slice(0, 2) == [1, 2]",
    "[3, 1].sortBy(x, -x) == [3, 1]",
    'quantity("1500m").asApproximateFloat() == 1.5',
    'semver("1.2.3").minor() == 2 && semver("1.2.3-rc.1+b").patch() == 3',
    'semver("1.2.3-rc.1").isLessThan(semver("1.2.3"))',
    'device.attributes["gpu.example.com"].driverVersion.major() == 1',
    'uint(3) == 3u && double("1.5") == 1.5 && string(3) == "3" && bool("true")',
    "type(device.driver) == string",
    'b"abc".size() == 3 && bytes("a") == b"a"',
    '[1, 2] + [3] == [1, 2, 3] && "a" + "b" == "ab"',
    "5 % 3 == 2 && -5 / 2 == -2 && 7u / 2u == 3u && 1.0 / 0.0 > 1.0",
    'device.attributes["gpu.example.com"]["model"] == "a100"',
    'device.attributes["gpu.example.com"].all(k, v, k != "")',
    "null == null && !(1 != 1)",
    '"abc".matches("^a") && "abc".matches("b") && !"abc".matches("^b")',
]

FALSE = [
    'device.attributes["gpu.example.com"][?"none"].hasValue()',
    'dyn("a") == 1',
    "size(device.attributes) == 1",
    '"1.10.2" == device.attributes["gpu.example.com"].driverVersion',
    '"no-such" in device.attributes',
    "true ? false : true",
    'false && device.attributes["gpu.example.com"].model',
    "device.attributes == {}",
]

FAILING = [
    ('device.attributes["gpu.example.com"].nope == 3', "no such key: nope"),
    ('device.attributes["none"].nope == 3', "no such key: nope"),
    ('device.attributes["gpu.example.com"].model > 3', "no such overload"),
    ("9223372036854775807 + 1 == 0", "integer overflow"),
    (
        'device.attributes["gpu.example.com"].model.isGreaterThan(quantity("1"))',
        "no such overload: isGreaterThan(string, kubernetes.Quantity)",
    ),
    ('device.attributes["gpu.example.com"].driverVersion == "1.10.2"', "no such overload"),
    ('device.capacity["gpu.example.com"].cores.asInteger() == 1', "cannot convert value to integer"),
    ('device.capacity["gpu.example.com"].nothing.isGreaterThan(quantity("1"))', "no such key: nothing"),
    (
        'quantity("1.5x") == quantity("1")',
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    ),
    ("[1, 2].all(i, i / 0 == 1)", "division by zero"),
    (
        'device.attributes["gpu.example.com"].model',
        "CEL result of type string could not be converted to bool: unsupported native conversion from string to 'bool'",
    ),
    (
        'device.attributes["gpu.example.com"].index',
        "CEL result of type int could not be converted to bool: unsupported type conversion from 'int' to bool",
    ),
    ('device.attributes["gpu.example.com"].index.size() == 4', "no such overload: size"),
    ('device.attributes["gpu.example.com"].index.startsWith("a")', "no such overload"),
    ('device.attributes["gpu.example.com"].model.foo == "x"', "no such key: foo"),
    ('device.attributes["gpu.example.com"].model[0] == "x"', "no such key: 0"),
    ('int("x") == 1', "type conversion error from 'string' to 'int'"),
    ("9223372036854775807 + 1 > 0", "integer overflow"),
    ("1 % 0 == 0", "modulus by zero"),
    ("optional.none().value() == 1", "optional.none() dereference"),
    ("[1][5] == 1", "index out of bounds: 5"),
    ('{"a":1}["b"] == 1', "no such key: b"),
    ("lists.range(1000).all(i, lists.range(1000).all(j, true))", "operation cancelled: actual cost limit exceeded"),
    ('!device.attributes["gpu.example.com"].model', "no such overload"),
    ('device.attributes["gpu.example.com"].model && true', "no such overload"),
    ('semver("1.2") == semver("1.2.0")', "No Major.Minor.Patch elements found"),
    ("uint(-1) == 0u", "unsigned integer overflow"),
]

ANYTHING = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)

NOT_COMPILING = [
    (
        "?!",
        [
            (1, "Syntax error: extraneous input '?' expecting " + ANYTHING),
            (3, "Syntax error: extraneous input '<EOF>' expecting " + ANYTHING),
        ],
    ),
    (
        "foo",
        [
            (1, "undeclared reference to 'foo' (in container '')"),
        ],
    ),
    (
        "1 == 1.0",
        [
            (3, "found no matching overload for '_==_' applied to '(int, double)'"),
        ],
    ),
    (
        '"x".format(["a"]) == "x"',
        [
            (11, "undeclared reference to 'format' (in container '')"),
        ],
    ),
    (
        '"x".matches("(")',
        [
            (13, "invalid matches argument"),
        ],
    ),
    (
        'timestamp("2020-01-01T00:00:00Z") > timestamp("2020-01-01T00:00:00Z")',
        [
            (10, "undeclared reference to 'timestamp' (in container '')"),
            (46, "undeclared reference to 'timestamp' (in container '')"),
        ],
    ),
    (
        'device.capacity["gpu.example.com"].memory.add(quantity("1Gi")).sub(1024) > quantity("1")',
        [
            (74, "found no matching overload for '_>_' applied to '(kubernetes.Quantity, kubernetes.Quantity)'"),
        ],
    ),
    (
        '"a" + 1 == "a1"',
        [
            (5, "found no matching overload for '_+_' applied to '(string, int)'"),
        ],
    ),
    (
        '[?device.attributes["gpu.example.com"].?nope, "x"] == ["x"]',
        [
            (47, "expected type 'any' but found 'string'"),
        ],
    ),
    (
        '"hello".reverse() == "olleh" && strings.quote("a") == "\\"a\\""',
        [
            (16, "found no matching overload for 'reverse' applied to '(string)'"),
        ],
    ),
    (
        "math.greatest(1, 2) == 2",
        [
            (1, "undeclared reference to 'math' (in container '')"),
            (14, "undeclared reference to 'greatest' (in container '')"),
        ],
    ),
    (
        'isQuantity("1Gi") && !isQuantity("1Gib") && quantity("1Gi").isInteger() && quantity("5").sign() == 1',
        [
            (94, "undeclared reference to 'sign' (in container '')"),
        ],
    ),
    (
        'device.attributes["gpu.example.com"].driverVersion < semver("2.0.0")',
        [
            (52, "found no matching overload for '_<_' applied to '(any, kubernetes.Semver)'"),
        ],
    ),
    (
        "no.such(1)",
        [
            (1, "undeclared reference to 'no' (in container '')"),
            (8, "undeclared reference to 'such' (in container '')"),
        ],
    ),
    (
        '"abc".nope()',
        [
            (11, "undeclared reference to 'nope' (in container '')"),
        ],
    ),
    (
        'device.attributes["gpu.example.com"].model.startsWith(1)',
        [
            (54, "found no matching overload for 'startsWith' applied to '(any, int)'"),
        ],
    ),
    (
        '[1, "a"].size() == 2',
        [
            (5, "expected type 'int' but found 'string'"),
        ],
    ),
    (
        '"abc',
        [
            (1, "Syntax error: token recognition error at: '\"abc'"),
            (5, "Syntax error: mismatched input '<EOF>' expecting " + ANYTHING),
        ],
    ),
    (
        '("x"',
        [
            (5, "Syntax error: missing ')' at '<EOF>'"),
        ],
    ),
]
"""Expressions with the column and the text of each complaint."""

NOT_BOOLEAN = [
    ("1", "int"),
    ("device.nope", "dyn"),
    ('quantity("1.5x")', "kubernetes.Quantity"),
    ("device", "map(string, dyn)"),
    ('device.capacity["gpu.example.com"].memory', "kubernetes.Quantity"),
]
"""Expressions with their types."""


def selector(expression: str) -> Selector:
    known = compiled(expression)
    assert isinstance(known, Selector), known
    return known


@pytest.mark.parametrize("expression", TRUE)
def test_selectors_that_match(expression: str) -> None:
    assert selector(expression).matches(SUBJECT)


@pytest.mark.parametrize("expression", FALSE)
def test_selectors_that_do_not_match(expression: str) -> None:
    assert not selector(expression).matches(SUBJECT)


@pytest.mark.parametrize(("expression", "problem"), FAILING)
def test_selectors_that_fail_on_the_device(expression: str, problem: str) -> None:
    with pytest.raises(EvaluationError) as failed:
        selector(expression).matches(SUBJECT)
    assert str(failed.value) == problem


@pytest.mark.parametrize(("expression", "complaints"), NOT_COMPILING)
def test_selectors_that_do_not_compile(expression: str, complaints: list[tuple[int, str]]) -> None:
    known = compiled(expression)
    assert isinstance(known, CompileError)
    shown = [
        f"ERROR: <input>:1:{column}: {text}\n | {expression}\n | {'.' * (column - 1)}^" for column, text in complaints
    ]
    assert str(known) == "compilation failed: " + "\n".join(shown)


@pytest.mark.parametrize(("expression", "kind"), NOT_BOOLEAN)
def test_selectors_that_say_neither_yes_nor_no(expression: str, kind: str) -> None:
    known = compiled(expression)
    assert isinstance(known, CompileError)
    assert str(known) == f"must evaluate to bool or the unknown type, not {kind}"


def test_where_the_complaint_is_about_a_later_line() -> None:
    known = compiled("true &&\n  [null, 1].size() == 2")
    assert str(known) == (
        "compilation failed: ERROR: <input>:2:10: expected type 'null' but found 'int'\n"
        " |   [null, 1].size() == 2\n | .........^"
    )


@pytest.mark.parametrize(("opening", "closing"), [("(", ")"), ("[", "] == []"), ("!(", ")")])
def test_expressions_that_are_nested_without_end_do_not_compile(opening: str, closing: str) -> None:
    known = compiled(opening * 5000 + "true" + closing[0] * 5000 + closing[1:])
    assert isinstance(known, CompileError)
    assert "recursion limit exceeded" in str(known)


def test_expressions_that_are_long_compile() -> None:
    assert selector("true" + " && true" * 2000).matches(SUBJECT)
    assert not selector("!" * 2001 + "true").matches(SUBJECT)


def test_the_same_expression_is_compiled_once() -> None:
    assert compiled("device.driver == 'a'") is compiled("device.driver == 'a'")


def test_whether_devices_are_shared_is_told_unless_it_is_kept_back() -> None:
    shared = msgspec.structs.replace(GPU, allow_multiple_allocations=True)
    shares = selector("device.allowMultipleAllocations")
    assert shares.matches(subject_of(shared, "gpu.example.com"))
    assert not shares.matches(subject_of(shared, "gpu.example.com", shares=False))
    assert not shares.matches(SUBJECT)


@pytest.mark.parametrize(
    ("attribute", "problem"),
    [
        ({"version": "1.2"}, "attribute a: parse semantic version: No Major.Minor.Patch elements found"),
        ({"version": "01.2.3"}, "attribute a: parse semantic version: Major number must not contain leading zeroes"),
        ({}, "attribute a: unsupported attribute value"),
    ],
)
def test_devices_that_nobody_can_be_asked_about(attribute: dict[str, str], problem: str) -> None:
    device = msgspec.convert({"name": "x", "attributes": {"a": attribute}}, Device)
    with pytest.raises(EvaluationError) as failed:
        selector("true").matches(subject_of(device, "gpu.example.com"))
    assert str(failed.value).startswith(problem)
