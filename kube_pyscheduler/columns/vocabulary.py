"""Values as small integers: one dense id each, never reused in a process."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from kube_pyscheduler.columns.arrays import Ids

T = TypeVar("T", bound=Hashable)
V = TypeVar("V", bound=np.generic)

ABSENT = -1


class Vocabulary(Generic[T]):
    """A mapping value ↔ id, ids counting up from 0. ``lookup`` never inserts; absent is −1."""

    __slots__ = ("_ids", "values")

    def __init__(self) -> None:
        self._ids: dict[T, int] = {}
        self.values: list[T] = []

    def __len__(self) -> int:
        return len(self.values)

    def lookup(self, value: T) -> int:
        return self._ids.get(value, ABSENT)

    def intern(self, value: T) -> int:
        """The id of ``value``, a new one if it has none yet."""
        known = self._ids.get(value)
        if known is None:
            known = self._ids[value] = len(self.values)
            self.values.append(value)
        return known


class LookupTable(Generic[T, V]):
    """A function of a vocabulary's values, tabulated: ``take(ids)`` is one indexing operation.

    ``function`` is asked once per value; the table grows with the vocabulary. ``absent`` is the answer for id −1,
    kept in the last cell, where index −1 finds it.
    """

    __slots__ = ("_function", "_size", "_table", "_vocabulary")

    def __init__(
        self, vocabulary: Vocabulary[T], function: Callable[[T], object], absent: object, dtype: type[V]
    ) -> None:
        self._vocabulary = vocabulary
        self._function = function
        self._size = 0
        self._table: NDArray[V] = np.full(1, absent, dtype=dtype)

    def take(self, ids: Ids) -> NDArray[V]:
        """The answers for ``ids``; same shape."""
        size = len(self._vocabulary)
        if size != self._size:
            fresh = [self._function(value) for value in self._vocabulary.values[self._size :]]
            table = np.empty(size + 1, dtype=self._table.dtype)
            table[: self._size] = self._table[: self._size]
            table[self._size : size] = fresh
            table[size] = self._table[-1]
            self._table, self._size = table, size
        return self._table[ids]


class Membership(Generic[T]):
    """Which ids stand for one of some values: ``take(ids)`` costs O(ids), however large the vocabulary is."""

    __slots__ = ("_ids", "_size", "_table", "_values", "_vocabulary")

    def __init__(self, vocabulary: Vocabulary[T], values: Iterable[T]) -> None:
        self._vocabulary = vocabulary
        self._values = tuple(values)
        self._size = -1
        self._ids: list[int] = []
        self._table: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)

    def take(self, ids: Ids) -> NDArray[np.bool_]:
        """bool, same shape as ``ids``; absent is no member."""
        size = len(self._vocabulary)
        if size != self._size:
            self._ids = sorted({self._vocabulary.lookup(value) for value in self._values} - {ABSENT})
            if len(self._ids) > 1:
                self._table = np.zeros(size + 1, dtype=np.bool_)
                self._table[self._ids] = True
            self._size = size
        if len(self._ids) > 1:
            return self._table[ids]
        found: NDArray[np.bool_] = ids == (self._ids[0] if self._ids else ABSENT - 1)
        return found
