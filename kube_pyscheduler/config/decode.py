"""Plain values to typed structs, strictly: what is unknown or of the wrong type is reported, all of it at once.

``null`` is absent. Where a field cannot be read its default stands in, so that the rest can still be judged.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar, Union

import msgspec

from kube_pyscheduler.config.errors import Problems, child
from kube_pyscheduler.kit.duration import format_duration, parse_duration

T = TypeVar("T", bound=msgspec.Struct)


class Duration(float):
    """Seconds; a Go duration (``1m30s``) in the document."""

    def __str__(self) -> str:
        return format_duration(self)


def decode_struct(cls: type[T], value: Any, path: str, problems: Problems) -> T:
    """``value`` (None: empty) as a ``cls``."""
    if value is None:
        return cls()
    if not isinstance(value, Mapping):
        problems.add(path, f"expected an object, got {_kind(value)}")
        return cls()
    fields = _fields(cls)
    read: dict[str, Any] = {}
    for key, item in value.items():
        field = fields.get(key)
        if field is None:
            problems.add(child(path, str(key)), "unknown field")
        elif item is not None:
            name, annotation = field
            decoded = _decode(annotation, item, child(path, key), problems)
            if decoded is not _UNREADABLE:
                read[name] = decoded
    return cls(**read)


def read_struct(cls: type[T], value: Any, path: str) -> T:
    """``value`` by itself, as ``decode_struct``. Raises ConfigError."""
    problems = Problems()
    read = decode_struct(cls, value, path, problems)
    problems.raise_if_any()
    return read


_UNREADABLE = object()


@cache
def _fields(cls: type[msgspec.Struct]) -> dict[str, tuple[str, Any]]:
    """Name in the document → (attribute, type)."""
    hints = typing.get_type_hints(cls, include_extras=True)
    return {field.encode_name: (field.name, hints[field.name]) for field in msgspec.structs.fields(cls)}


def _decode(annotation: Any, value: Any, path: str, problems: Problems) -> Any:
    origin = typing.get_origin(annotation)
    if origin in (Union, types.UnionType):
        inner = [option for option in typing.get_args(annotation) if option is not type(None)]
        if len(inner) == 1:
            return _decode(inner[0], value, path, problems)
    if origin is tuple:
        return _decode_list(typing.get_args(annotation)[0], value, path, problems)
    if isinstance(annotation, type):
        if issubclass(annotation, msgspec.Struct):
            return decode_struct(annotation, value, path, problems)
        if issubclass(annotation, Duration):
            return _decode_duration(value, path, problems)
    try:
        return msgspec.convert(value, annotation)
    except msgspec.ValidationError as error:
        problems.add(path, str(error).split(" - at `$")[0].replace("`", "").replace("Expected", "expected"))
        return _UNREADABLE


def _decode_list(item_type: Any, value: Any, path: str, problems: Problems) -> Any:
    if not isinstance(value, list | tuple):
        problems.add(path, f"expected a list, got {_kind(value)}")
        return _UNREADABLE
    items = [_decode(item_type, item, f"{path}[{index}]", problems) for index, item in enumerate(value)]
    return tuple(item for item in items if item is not _UNREADABLE)


def _decode_duration(value: Any, path: str, problems: Problems) -> Any:
    if not isinstance(value, str):
        problems.add(path, f'expected a duration such as "15s", got {_kind(value)}')
        return _UNREADABLE
    try:
        return Duration(parse_duration(value))
    except ValueError as error:
        problems.add(path, str(error))
        return _UNREADABLE


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case Mapping():
            return "an object"
        case _:
            return "a list"
