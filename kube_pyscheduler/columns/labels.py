"""Node labels: one column of interned values per key that somebody asked for."""

from __future__ import annotations

import numpy as np

from kube_pyscheduler.columns.arrays import Ids
from kube_pyscheduler.columns.vocabulary import ABSENT, Vocabulary


class LabelColumn:
    """``ids``: int32[capacity], −1 where the node has no such label. Dense, so they serve as topology domains."""

    __slots__ = ("ids", "key", "vocabulary")

    def __init__(self, key: str, capacity: int) -> None:
        self.key = key
        self.vocabulary: Vocabulary[str] = Vocabulary()
        self.ids: Ids = np.full(capacity, ABSENT, dtype=np.int32)

    def write(self, row: int, labels: dict[str, str]) -> None:
        value = labels.get(self.key)
        self.ids[row] = ABSENT if value is None else self.vocabulary.intern(value)
