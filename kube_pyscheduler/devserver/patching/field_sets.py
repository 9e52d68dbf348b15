"""Fields of an object as paths, and their FieldsV1 text in managedFields.

A path is a tuple of elements as FieldsV1 writes them: ``f:name`` a field, ``k:{"name":"a"}`` an item of a keyed list,
``v:"x"`` an item of a set. Source: sigs.k8s.io/structured-merge-diff, fieldpath and typed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from kube_pyscheduler.devserver.schema.types import ANY, ANY_TYPE, LIST, MAP, STRUCT, Type

Path = tuple[str, ...]

PRESENT = object()
"""Stands for the value of a map or list item, whose parts are listed by themselves."""
_SELF = "."


def element_of(item: Any, kind: Type) -> str:
    """The path element of an item of a list of the given type."""
    if kind.list_type == "set":
        return "v:" + json.dumps(item, separators=(",", ":"))
    keys = {}
    for key in sorted(kind.list_keys):
        value = item.get(key)
        if value is None and kind.item.form == STRUCT and key in kind.item.fields:
            value = kind.item.default(key)
        if value is not None:
            keys[key] = value
    return "k:" + json.dumps(keys, separators=(",", ":"))


def is_granular(value: Any, kind: Type) -> bool:
    """Whether a value's parts have owners of their own."""
    if isinstance(value, dict):
        return kind.form == ANY or (kind.form in (STRUCT, MAP) and kind.list_type != "atomic")
    return isinstance(value, list) and kind.form == LIST and kind.list_type in ("map", "set")


def child_type(kind: Type, key: str) -> Type:
    """The type of a field of a struct or map."""
    if kind.form == STRUCT:
        return kind.fields.get(key, ANY_TYPE)
    return kind.item if kind.form == MAP else ANY_TYPE


def leaves(value: Any, kind: Type) -> dict[Path, Any]:
    """Every owned path of a value, with the value there (PRESENT where its parts are listed too)."""
    found: dict[Path, Any] = {}
    _collect(value, kind, (), found)
    found.pop((), None)
    return found


def _collect(value: Any, kind: Type, path: Path, found: dict[Path, Any]) -> None:
    if not is_granular(value, kind):
        found[path] = value
    elif isinstance(value, dict):
        if not value or kind.form == MAP:
            found[path] = PRESENT
        for key, item in value.items():
            _collect(item, child_type(kind, key), (*path, "f:" + key), found)
    else:
        if not value:
            found[path] = PRESENT
        for item in value:
            place = (*path, element_of(item, kind))
            found[place] = PRESENT
            if kind.list_type == "map":
                _collect(item, kind.item, place, found)


def to_fields(paths: Iterable[Path]) -> dict[str, Any]:
    """A set of paths as FieldsV1."""
    ordered = sorted(paths)
    tree: dict[str, Any] = {}
    for path in ordered:
        node = tree
        for element in path:
            node = node.setdefault(element, {})
        node[_SELF] = {}
    return _without_lone_self(tree)


def _without_lone_self(node: dict[str, Any]) -> dict[str, Any]:
    if node.keys() == {_SELF}:
        return {}
    return {key: _without_lone_self(child) if key != _SELF else {} for key, child in node.items()}


def from_fields(fields: dict[str, Any]) -> set[Path]:
    """The paths of FieldsV1."""
    paths: set[Path] = set()

    def walk(node: dict[str, Any], path: Path) -> None:
        if not node:
            paths.add(path)
        for element, child in node.items():
            if element == _SELF:
                paths.add(path)
            else:
                walk(child, (*path, element))

    for element, child in fields.items():
        walk(child, (element,))
    return paths


def shown(path: Path) -> str:
    """A path as messages show it: ``.spec.containers[name="a"].image``."""
    text = ""
    for element in path:
        form, _, rest = element.partition(":")
        if form == "f":
            text += "." + rest
        elif form == "k":
            keys = json.loads(rest)
            text += "[" + ",".join(f"{key}={json.dumps(value)}" for key, value in keys.items()) + "]"
        else:
            text += f"[={rest}]"
    return text
