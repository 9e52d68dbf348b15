"""JSON Patch (RFC 6902) and JSON Merge Patch (RFC 7386) on JSON objects; the input is never changed."""

from __future__ import annotations

from typing import Any

from kube_pyscheduler.devserver.errors import StatusError, bad_request
from kube_pyscheduler.devserver.store import copy_object


def merge_patch(target: Any, patch: Any) -> Any:
    """The target with the patch merged in: null removes, objects merge, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def _refused(operation: dict[str, Any], why: str) -> StatusError:
    text = f"the server rejected our request due to an error in our request: {operation.get('op')} "
    return StatusError(422, "Invalid", f"{text}operation on {operation.get('path')!r}: {why}")


def _tokens(pointer: str) -> list[str]:
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def _step(container: Any, token: str) -> Any:
    if isinstance(container, list):
        return container[_index(container, token, len(container) - 1)]
    return container[token]


def _index(items: list[Any], token: str, last: int) -> int:
    if token == "-" and last == len(items):
        return last
    index = int(token)
    if not 0 <= index <= last:
        raise IndexError(token)
    return index


def json_patch(target: dict[str, Any], operations: Any) -> dict[str, Any]:
    """The target after all operations; 400 when the patch is not one, 422 when an operation can't be done."""
    if not isinstance(operations, list) or not all(isinstance(op, dict) for op in operations):
        raise bad_request("a JSON patch must be an array of operations")
    document: Any = copy_object(target)
    for operation in operations:
        try:
            document = _apply(document, operation)
        except (KeyError, IndexError, ValueError, TypeError, AttributeError):
            raise _refused(operation, "the path does not exist or does not fit") from None
    result: dict[str, Any] = document
    return result


def _apply(document: Any, operation: dict[str, Any]) -> Any:
    tokens = _tokens(operation["path"])
    match operation["op"]:
        case "add":
            return _add(document, tokens, operation["value"])
        case "remove":
            _remove(document, tokens)
        case "replace":
            if not tokens:
                return operation["value"]
            _remove(document, tokens)
            _add(document, tokens, operation["value"])
        case "move":
            source = _tokens(operation["from"])
            value = _read(document, source)
            _remove(document, source)
            return _add(document, tokens, value)
        case "copy":
            return _add(document, tokens, copy_object({"": _read(document, _tokens(operation["from"]))})[""])
        case "test":
            if _read(document, tokens) != operation["value"]:
                raise _refused(operation, "testing value failed")
        case other:
            raise bad_request(f"Unexpected kind: {other}")
    return document


def _read(document: Any, tokens: list[str]) -> Any:
    for token in tokens:
        document = _step(document, token)
    return document


def _add(document: Any, tokens: list[str], value: Any) -> Any:
    if not tokens:
        return value
    parent = _read(document, tokens[:-1])
    if isinstance(parent, list):
        parent.insert(_index(parent, tokens[-1], len(parent)), value)
    else:
        parent[tokens[-1]] = value
    return document


def _remove(document: Any, tokens: list[str]) -> None:
    parent = _read(document, tokens[:-1])
    if isinstance(parent, list):
        del parent[_index(parent, tokens[-1], len(parent) - 1)]
    else:
        del parent[tokens[-1]]
