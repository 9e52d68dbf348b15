"""Other pods on some rows while these are judged: how filters are told of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kube_pyscheduler.columns.arrays import Ints, RowIndex
from kube_pyscheduler.columns.pod_info import PodInfo


@dataclass(frozen=True, slots=True)
class RowChange:
    """Pods that are thought onto a row, or away from it, while that row is judged and at no other time."""

    added: tuple[PodInfo, ...] = ()
    removed: tuple[PodInfo, ...] = ()


UNCHANGED = RowChange()


class RowChanges(Mapping[int, RowChange]):
    """By row; rows that are not in it are as they are. ``sums`` is the fast way to look at many rows."""

    @abstractmethod
    def sums(self, rows: RowIndex, value: Callable[[PodInfo], int]) -> Ints:
        """int64[len(rows)]: on each row the values of the pods added minus those of the pods removed.

        ``value`` is asked once a pod as long as the same function is given, also in later worlds of the same attempt.
        """


class Tally:
    """Values of pods summed up by row. ``rows``: the row of each of ``pods``."""

    def __init__(self, rows: Sequence[int] | RowIndex, pods: Sequence[PodInfo]) -> None:
        self._rows = np.asarray(rows, dtype=np.int64)
        self._pods = pods
        self._values: dict[Callable[[PodInfo], int], Ints] = {}

    def sums(self, rows: RowIndex, value: Callable[[PodInfo], int], signs: Ints) -> Ints:
        """int64[len(rows)]: the sum over a row's pods of sign × value. ``signs``: int64[pods]. O(pods + highest row)
        in array steps, and one call of each new ``value`` a pod."""
        if not len(rows):
            return np.zeros(0, dtype=np.int64)
        values = self._values.get(value)
        if values is None:
            values = self._values[value] = np.array([value(info) for info in self._pods], dtype=np.int64)
        # Sums of small integers are exact in float64.
        totals = np.bincount(self._rows, weights=signs * values, minlength=int(rows.max()) + 1)
        return totals[rows].astype(np.int64)


class StatedChanges(RowChanges):
    """Changes given row by row."""

    def __init__(self, changes: Mapping[int, RowChange]) -> None:
        self._changes = changes

    def __getitem__(self, row: int) -> RowChange:
        return self._changes[row]

    def __iter__(self) -> Iterator[int]:
        return iter(self._changes)

    def __len__(self) -> int:
        return len(self._changes)

    def sums(self, rows: RowIndex, value: Callable[[PodInfo], int]) -> Ints:
        tally, signs = self._flat
        return tally.sums(rows, value, signs)

    @cached_property
    def _flat(self) -> tuple[Tally, Ints]:
        signed = [
            (row, info, sign)
            for row, change in self._changes.items()
            for pods, sign in ((change.added, 1), (change.removed, -1))
            for info in pods
        ]
        signs = np.array([sign for _row, _info, sign in signed], dtype=np.int64)
        return Tally([row for row, _info, _sign in signed], [info for _row, info, _sign in signed]), signs


NO_CHANGES = StatedChanges({})
