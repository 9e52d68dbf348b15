"""Checked expressions as Python functions.

Errors end an evaluation, except where cel-go lets the other side of ``&&`` and ``||`` decide.
Source: interpreter/{interpretable,attributes,planner}.go of cel-go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kube_pyscheduler.cel import regex, standard
from kube_pyscheduler.cel.errors import NO_SUCH_OVERLOAD, EvaluationError, StepsExhausted
from kube_pyscheduler.cel.functions import COMPARISONS, EXTENSIONS, OVERLOADS, Overload
from kube_pyscheduler.cel.syntax import Call, Comprehension, Constant, Expr, Ident, ListOf, MapOf, Select
from kube_pyscheduler.cel.values import (
    NONE,
    Optional,
    TypeValue,
    UInt,
    compare,
    contains,
    equal,
    find,
    missing,
    no_such_overload,
    qualify,
    shown,
    type_of,
)

MAX_STEPS = 100_000
"""Nodes of loop bodies evaluated at most. The API server admits no expression that may cost 1,000,000, each of its
nodes costing one or more. Source: CELSelectorExpressionMaxCost in api/resource/v1/types.go."""


class Scope(dict[str, Any]):
    """Variables by name, and how many steps are left."""

    __slots__ = ("steps",)

    def __init__(self, variables: Mapping[str, Any]) -> None:
        super().__init__(variables)
        self.steps = MAX_STEPS


Step = Callable[[Scope], Any]

_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "_+_": standard.add,
    "_-_": standard.subtract,
    "_*_": standard.multiply,
    "_/_": standard.divide,
    "_%_": standard.modulo,
    "_==_": equal,
    "_!=_": lambda left, right: not equal(left, right),
    "@in": lambda item, container: contains(container, item),
    "contains": standard.text_contains,
    "startsWith": standard.starts_with,
    "endsWith": standard.ends_with,
    "matches": regex.matches,
    "_<_": lambda left, right: compare(left, right, "_<_") < 0,
    "_<=_": lambda left, right: compare(left, right, "_<=_") <= 0,
    "_>_": lambda left, right: compare(left, right, "_>_") > 0,
    "_>=_": lambda left, right: compare(left, right, "_>=_") >= 0,
}
_UNARY: dict[str, Callable[[Any], Any]] = {
    "-_": standard.negate,
    "!_": standard.logical_not,
    "size": standard.size,
    "type": standard.type_value,
    "dyn": lambda value: value,
}
_CONVERSIONS: dict[str, tuple[Callable[[Any], Any], tuple[str, ...]]] = {
    "int": (standard.to_int, ("int", "uint", "double", "string")),
    "uint": (standard.to_uint, ("int", "uint", "double", "string")),
    "double": (standard.to_double, ("int", "uint", "double", "string")),
    "string": (standard.to_string, ("string", "bool", "bytes", "int", "uint", "double")),
    "bool": (standard.to_bool, ("bool", "string")),
    "bytes": (standard.to_bytes, ("bytes", "string")),
}
_TYPES = frozenset({"bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type"})


def plan(expr: Expr) -> Step:
    """The function that evaluates ``expr`` over a Scope. It raises EvaluationError."""
    match expr:
        case Constant(kind, value):
            constant = UInt(value) if kind == "uint" else value
            return lambda _scope: constant
        case Ident(name):
            return _ident(name)
        case Select(operand, field, test_only):
            source = plan(operand)
            if test_only:
                return lambda scope: _is_there(source(scope), field)
            return lambda scope: _chain(source(scope), field)
        case ListOf():
            return _list(expr)
        case MapOf():
            return _map(expr)
        case Comprehension():
            return _fold(expr)
        case Call():
            return _call(expr)


def _ident(name: str) -> Step:
    if name in _TYPES:
        constant = TypeValue(name)
        return lambda _scope: constant

    def evaluate(scope: Scope) -> Any:
        value = scope[name]
        if type(value) is _Failed:
            raise value.error
        return value

    return evaluate


# Looking into values


def _chain(operand: Any, key: Any) -> Any:
    """``operand.key`` and ``operand[key]``: of an optional operand an optional result."""
    if isinstance(operand, Optional):
        return _optional_chain(operand, key)
    found = qualify(operand, key)
    if not found.present:
        raise missing(operand, key)
    return found.value


def _optional_chain(operand: Any, key: Any) -> Optional:
    """``operand.?key`` and ``operand[?key]``."""
    if isinstance(operand, Optional):
        if not operand.present:
            return NONE
        operand = operand.value
    found = qualify(operand, key)
    return found if not isinstance(found.value, Optional) else found.value


def _is_there(operand: Any, field: str) -> bool:
    """``has(operand.field)``."""
    if isinstance(operand, Optional):
        return operand.present and qualify(operand.value, field).present
    return qualify(operand, field).present


# Calls


def _call(call: Call) -> Step:
    args = (call.target, *call.args) if call.target is not None else call.args
    steps = tuple([plan(arg) for arg in args])
    match call.function:
        case "_&&_":
            return _logical(*steps, decisive=False)
        case "_||_":
            return _logical(*steps, decisive=True)
        case "_?_:_":
            return _conditional(*steps)
        case "@not_strictly_false":
            return _not_strictly_false(steps[0])
        case "_[_]":
            return _binary(_chain, *steps)
        case "_?._" | "_[?_]":
            return _binary(_optional_chain, *steps)
        case "or" | "orValue" if any(overload.startswith("optional_or") for overload in call.overloads):
            return _or(*steps, unwrapped=call.function == "orValue")
        case "value" | "hasValue" if any(overload.startswith("optional_") for overload in call.overloads):
            return _look_into(steps[0], call.function)
        case "cel.@mapInsert":
            return _insert(steps)
    if call.function in _BINARY or call.function in COMPARISONS:
        return _binary(_BINARY[call.function], *steps)
    if call.function in _UNARY:
        unary = _UNARY[call.function]
        return lambda scope: unary(steps[0](scope))
    if call.function in _CONVERSIONS:
        return _conversion(call.function, steps[0])
    return _overloaded(call, steps)


def _binary(compute: Callable[[Any, Any], Any], left: Step, right: Step) -> Step:
    return lambda scope: compute(left(scope), right(scope))


def _logical(left: Step, right: Step, *, decisive: bool) -> Step:
    """``decisive``: the value that decides alone."""

    def evaluate(scope: Scope) -> bool:
        problem: EvaluationError | None = None
        for side in (left, right):
            try:
                value: Any = side(scope)
            except StepsExhausted:
                raise
            except EvaluationError as error:
                problem = problem or error
                continue
            if not isinstance(value, bool):
                problem = problem or no_such_overload()
            elif value is decisive:
                return value
        if problem is not None:
            raise problem
        return not decisive

    return evaluate


def _conditional(condition: Step, yes: Step, no: Step) -> Step:
    def evaluate(scope: Scope) -> Any:
        decision = condition(scope)
        if not isinstance(decision, bool):
            raise no_such_overload()
        return yes(scope) if decision else no(scope)

    return evaluate


def _not_strictly_false(condition: Step) -> Step:
    def evaluate(scope: Scope) -> bool:
        try:
            return condition(scope) is not False
        except StepsExhausted:
            raise
        except EvaluationError:
            return True

    return evaluate


def _or(first: Step, second: Step, *, unwrapped: bool) -> Step:
    def evaluate(scope: Scope) -> Any:
        value = first(scope)
        if not isinstance(value, Optional):
            raise no_such_overload()
        if value.present:
            return value.value if unwrapped else value
        return second(scope)

    return evaluate


def _look_into(optional: Step, function: str) -> Step:
    def evaluate(scope: Scope) -> Any:
        value = optional(scope)
        if not isinstance(value, Optional):
            raise _unknown_signature(function, (value,))
        if function == "hasValue":
            return value.present
        if not value.present:
            raise EvaluationError("optional.none() dereference")
        return value.value

    return evaluate


def _insert(steps: tuple[Step, ...]) -> Step:
    def evaluate(scope: Scope) -> Any:
        known, *rest = [step(scope) for step in steps]
        entries = rest[0].items() if len(rest) == 1 else [tuple(rest)]
        grown = dict(known)
        for key, value in entries:
            if find(grown, key).present:
                raise EvaluationError(f"insert failed: key {shown(key)} already exists")
            grown[key] = value
        return grown

    return evaluate


def _conversion(function: str, operand: Step) -> Step:
    convert, kinds = _CONVERSIONS[function]

    def evaluate(scope: Scope) -> Any:
        value = operand(scope)
        if type_of(value) not in kinds:
            raise _unknown_signature(function, (value,))
        return convert(value)

    return evaluate


def _overloaded(call: Call, steps: tuple[Step, ...]) -> Step:
    if call.overloads and call.overloads[0] in EXTENSIONS:
        compute = EXTENSIONS[call.overloads[0]]
        takes_list = call.target is not None or call.overloads[0].startswith("list_sets")

        def extension(scope: Scope) -> Any:
            values = tuple([step(scope) for step in steps])
            if takes_list and not isinstance(values[0], list | tuple):
                raise _unknown_signature(call.function, values)
            return compute(*values)

        return extension
    overloads: tuple[Overload, ...] = tuple([OVERLOADS[name] for name in call.overloads])

    def evaluate(scope: Scope) -> Any:
        values = tuple([step(scope) for step in steps])
        for overload in overloads:
            if overload.accepts(values):
                return overload.compute(*values)
        raise _unknown_signature(call.function, values)

    return evaluate


def _unknown_signature(function: str, values: tuple[Any, ...]) -> EvaluationError:
    """Source: MaybeNoSuchOverload in common/decls/decls.go of cel-go."""
    return EvaluationError(f"{NO_SUCH_OVERLOAD}: {function}({', '.join(type_of(value) for value in values)})")


# Literals and loops


def _list(expr: ListOf) -> Step:
    steps = tuple([(plan(element), place in expr.optional) for place, element in enumerate(expr.elements)])

    def evaluate(scope: Scope) -> list[Any]:
        values = []
        for step, is_optional in steps:
            value = step(scope)
            if is_optional:
                if not isinstance(value, Optional):
                    text = f"cannot initialize optional list element from non-optional value {shown(value)}"
                    raise EvaluationError(text)
                if not value.present:
                    continue
                value = value.value
            values.append(value)
        return values

    return evaluate


def _map(expr: MapOf) -> Step:
    steps = tuple([(plan(entry.key), plan(entry.value), entry.optional) for entry in expr.entries])

    def evaluate(scope: Scope) -> dict[Any, Any]:
        values = {}
        for key_step, value_step, is_optional in steps:
            key, value = key_step(scope), value_step(scope)
            if is_optional:
                if not isinstance(value, Optional):
                    text = f"cannot initialize optional entry '{shown(key)}' from non-optional value {shown(value)}"
                    raise EvaluationError(text)
                if not value.present:
                    continue
                value = value.value
            values[key] = value
        return values

    return evaluate


def _weight(expr: Expr) -> int:
    """Nodes of a tree, loops within it counted once."""
    match expr:
        case Select(operand, _, _):
            return 1 + _weight(operand)
        case Call():
            parts = (*call_parts(expr),)
        case ListOf(elements, _):
            parts = elements
        case MapOf(entries):
            parts = tuple([part for entry in entries for part in (entry.key, entry.value)])
        case Comprehension():
            parts = (expr.start, expr.condition, expr.step, expr.result)
        case _:
            return 1
    return 1 + sum(_weight(part) for part in parts)


def call_parts(call: Call) -> tuple[Expr, ...]:
    """What a call is made on and with."""
    return (call.target, *call.args) if call.target is not None else call.args


def _fold(expr: Comprehension) -> Step:
    source, start = plan(expr.range), plan(expr.start)
    condition, step, result = plan(expr.condition), plan(expr.step), plan(expr.result)
    weight = _weight(expr.condition) + _weight(expr.step)
    names = tuple([name for name in (expr.variable, expr.second, expr.accumulator) if name])

    def evaluate(scope: Scope) -> Any:
        items = _items(source(scope), expr.second)
        outer = {name: scope[name] for name in names if name in scope}
        try:
            scope[expr.accumulator] = _settled(start, scope)
            for item in items:
                scope.steps -= weight
                if scope.steps < 0:
                    raise StepsExhausted
                if expr.second:
                    scope[expr.variable], scope[expr.second] = item
                else:
                    scope[expr.variable] = item
                if condition(scope) is not True:
                    break
                scope[expr.accumulator] = _settled(step, scope)
            return result(scope)
        finally:
            for name in names:
                scope.pop(name, None)
            scope.update(outer)

    return evaluate


def _settled(step: Step, scope: Scope) -> Any:
    try:
        return step(scope)
    except StepsExhausted:
        raise
    except EvaluationError as error:
        return _Failed(error)


def _items(source: Any, second: str) -> Any:
    """What a loop runs over: elements, keys, or pairs."""
    if isinstance(source, dict):
        return list(source.items() if second else source)
    if isinstance(source, list | tuple):
        return list(enumerate(source)) if second else source
    kind = f"types.{type_of(source).title()}"
    if second:
        raise EvaluationError(f"unsupported comprehension range type: {kind}")
    raise EvaluationError(f"got '{kind}', expected iterable type")


class _Failed:
    """An error in the accumulator of a loop, which a later round may still make good."""

    __slots__ = ("error",)

    def __init__(self, error: EvaluationError) -> None:
        self.error = error
