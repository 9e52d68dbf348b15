"""Types of fields as a small tree, compiled on demand from ``definitions.json``.

The file is derived from the OpenAPI document of Kubernetes 1.36 by ``build.py``.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import msgspec

DEFINITIONS_FILE = Path(__file__).with_name("definitions.json")
KIND_EXTENSION = "x-kubernetes-group-version-kind"

STRUCT = "struct"
MAP = "map"
LIST = "list"
ANY = "any"
QUANTITY = "quantity"
TIME = "time"
MICRO_TIME = "micro-time"
INT_OR_STRING = "int-or-string"

_SPECIAL = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": QUANTITY,
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": TIME,
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": MICRO_TIME,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": INT_OR_STRING,
}


class Type:
    """The type of one field.

    ``form`` is STRUCT, MAP, LIST, ANY, QUANTITY, TIME, MICRO_TIME, INT_OR_STRING or a JSON type ("string",
    "integer", "number", "boolean"). ``fields`` belongs to STRUCT, ``item`` to MAP and LIST; ``name`` is that of the
    OpenAPI definition, "" for a type without one.
    """

    __slots__ = ("_fields", "_item", "_node", "form", "list_keys", "list_type", "merge_key", "name", "strategies")

    def __init__(self, form: str, node: dict[str, Any], name: str = "") -> None:
        self.form = form
        self.name = name
        self._node = node
        self._fields: dict[str, Type] | None = None
        self._item: Type | None = None
        self.list_type: str = node.get("x-kubernetes-list-type", "atomic")
        """How apply merges a list: "atomic", "set" or "map"; "atomic" also marks a map merged as a whole."""
        if form in (STRUCT, MAP):
            self.list_type = node.get("x-kubernetes-map-type", "granular")
        self.list_keys: tuple[str, ...] = tuple(node.get("x-kubernetes-list-map-keys", ()))
        self.merge_key: str = node.get("x-kubernetes-patch-merge-key", "")
        """The key by which a strategic merge patch finds list items."""
        self.strategies: frozenset[str] = frozenset(node.get("x-kubernetes-patch-strategy", "").split(",")) - {""}
        """Of a strategic merge patch: "merge", "replace", "retainKeys"."""

    @property
    def fields(self) -> dict[str, Type]:
        if self._fields is None:
            self._fields = {name: _compile(node) for name, node in self._node.get("properties", {}).items()}
        return self._fields

    @property
    def item(self) -> Type:
        if self._item is None:
            key = "items" if self.form == LIST else "additionalProperties"
            self._item = _compile(self._node.get(key) or {})
        return self._item

    @property
    def is_bytes(self) -> bool:
        """Whether a string is base64 of bytes."""
        return bool(self._node.get("format") == "byte")

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(self._node.get("required", ()))

    def default(self, field: str) -> Any:
        """The default of a STRUCT's field as a scalar, or None."""
        return self._node["properties"][field].get("default")


ANY_TYPE = Type(ANY, {})


@cache
def definitions() -> dict[str, dict[str, Any]]:
    """All definitions by their OpenAPI name; do not change them."""
    decoded: dict[str, dict[str, Any]] = msgspec.json.decode(DEFINITIONS_FILE.read_bytes())
    return decoded


@cache
def _names() -> dict[tuple[str, str, str], str]:
    return {
        (gvk["group"], gvk["version"], gvk["kind"]): name
        for name, definition in definitions().items()
        for gvk in definition.get(KIND_EXTENSION, ())
    }


def definition_name(group: str, version: str, kind: str) -> str | None:
    """The OpenAPI name of a kind, for example "io.k8s.api.core.v1.Pod"."""
    return _names().get((group, version, kind))


@cache
def _definition(name: str) -> Type:
    special = _SPECIAL.get(name)
    node = definitions()[name]
    if special is not None:
        return Type(special, node, name)
    return _plain(node, name)


def _compile(node: dict[str, Any]) -> Type:
    reference = node.get("$ref")
    if not isinstance(reference, str):
        return _plain(node)
    name = reference.rsplit("/", 1)[1]
    if len(node) == 1:
        return _definition(name)
    # A reference with attributes of its own: those win over the definition's.
    return _plain({**definitions()[name], **{key: node[key] for key in node if key != "$ref"}}, name)


def _plain(node: dict[str, Any], name: str = "") -> Type:
    kind = node.get("type")
    if kind == "array":
        return Type(LIST, node)
    if kind == "object":
        if "properties" in node:
            return Type(STRUCT, node, name)
        return Type(MAP, node) if "additionalProperties" in node else Type(ANY, node, name)
    if kind == "string" and node.get("format") == "date-time":
        return Type(TIME, node)
    if kind == "string" and node.get("format") == "int-or-string":
        return Type(INT_OR_STRING, node)
    return Type(kind, node) if kind else ANY_TYPE


def type_of(group: str, version: str, kind: str) -> Type | None:
    """The type of a built-in kind; None when it is not known (custom resources)."""
    name = definition_name(group, version, kind)
    return None if name is None else _definition(name)


def builtin_type(group: str, version: str, kind: str) -> Type:
    """The type of a kind that is built in for sure. KeyError."""
    return _definition(_names()[group, version, kind])
