"""Reads request bodies in the protobuf encoding of Kubernetes into the same JSON objects that a JSON body gives.

kubectl's create commands, evictions and Go clients send it. Nothing is ever written in it: such clients accept JSON.
Source: staging/src/k8s.io/apimachinery/pkg/runtime/serializer/protobuf/protobuf.go; field numbers come from
``numbers.json``, types from the OpenAPI definitions.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

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
    type_of,
)
from kube_pyscheduler.devserver.times import micro_timestamp, timestamp

NUMBERS_FILE = Path(__file__).with_name("numbers.json")
KEEP_ZERO = "!"
"""Before a name in ``numbers.json``: a zero on the wire is a value, not an absence."""
_MAGIC = b"k8s\x00"
_SIGN = 1 << 63

Field = int | bytes
"""A varint, or the bytes of a fixed or length-delimited field."""


class ProtobufError(ValueError):
    """The bytes are not what they should be."""


@cache
def _numbers() -> dict[str, dict[str, Any]]:
    numbers: dict[str, dict[str, Any]] = msgspec.json.decode(NUMBERS_FILE.read_bytes())
    return numbers


def decode(body: bytes) -> dict[str, Any]:
    """The object in an ``application/vnd.kubernetes.protobuf`` body. ProtobufError when it can't be read."""
    if not body.startswith(_MAGIC):
        raise ProtobufError("the body does not begin as a protobuf object of Kubernetes")
    try:
        envelope = dict(_fields(body[len(_MAGIC) :]))
        kind_meta = {number: _text(value) for number, value in _fields(_bytes(envelope[1]))}
        api_version, kind = kind_meta.get(1, ""), kind_meta.get(2, "")
        group, _, version = api_version.rpartition("/")
        schema = type_of(group, version, kind)
        if schema is None:
            raise ProtobufError(f"{api_version} {kind} can't be read in this encoding")
        return {"kind": kind, "apiVersion": api_version, **_struct(_bytes(envelope.get(2, b"")), schema)}
    except (KeyError, IndexError, UnicodeDecodeError, struct.error, msgspec.DecodeError) as error:
        raise ProtobufError(f"the body is damaged: {error!r}") from error


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def _fields(data: bytes) -> Iterator[tuple[int, Field]]:
    position, end = 0, len(data)
    while position < end:
        key, position = _varint(data, position)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, position = _varint(data, position)
            yield number, value
            continue
        if wire == 2:
            length, position = _varint(data, position)
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
        else:
            raise ProtobufError(f"wire type {wire} is not used by Kubernetes")
        if position + length > end:
            raise ProtobufError("the body ends too early")
        yield number, data[position : position + length]
        position += length


def _bytes(field: Field) -> bytes:
    if isinstance(field, int):
        raise ProtobufError("a number stands where bytes belong")
    return field


def _text(field: Field) -> str:
    return _bytes(field).decode()


def _number(field: Field) -> int:
    if not isinstance(field, int):
        raise ProtobufError("bytes stand where a number belongs")
    return field - (_SIGN << 1) if field & _SIGN else field


def _struct(data: bytes, schema: Type) -> dict[str, Any]:
    result: dict[str, Any] = {}
    _fill(result, data, schema, _numbers().get(schema.name, {}))
    return result


def _fill(result: dict[str, Any], data: bytes, schema: Type, numbers: dict[str, Any]) -> None:
    for number, field in _fields(data):
        name = numbers.get(str(number))
        if isinstance(name, dict):
            _fill(result, _bytes(field), schema, name)
            continue
        if name is None:
            continue
        keep = name.startswith(KEEP_ZERO)
        name = name.removeprefix(KEEP_ZERO)
        kind = schema.fields.get(name)
        if kind is None:
            continue
        if kind.form == LIST:
            result.setdefault(name, []).append(_value(field, kind.item))
        elif kind.form == MAP:
            entry = dict(_fields(_bytes(field)))
            value = entry.get(2, b"")
            result.setdefault(name, {})[_text(entry.get(1, b""))] = _value(value, kind.item)
        else:
            value = _value(field, kind)
            if value is not None and (keep or value not in (0, "", False)):
                result[name] = value


def _value(field: Field, kind: Type) -> Any:
    match kind.form:
        case "string":
            return base64.b64encode(_bytes(field)).decode() if kind.is_bytes else _text(field)
        case "integer":
            return _number(field)
        case "boolean":
            return _number(field) != 0
        case "number":
            return struct.unpack("<d", _bytes(field))[0]
        case form if form == STRUCT:
            return _struct(_bytes(field), kind)
        case form if form == QUANTITY:
            return _text(dict(_fields(_bytes(field))).get(1, b"0"))
        case form if form in (TIME, MICRO_TIME):
            return _time(_bytes(field), micro=form == MICRO_TIME)
        case form if form == INT_OR_STRING:
            parts = dict(_fields(_bytes(field)))
            return _text(parts.get(3, b"")) if parts.get(1) else _number(parts.get(2, 0))
        case form if form == LIST:
            return [_value(item, kind.item) for _, item in _fields(_bytes(field))]
        case form if form == ANY:
            raw = _bytes(dict(_fields(_bytes(field))).get(1, b""))
            return msgspec.json.decode(raw) if raw else None
        case form:
            raise ProtobufError(f"a field of type {form} can't be read in this encoding")


def _time(data: bytes, *, micro: bool) -> str | None:
    parts = dict(_fields(data))
    if not parts:
        return None
    seconds = _number(parts.get(1, 0))
    if not micro:
        return timestamp(seconds)
    return micro_timestamp(seconds + _number(parts.get(2, 0)) / 1e9)
