"""Bytes to objects, one at a time, so that a malformed one harms nobody else.

The fast path decodes straight into structs. Only when that fails is the object looked at again: ``null`` means absent
for every field, and what is still unreadable after that is reported with its path.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from kube_pyscheduler.objects.quantity import QuantityError, parse_milli

NOT_JSON: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises for bytes that are no JSON, or are nested too deeply to be any object of the API."""

MAX_REPAIRS = 32
"""How many unreadable fields ``salvage`` drops before it gives up."""


class DecodeError(ValueError):
    """An object that cannot be read. ``key`` is its namespace/name where these are readable, else ""."""

    def __init__(self, problem: str, key: str = "") -> None:
        super().__init__(f"{key}: {problem}" if key else problem)
        self.problem = problem
        self.key = key


def without_nulls(value: Any) -> Any:
    """The same JSON value with every field that is ``null`` left out."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value if item is not None]
    return value


def key_of(value: Any) -> str:
    """``namespace/name`` of a raw object, as far as it can be read."""
    meta = value.get("metadata") if isinstance(value, dict) else None
    if not isinstance(meta, dict) or not isinstance(meta.get("name"), str):
        return ""
    namespace = meta.get("namespace")
    return f"{namespace}/{meta['name']}" if isinstance(namespace, str) and namespace else meta["name"]


class ObjectDecoder:
    """Decodes objects of one type. Thread-safe; holds no state between calls."""

    def __init__(self, cls: type[Any]) -> None:
        self._cls = cls
        self._fast = msgspec.json.Decoder(cls)

    def decode(self, raw: bytes | memoryview | msgspec.Raw) -> Any:
        """The object. Raises DecodeError."""
        try:
            decoded = self._fast.decode(raw)
            return self._checked(decoded)
        except (*NOT_JSON, ValueError):
            pass
        value = self._parse(raw)
        try:
            return self._checked(msgspec.convert(value, self._cls))
        except ValueError as error:
            raise DecodeError(str(error), key_of(value)) from None

    def salvage(self, raw: bytes | memoryview | msgspec.Raw) -> Any | None:
        """What is readable of an object that does not decode: unreadable fields are dropped. None where even the
        name is not readable. Raises DecodeError when it is not JSON."""
        value = self._parse(raw)
        for _ in range(MAX_REPAIRS):
            try:
                return self._checked(msgspec.convert(value, self._cls))
            except msgspec.ValidationError as error:
                if not _drop(value, str(error)):
                    return None
            except ValueError:
                if not _drop_quantities(value):
                    return None
        return None

    def _checked(self, decoded: Any) -> Any:
        if not decoded.metadata.name:
            raise ValueError("metadata.name is missing")
        decoded.check()
        return decoded

    @staticmethod
    def _parse(raw: bytes | memoryview | msgspec.Raw) -> Any:
        try:
            return without_nulls(msgspec.json.decode(raw))
        except NOT_JSON as error:
            raise DecodeError(str(error)) from None


_STEP = re.compile(r"\.([A-Za-z0-9_]+)|\[([0-9]+)\]|(\[\.\.\.\])")
_JSON_TYPES = {"object": dict, "array": list, "str": str, "int": int, "float": float, "bool": bool}


def _drop(value: Any, message: str) -> bool:
    """Remove the field that a ValidationError names (``… - at `$.spec.a[0].b```). False if there is none."""
    found = re.search(r"at `(?:key in )?\$(.*)`$", message)
    if found is None:
        return False
    steps = [name or (int(index) if index else None) for name, index, _any in _STEP.findall(found.group(1))]
    got = re.search(r"got `([a-z]+)`", message)
    return _remove(value, steps, _JSON_TYPES.get(got.group(1)) if got else None)


def _remove(root: Any, steps: list[str | int | None], got: type | None) -> bool:
    """Remove what ``steps`` lead to. None stands for "some entry of this mapping": as the last step it drops the
    entries of type ``got``, else (or where there are none) the mapping is dropped whole."""
    value: Any = root
    for position, step in enumerate(steps):
        last = position == len(steps) - 1
        following_any = not last and steps[position + 1] is None
        if step is None:
            return False
        try:
            if following_any and position == len(steps) - 2 and got and _drop_entries(value[step], got):
                return True
            if last or following_any:
                del value[step]
                return steps[:1] != ["metadata"] or len(steps) > 2
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return False
    return False


def _drop_entries(mapping: Any, of_type: type) -> bool:
    wrong = [key for key, item in mapping.items() if type(item) is of_type]
    for key in wrong:
        del mapping[key]
    return bool(wrong)


def _drop_quantities(value: Any) -> bool:
    """Remove every resource amount that is no quantity. False if there is none."""
    dropped = False
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, dict):
            for name in ("requests", "limits", "allocatedResources", "overhead", "allocatable", "capacity"):
                amounts = item.get(name)
                if not isinstance(amounts, dict):
                    continue
                for resource in list(amounts):
                    try:
                        parse_milli(amounts[resource])
                    except (QuantityError, TypeError):
                        del amounts[resource]
                        dropped = True
            stack.extend(item.values())
    return dropped
