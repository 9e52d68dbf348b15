"""Strategic merge patch: lists of objects merge by key, directives delete, replace and order.

Source: staging/src/k8s.io/apimachinery/pkg/util/strategicpatch/patch.go; merge keys come from ``schema``.
"""

from __future__ import annotations

from typing import Any

from kube_pyscheduler.devserver.errors import bad_request
from kube_pyscheduler.devserver.schema.types import ANY_TYPE, LIST, MAP, STRUCT, Type

_DIRECTIVE = "$patch"
_RETAIN = "$retainKeys"
_ORDER = "$setElementOrder/"
_DELETE_PRIMITIVES = "$deleteFromPrimitiveList/"


def strategic_merge(target: dict[str, Any], patch: dict[str, Any], kind: Type) -> dict[str, Any]:
    """The target with the patch merged in; shares unchanged parts with both. 400 for a malformed patch."""
    match patch.get(_DIRECTIVE):
        case "replace":
            return {key: value for key, value in patch.items() if key != _DIRECTIVE}
        case "delete":
            return {}
        case None | "merge":
            pass
        case other:
            raise bad_request(f"unknown patch type: {other}")
    result = dict(target)
    retained = patch.get(_RETAIN)
    if retained is not None:
        result = {key: value for key, value in result.items() if key in retained}
    for key, value in patch.items():
        if key.startswith("$"):
            continue
        if value is None:
            result.pop(key, None)
            continue
        field = _field(kind, key)
        old = result.get(key)
        if isinstance(value, dict) and "replace" not in field.strategies:
            result[key] = strategic_merge(old if isinstance(old, dict) else {}, value, field)
        elif isinstance(value, list) and "merge" in field.strategies:
            result[key] = _merge_list(old or [], value, patch.get(_ORDER + key), field)
        else:
            result[key] = value
    _order_untouched_lists(result, patch, kind)
    for directive, values in patch.items():
        if directive.startswith(_DELETE_PRIMITIVES):
            key = directive.removeprefix(_DELETE_PRIMITIVES)
            remaining = [value for value in result.get(key) or () if value not in values]
            result[key] = remaining
    return result


def _field(kind: Type, key: str) -> Type:
    if kind.form == STRUCT:
        return kind.fields.get(key, ANY_TYPE)
    return kind.item if kind.form == MAP else ANY_TYPE


def _merge_list(old: list[Any], patch: list[Any], order: list[Any] | None, field: Type) -> list[Any]:
    if not field.merge_key:
        merged = old + [value for value in patch if value not in old]
        return merged if order is None else _ordered(merged, old, order, lambda value: value)
    key = field.merge_key
    if any(isinstance(item, dict) and item.get(_DIRECTIVE) == "replace" for item in patch):
        return [item for item in patch if item.get(_DIRECTIVE) != "replace"]
    result = list(old)
    for item in patch:
        if not isinstance(item, dict) or key not in item:
            raise bad_request(f"map: {item} does not contain declared merge key: {key}")
        matching = [i for i, existing in enumerate(result) if existing.get(key) == item[key]]
        if item.get(_DIRECTIVE) == "delete":
            result = [existing for existing in result if existing.get(key) != item[key]]
        elif matching:
            result[matching[0]] = strategic_merge(result[matching[0]], item, field.item)
        else:
            result.append(strategic_merge({}, item, field.item))
    if order is None:
        return result
    return _ordered(result, old, [item.get(key) for item in order], lambda item: item.get(key))


def _order_untouched_lists(result: dict[str, Any], patch: dict[str, Any], kind: Type) -> None:
    """A patch may give only the order of a list, without items."""
    for directive, order in patch.items():
        key = directive.removeprefix(_ORDER)
        if key == directive or key in patch or not isinstance(result.get(key), list):
            continue
        field = _field(kind, key)
        if field.form == LIST:
            result[key] = _merge_list(result[key], [], order, field)


def _ordered(items: list[Any], old: list[Any], order: list[Any], identity: Any) -> list[Any]:
    """The items of ``order`` in that order; the others keep their place relative to their old neighbours."""
    rank = {value: i for i, value in enumerate(order)}
    listed = sorted((item for item in items if identity(item) in rank), key=lambda item: rank[identity(item)])
    others = [item for item in items if identity(item) not in rank]
    place = {identity(item): i for i, item in enumerate(old)}
    result: list[Any] = []
    for item in listed:
        here = place.get(identity(item))
        while here is not None and others and place.get(identity(others[0]), here) < here:
            result.append(others.pop(0))
        result.append(item)
    return result + others
