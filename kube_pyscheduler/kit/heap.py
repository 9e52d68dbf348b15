"""A heap whose items can be found, moved and removed by key."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

SLACK = 64
"""Dead entries that are always tolerated, besides as many as there are live ones."""


class KeyedHeap(Generic[K, T]):
    """Items by key, smallest rank first; equal ranks in the order in which they were pushed.

    Ranks need ``<`` and ``==``. Push, pop and remove cost O(log n) amortised: a removed entry stays in the list as a
    dead one until it comes up or until dead ones outnumber the living.
    """

    __slots__ = ("_entries", "_items", "_next")

    def __init__(self) -> None:
        self._entries: list[tuple[Any, int, K]] = []
        self._items: dict[K, tuple[int, T]] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: object) -> bool:
        return key in self._items

    def __iter__(self) -> Iterator[T]:
        """The items, in no useful order."""
        return (item for _number, item in self._items.values())

    def get(self, key: K) -> T | None:
        found = self._items.get(key)
        return None if found is None else found[1]

    def push(self, key: K, rank: Any, item: T) -> None:
        """Add the item, or replace the one with this key and rank it anew."""
        number = self._next
        self._next = number + 1
        self._items[key] = (number, item)
        heapq.heappush(self._entries, (rank, number, key))
        self._compact()

    def peek(self) -> T | None:
        """The first item, left in place."""
        entries, items = self._entries, self._items
        while entries:
            _rank, number, key = entries[0]
            found = items.get(key)
            if found is not None and found[0] == number:
                return found[1]
            heapq.heappop(entries)
        return None

    def pop(self) -> T | None:
        """Take the first item out; None when there is none."""
        entries, items = self._entries, self._items
        while entries:
            _rank, number, key = heapq.heappop(entries)
            found = items.get(key)
            if found is not None and found[0] == number:
                del items[key]
                return found[1]
        return None

    def remove(self, key: K) -> T | None:
        """Take the item with this key out; None when there is none."""
        found = self._items.pop(key, None)
        if found is None:
            return None
        self._compact()
        return found[1]

    def _compact(self) -> None:
        if len(self._entries) > 2 * len(self._items) + SLACK:
            items = self._items
            self._entries = [entry for entry in self._entries if (items.get(entry[2]) or (-1,))[0] == entry[1]]
            heapq.heapify(self._entries)
