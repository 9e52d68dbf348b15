"""Functions of lists and sets.

Source: ext/{lists,sets}.go of cel-go, and apiserver/pkg/cel/library/lists.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

from kube_pyscheduler.cel.errors import EvaluationError
from kube_pyscheduler.cel.standard import add
from kube_pyscheduler.cel.values import NONE, Optional, compare, contains, is_equal, type_of

List = Sequence[Any]

MAX_RANGE = 10_000
"""Longest list that ``lists.range`` makes. Longer ones exceed the cost limit that Kubernetes sets."""


def is_sorted(items: List) -> bool:
    return all(compare(before, after, "isSorted") <= 0 for before, after in pairwise(items))


def total(zero: Any, items: List) -> Any:
    for item in items:
        zero = add(zero, item)
    return zero


def least(items: List) -> Any:
    return _extreme(items, "min", 1)


def greatest(items: List) -> Any:
    return _extreme(items, "max", -1)


def _extreme(items: List, name: str, worse: int) -> Any:
    if not items:
        raise EvaluationError(f"{name} called on empty list")
    best = items[0]
    for item in items[1:]:
        if compare(best, item, name) == worse:
            best = item
    return best


def index_of(items: List, item: Any) -> int:
    return next((place for place, other in enumerate(items) if is_equal(other, item)), -1)


def last_index_of(items: List, item: Any) -> int:
    return next((place for place in reversed(range(len(items))) if is_equal(items[place], item)), -1)


def slice_of(items: List, start: int, end: int) -> List:
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(items) < end:
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


def flatten(items: List, depth: int = 1) -> List:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    flat: list[Any] = []
    for item in items:
        if isinstance(item, list | tuple) and depth:
            flat.extend(flatten(item, depth - 1))
        else:
            flat.append(item)
    return flat


def sort_by(items: List, keys: List) -> List:
    if len(items) != len(keys):
        raise EvaluationError(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, "
            f"but got {len(items)} and {len(keys)} elements respectively"
        )
    if any(type_of(key) != type_of(keys[0]) for key in keys):
        raise EvaluationError("list elements must have the same type")

    def order(left: int, right: int) -> int:
        return compare(keys[left], keys[right], "sort")

    return [items[place] for place in sorted(range(len(items)), key=cmp_to_key(order))]


def sort(items: List) -> List:
    return sort_by(items, items)


def number_range(count: int) -> List:
    if count > MAX_RANGE:
        raise EvaluationError("operation cancelled: actual cost limit exceeded")
    return list(range(count))


def reverse(items: List) -> List:
    return items[::-1]


def distinct(items: List) -> List:
    found: list[Any] = []
    for item in items:
        if not contains(found, item):
            found.append(item)
    return found


def first(items: List) -> Optional:
    return Optional(True, items[0]) if items else NONE


def last(items: List) -> Optional:
    return Optional(True, items[-1]) if items else NONE


def includes_all(items: List, wanted: List) -> bool:
    return all(contains(items, item) for item in wanted)


def equivalent(items: List, others: List) -> bool:
    return includes_all(items, others) and includes_all(others, items)


def intersect(items: List, others: List) -> bool:
    return any(contains(others, item) for item in items)
