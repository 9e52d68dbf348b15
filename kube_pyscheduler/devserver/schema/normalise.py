"""Brings a decoded body into the shape of its kind, as decoding into Go structs does.

Unknown fields and nulls are dropped, empty maps and lists too, numbers given for quantities become text.
"""

from __future__ import annotations

from typing import Any

from kube_pyscheduler.devserver.errors import bad_request
from kube_pyscheduler.devserver.schema.quantities import canonical
from kube_pyscheduler.devserver.schema.types import (
    ANY,
    INT_OR_STRING,
    LIST,
    MAP,
    MICRO_TIME,
    QUANTITY,
    STRUCT,
    TIME,
    Type,
)
from kube_pyscheduler.objects.quantity import QuantityError

_SCALARS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    TIME: (str,),
    MICRO_TIME: (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    INT_OR_STRING: (int, str),
}
_JSON_NAMES = {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number"}


class WrongTypeError(Exception):
    """A value has a type that its field can't hold."""


def normalise(obj: dict[str, Any], kind: Type, unknown: list[str]) -> dict[str, Any]:
    """A clean copy of the object; paths of unknown fields are added to ``unknown``.

    Raises WrongTypeError when a value can't be read as the type of its field.
    """
    return _struct(obj, kind, "", unknown)


def _struct(obj: dict[str, Any], kind: Type, path: str, unknown: list[str]) -> dict[str, Any]:
    fields = kind.fields
    result: dict[str, Any] = {}
    for key, value in obj.items():
        field = fields.get(key)
        if field is None:
            unknown.append(path + key)
        elif value is not None:
            clean = _value(value, field, path + key, unknown)
            if clean is not None:
                result[key] = clean
    return result


def _value(value: Any, kind: Type, path: str, unknown: list[str]) -> Any:
    form = kind.form
    allowed = _SCALARS.get(form)
    if allowed is not None:
        if not isinstance(value, allowed) or (isinstance(value, bool) and form != "boolean"):
            if form == "integer" and isinstance(value, float) and value.is_integer():
                return int(value)
            raise _wrong(value, path, form)
        return value
    if form == ANY:
        return value
    if form == QUANTITY:
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise _wrong(value, path, form)
        try:
            return canonical(value)
        except QuantityError:
            raise WrongTypeError(
                "quantities must match the regular expression "
                f"'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$' ({path}: {value!r})"
            ) from None
    if form == LIST:
        if not isinstance(value, list):
            raise _wrong(value, path, form)
        item = kind.item
        return [_item(entry, item, f"{path}[{i}]", unknown) for i, entry in enumerate(value)] or None
    if not isinstance(value, dict):
        raise _wrong(value, path, form)
    if form == STRUCT:
        return _struct(value, kind, path + ".", unknown)
    if form == MAP:
        item = kind.item
        return {key: _item(entry, item, f"{path}.{key}", unknown) for key, entry in value.items()} or None
    raise AssertionError(form)


def _item(value: Any, kind: Type, path: str, unknown: list[str]) -> Any:
    """An entry of a list or map; null reads as the zero value."""
    if value is None:
        return {"string": "", "boolean": False, "integer": 0, QUANTITY: "0", STRUCT: {}}.get(kind.form)
    clean = _value(value, kind, path, unknown)
    if clean is None:
        return [] if kind.form == LIST else {}
    return clean


def _wrong(value: Any, path: str, form: str) -> WrongTypeError:
    found = _JSON_NAMES.get(type(value), "value")
    return WrongTypeError(f"json: cannot unmarshal {found} into Go struct field .{path} of type {form}")


def read_object(
    obj: dict[str, Any], kind: Type, name: str, version: str, *, strict: bool
) -> tuple[dict[str, Any], list[str]]:
    """The clean object and the messages about its unknown fields.

    400 when a value has the wrong type, or, when ``strict``, when a field is unknown.
    """
    unknown: list[str] = []
    try:
        clean = normalise(obj, kind, unknown)
    except WrongTypeError as error:
        raise bad_request(f'{name} in version "{version}" cannot be handled as a {name}: {error}') from None
    messages = [f'unknown field "{path}"' for path in unknown]
    if strict and messages:
        raise bad_request(
            f'{name} in version "{version}" cannot be handled as a {name}: strict decoding error: '
            + ", ".join(messages)
        )
    return clean, messages
