"""The syntax and type checker: Google's, with the functions and the variable that Kubernetes gives to selectors.

The library ``cel-expr-python`` parses and checks as cel-go does, down to the texts of errors. It does not evaluate
here: it knows no values of our own types, words run-time errors otherwise, and cannot be stopped.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import msgspec
from cel_expr_python import cel

from kube_pyscheduler.cel.errors import CompileError, EvaluationError
from kube_pyscheduler.cel.syntax import Checked, Problem, read_checked

DRIVER, ATTRIBUTES, CAPACITY = "device.driver", "device.attributes", "device.capacity"
MULTIPLE = "device.allowMultipleAllocations"
DEVICE = "device"

UNSUPPORTED = (
    "timestamp",
    "duration",
    *(f"get{part}" for part in ("Date", "DayOfMonth", "DayOfWeek", "DayOfYear", "FullYear", "Hours")),
    *(f"get{part}" for part in ("Milliseconds", "Minutes", "Month", "Seconds")),
)
"""Standard functions that are not computed here."""


def _type(kind: Any) -> dict[str, Any]:
    name, parameters = kind
    described: dict[str, Any] = {"type_name": name}
    if len(name) == 1:
        described["is_type_param"] = True
    if parameters:
        described["params"] = [_type(parameter) for parameter in parameters]
    return described


def _map_of(kind: str) -> Any:
    return ("map", (("string", ()), ("map", (("string", ()), (kind, ())))))


_VARIABLES = {
    DRIVER: ("string", ()),
    MULTIPLE: ("bool", ()),
    ATTRIBUTES: _map_of("any"),
    CAPACITY: _map_of("kubernetes.Quantity"),
    # For those who take the device as a whole; the names above come first where they are written out.
    DEVICE: ("map", (("string", ()), ("dyn", ()))),
}


def _environment(config: dict[str, Any]) -> Any:
    return cel.NewEnv(config=cel.NewEnvConfigFromYaml(msgspec.json.encode(config).decode()))


class Checker:
    """Checks expressions over the variable ``device``. ``overloads``: the functions besides the standard ones and those
    of CEL's extensions for bindings, lists, optional values, sets and comprehensions with two variables."""

    def __init__(self, overloads: Iterable[Any], replaced: Iterable[str]) -> None:
        functions: dict[str, list[dict[str, Any]]] = {}
        for overload in overloads:
            described: dict[str, Any] = {
                "id": overload.id,
                "args": [_type(kind) for kind in overload.args],
                "return": _type(overload.result),
            }
            if overload.target is not None:
                described["target"] = _type(overload.target)
            functions.setdefault(overload.function, []).append(described)
        self._env = _environment(
            {
                "stdlib": {"exclude_functions": [{"name": name} for name in (*replaced, *UNSUPPORTED)]},
                "extensions": [{"name": name} for name in ("bindings", "lists", "optional", "sets")]
                + [{"name": "two-var-comprehensions"}],
                "variables": [{"name": name, **_type(kind)} for name, kind in _VARIABLES.items()],
                "functions": [{"name": name, "overloads": described} for name, described in functions.items()],
            }
        )

    def check(self, expression: str) -> Checked:
        """The expression's tree. Raises CompileError with the text of kube-scheduler."""
        try:
            checked = read_checked(self._env.compile(expression).serialize())
        except RuntimeError as error:
            raise CompileError(f"compilation failed: {_issues(str(error))}") from None
        invalid = [
            Problem(offset, "invalid matches argument") for offset, text in checked.patterns if RE2.problem(text)
        ]
        problems = sorted((*checked.mixed, *invalid), key=lambda problem: problem.offset)
        if problems:
            raise CompileError("compilation failed: " + "\n".join(_shown(expression, problem) for problem in problems))
        if checked.type not in ("bool", "any"):
            raise CompileError(f"must evaluate to bool or the unknown type, not {checked.type}")
        return checked


def _shown(expression: str, problem: Problem) -> str:
    """A problem as the checker words its own."""
    before = expression[: problem.offset].split("\n")
    line, column = len(before), len(before[-1])
    source = expression.split("\n")[line - 1]
    return f"ERROR: <input>:{line}:{column + 1}: {problem.text}\n | {source}\n | {'.' * column}^"


def _issues(text: str) -> str:
    """The checker's complaints without the frame its library puts around them."""
    return text.removeprefix("INVALID_ARGUMENT: ").removesuffix(" [INVALID_ARGUMENT]")


class RegularExpressions:
    """RE2, as the library has it."""

    def __init__(self) -> None:
        variables = [{"name": name, "type_name": "string"} for name in ("text", "pattern")]
        extensions = [{"name": "optional"}, {"name": "regex"}]
        env = _environment({"variables": variables, "extensions": extensions})
        self._matches = env.compile("text.matches(pattern)")
        self._find_all = env.compile("regex.extractAll(text, pattern)")
        self.problem = cache(self._problem)

    def matches(self, text: str, pattern: str) -> bool:
        """Whether the pattern is found anywhere in the text. Raises EvaluationError."""
        return bool(self._asked(self._matches, text, pattern))

    def find_all(self, text: str, pattern: str) -> list[str]:
        """All matches that do not overlap. Raises EvaluationError."""
        return list(self._asked(self._find_all, text, pattern))

    def _problem(self, pattern: str) -> str:
        """Why the pattern is none, or ""."""
        try:
            self.matches("", pattern)
        except EvaluationError as error:
            return str(error)
        return ""

    @staticmethod
    def _asked(expression: Any, text: str, pattern: str) -> Any:
        result = expression.eval(data={"text": text, "pattern": pattern})
        if result.type() == cel.Type.ERROR:
            problem = str(result.value()).rpartition("invalid regular expression: ")[2]
            raise EvaluationError(f"error parsing regexp: {problem}")
        return result.plain_value()


RE2 = RegularExpressions()
