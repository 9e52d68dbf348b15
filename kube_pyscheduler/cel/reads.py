"""What of a device an expression looks at, so that devices that are equal in this are asked about once."""

from __future__ import annotations

from dataclasses import dataclass

from kube_pyscheduler.cel.checker import ATTRIBUTES, CAPACITY, DEVICE
from kube_pyscheduler.cel.program import call_parts
from kube_pyscheduler.cel.syntax import Call, Comprehension, Constant, Expr, Ident, ListOf, MapOf, Select

Path = tuple[str, str, str]
"""("attributes" or "capacity", domain, identifier)."""

_KEYED = frozenset({"_[_]", "_[?_]", "_?._"})


@dataclass(frozen=True, slots=True)
class Reads:
    """``everything``: the expression may look at anything; else it looks at these alone, and at the driver and at
    whether the device is shared, which are always counted."""

    paths: frozenset[Path] = frozenset()
    everything: bool = False


EVERYTHING = Reads(everything=True)


class _Escapes(Exception):
    """A map of the device is used as a whole."""


def reads_of(expr: Expr) -> Reads:
    """What the expression looks at."""
    paths: set[Path] = set()
    try:
        _visit(expr, {}, paths)
    except _Escapes:
        return EVERYTHING
    return Reads(frozenset(paths))


def _visit(expr: Expr, aliases: dict[str, tuple[str, str]], paths: set[Path]) -> None:
    """``aliases``: variables that stand for (map, domain)."""
    path = _path(expr, aliases)
    if path is not None:
        paths.add(path)
        return
    if _domain(expr, aliases) is not None:
        # The map of one domain, as a whole.
        raise _Escapes
    match expr:
        case Constant() | Ident(name=("device.driver" | "device.allowMultipleAllocations")):
            return
        case Ident(name):
            if name in (DEVICE, ATTRIBUTES, CAPACITY):
                raise _Escapes
        case Select(operand, _, _):
            _visit(operand, aliases, paths)
        case Call():
            for part in call_parts(expr):
                _visit(part, aliases, paths)
        case ListOf(elements, _):
            for element in elements:
                _visit(element, aliases, paths)
        case MapOf(entries):
            for entry in entries:
                _visit(entry.key, aliases, paths)
                _visit(entry.value, aliases, paths)
        case Comprehension():
            _visit_loop(expr, aliases, paths)


def _visit_loop(expr: Comprehension, aliases: dict[str, tuple[str, str]], paths: set[Path]) -> None:
    inner = {
        name: known for name, known in aliases.items() if name not in (expr.variable, expr.second, expr.accumulator)
    }
    bound = _domain(expr.start, aliases)
    _visit(expr.range, aliases, paths)
    if bound is not None and isinstance(expr.range, ListOf) and not expr.range.elements:
        # cel.bind(variable, device.attributes["domain"], …): the loop does not run.
        _visit(expr.result, {**inner, expr.accumulator: bound}, paths)
        return
    _visit(expr.start, aliases, paths)
    for part in (expr.condition, expr.step, expr.result):
        _visit(part, inner, paths)


def _keyed(expr: Expr) -> tuple[Expr, str] | None:
    """Operand and key, where the key is a literal text."""
    if isinstance(expr, Select):
        return expr.operand, expr.field
    if isinstance(expr, Call) and expr.function in _KEYED and isinstance(expr.args[1], Constant):
        key = expr.args[1].value
        return (expr.args[0], key) if isinstance(key, str) else None
    return None


def _domain(expr: Expr, aliases: dict[str, tuple[str, str]]) -> tuple[str, str] | None:
    """The (map, domain) that an expression stands for."""
    if isinstance(expr, Ident):
        return aliases.get(expr.name)
    keyed = _keyed(expr)
    if keyed is None or not isinstance(keyed[0], Ident):
        return None
    kind = {ATTRIBUTES: "attributes", CAPACITY: "capacity"}.get(keyed[0].name)
    return (kind, keyed[1]) if kind is not None else None


def _path(expr: Expr, aliases: dict[str, tuple[str, str]]) -> Path | None:
    """The one attribute or capacity that an expression looks up or looks for."""
    keyed = _keyed(expr)
    if keyed is None and isinstance(expr, Call) and expr.function == "@in" and isinstance(expr.args[0], Constant):
        key = expr.args[0].value
        keyed = (expr.args[1], key) if isinstance(key, str) else None
    if keyed is None:
        return None
    domain = _domain(keyed[0], aliases)
    return (*domain, keyed[1]) if domain is not None else None
