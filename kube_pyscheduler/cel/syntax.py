"""Checked expressions as trees, read from the bytes that the checker gives.

The bytes are a ``cel.expr.CheckedExpr`` of protocol buffers. Source: cel/expr/{syntax,checked}.proto of cel-spec.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Constant:
    """``kind`` as CEL names the type."""

    kind: str
    value: Any


@dataclass(frozen=True, slots=True)
class Ident:
    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """``operand.field``; with ``test_only`` whether it is there."""

    operand: Expr
    field: str
    test_only: bool


@dataclass(frozen=True, slots=True)
class Call:
    """``target`` is None for global functions. ``overloads``: ids of those that the checker found possible."""

    function: str
    target: Expr | None
    args: tuple[Expr, ...]
    overloads: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ListOf:
    """``optional``: positions of elements written with ``?``."""

    elements: tuple[Expr, ...]
    optional: frozenset[int]


@dataclass(frozen=True, slots=True)
class Entry:
    key: Expr
    value: Expr
    optional: bool


@dataclass(frozen=True, slots=True)
class MapOf:
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Comprehension:
    """A fold over ``range``: ``second`` is the name of a second variable, or ""."""

    range: Expr
    variable: str
    second: str
    accumulator: str
    start: Expr
    condition: Expr
    step: Expr
    result: Expr


Expr = Constant | Ident | Select | Call | ListOf | MapOf | Comprehension


@dataclass(frozen=True, slots=True)
class Problem:
    """``offset``: of the character in the expression, from 0."""

    offset: int
    text: str


@dataclass(frozen=True, slots=True)
class Checked:
    """``type`` of the result, as cel-go writes it. ``mixed``: literals whose elements are not of one type.
    ``patterns``: regular expressions that are written out, with their offsets."""

    expr: Expr
    type: str
    mixed: tuple[Problem, ...]
    patterns: tuple[tuple[int, str], ...]


Fields = dict[int, list[Any]]


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7


def _fields(data: memoryview) -> Fields:
    """Field number → its values: integers, 8 bytes, or the bytes of strings and messages."""
    found: Fields = {}
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        value: int | memoryview
        match tag & 7:
            case 0:
                value, at = _varint(data, at)
            case 1:
                value, at = data[at : at + 8], at + 8
            case 2:
                size, at = _varint(data, at)
                value, at = data[at : at + size], at + size
            case wire_type:
                raise ValueError(f"unexpected wire type {wire_type}")
        found.setdefault(tag >> 3, []).append(value)
    return found


def _text(fields: Fields, number: int) -> str:
    return str(fields[number][-1], "utf-8") if number in fields else ""


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def read_checked(data: bytes) -> Checked:
    """The tree in ``data``, which is an Any that holds a CheckedExpr."""
    checked = _fields(_fields(memoryview(data))[2][0])
    overloads = {}
    for number, reference in _entries(checked, 2):
        overloads[number] = tuple([str(name, "utf-8") for name in reference.get(3, ())])
    types = {number: type_name(kind) for number, kind in _entries(checked, 3)}
    positions = {}
    for raw in _fields(checked[5][0]).get(4, ()):
        entry = _fields(raw)
        positions[entry[1][0]] = entry[2][0] if 2 in entry else 0
    root = _fields(checked[4][0])
    reader = _Reader(overloads, types, positions)
    expr = reader.read(root)
    return Checked(expr, types.get(root[2][0], "dyn"), tuple(reader.mixed), tuple(reader.patterns))


def _entries(fields: Fields, number: int) -> Iterator[tuple[int, Fields]]:
    for raw in fields.get(number, ()):
        entry = _fields(raw)
        yield entry[1][0], _fields(entry[2][0])


_PRIMITIVES = ("", "bool", "int", "uint", "double", "string", "bytes")
_WELL_KNOWN = ("", "any", "google.protobuf.Timestamp", "google.protobuf.Duration")


def type_name(fields: Fields) -> str:
    """A type as cel-go writes it."""
    if not fields:
        return "dyn"
    number, values = next(iter(fields.items()))
    value = values[0]
    match number:
        case 2:
            return "null_type"
        case 3:
            return _PRIMITIVES[value]
        case 4:
            return f"wrapper({_PRIMITIVES[value]})"
        case 5:
            return _WELL_KNOWN[value]
        case 6:
            return f"list({_parameter(value, 1)})"
        case 7:
            return f"map({_parameter(value, 1)}, {_parameter(value, 2)})"
        case 9 | 10:
            return str(value, "utf-8")
        case 11:
            inner = type_name(_fields(value))
            return f"type({inner})"
        case 14:
            abstract = _fields(value)
            parameters = ", ".join(type_name(_fields(raw)) for raw in abstract.get(2, ()))
            name = _text(abstract, 1)
            return f"{name}({parameters})" if parameters else name
    return "dyn"


def _parameter(raw: memoryview, number: int) -> str:
    fields = _fields(raw)
    return type_name(_fields(fields[number][0])) if number in fields else "dyn"


class _Reader:
    """Reads expressions, and notes what is to be looked at besides."""

    def __init__(self, overloads: dict[int, tuple[str, ...]], types: dict[int, str], positions: dict[int, int]) -> None:
        self._overloads = overloads
        self._types = types
        self._positions = positions
        self.mixed: list[Problem] = []
        self.patterns: list[tuple[int, str]] = []

    def read(self, fields: Fields) -> Expr:
        """The expression in a message."""
        number = next(number for number in fields if number != 2)
        body = _fields(fields[number][0])
        match number:
            case 3:
                return _constant(body)
            case 4:
                return Ident(_text(body, 1))
            case 5:
                return Select(self._expr(body[1][0]), _text(body, 2), bool(body.get(3)))
            case 6:
                return self._call(fields[2][0], body)
            case 7:
                optional = frozenset(_packed(body.get(2, ())))
                elements = body.get(1, ())
                self._compare([(raw, place in optional) for place, raw in enumerate(elements)])
                return ListOf(tuple([self._expr(raw) for raw in elements]), optional)
            case 8:
                entries = [_fields(raw) for raw in body.get(2, ())]
                self._compare([(entry[3][0], False) for entry in entries])
                self._compare([(entry[4][0], bool(entry.get(5))) for entry in entries])
                return MapOf(tuple([Entry(self._expr(e[3][0]), self._expr(e[4][0]), bool(e.get(5))) for e in entries]))
            case 9:
                parts = [self._expr(body[part][0]) for part in (2, 4, 5, 6, 7)]
                source, start, condition, step, result = parts
                variables = _text(body, 1), _text(body, 8)
                return Comprehension(source, *variables, _text(body, 3), start, condition, step, result)
        raise ValueError(f"unexpected kind of expression {number}")

    def _expr(self, raw: memoryview) -> Expr:
        return self.read(_fields(raw))

    def _call(self, number: int, body: Fields) -> Call:
        function = _text(body, 2)
        target = self._expr(body[1][0]) if 1 in body else None
        args = tuple([self._expr(raw) for raw in body.get(3, ())])
        if function == "matches" and args and isinstance(args[0], Constant):
            self.patterns.append((self._offset(body[3][0]), args[0].value))
        return Call(function, target, args, self._overloads.get(number, ()))

    def _offset(self, raw: memoryview) -> int:
        return self._positions.get(_fields(raw)[2][0], 0)

    def _compare(self, elements: list[tuple[memoryview, bool]]) -> None:
        """Elements of literals, keys or values, and whether they are optional; all must be of one type.

        Source: homogeneousAggregateLiteralValidator in cel/validator.go of cel-go.
        """
        first = None
        for raw, is_optional in elements:
            kind = self._types.get(_fields(raw)[2][0], "dyn")
            if is_optional:
                kind = kind.removeprefix("optional_type(").removesuffix(")")
            if first is None:
                first = kind
            elif kind != first:
                text = f"expected type '{first}' but found '{kind}'".replace("null_type", "null")
                self.mixed.append(Problem(self._offset(raw), text))
                return


def _packed(values: list[Any] | tuple[()]) -> Iterator[int]:
    for value in values:
        if isinstance(value, int):
            yield value
            continue
        at = 0
        while at < len(value):
            number, at = _varint(value, at)
            yield number


def _constant(fields: Fields) -> Constant:
    number, values = next(iter(fields.items()))
    value = values[0]
    match number:
        case 1:
            return Constant("null_type", None)
        case 2:
            return Constant("bool", bool(value))
        case 3:
            return Constant("int", _signed(value))
        case 4:
            return Constant("uint", value)
        case 5:
            return Constant("double", struct.unpack("<d", value)[0])
        case 6:
            return Constant("string", str(value, "utf-8"))
        case 7:
            return Constant("bytes", bytes(value))
    raise ValueError(f"unexpected constant {number}")
