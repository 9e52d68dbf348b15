"""How full the storage of a pod's claims will be. Source: scorer.go and VolumeBinding.Score in volumebinding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kube_pyscheduler.columns.arrays import Ints, Mask, Rows, Scores
from kube_pyscheduler.columns.broken_line import tabulated
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.config.args import UtilizationShapePoint
from kube_pyscheduler.framework.interfaces import MAX_NODE_SCORE, ScoreKernel
from kube_pyscheduler.plugins.volume_binding.kernel import StorageUse, VolumeBindingKernel

MAX_SHAPE_SCORE = 10
"""Scale of the scores in a shape. Source: MaxCustomPriorityScore in pkg/scheduler/apis/config/types.go."""


def line_of(shape: Sequence[UtilizationShapePoint]) -> Ints:
    """int64[101]: score by percent of the storage in use."""
    scale = MAX_NODE_SCORE // MAX_SHAPE_SCORE
    return tabulated([(point.utilization, point.score * scale) for point in shape])


class NoScores(ScoreKernel):
    """For pods without claims, and where PreScore is disabled."""

    def scores(self, table: NodeTable, rows: Rows) -> Scores:
        return np.zeros(len(table.alive[rows]), dtype=np.int64)


class StorageScoreKernel(ScoreKernel):
    """Mean over the storage classes of what the line says of each. Where the pod gets volumes that exist only these
    count, elsewhere the room for new ones; where neither is known the score is 0."""

    def __init__(self, kernel: VolumeBindingKernel, line: Ints) -> None:
        self._kernel = kernel
        self._line = line

    def scores(self, table: NodeTable, rows: Rows) -> Scores:
        bound, new = self._kernel.storage(rows)
        count = len(table.alive[rows])
        has_bound = np.zeros(count, dtype=np.bool_)
        for use in bound.values():
            has_bound |= use.present
        return np.where(has_bound, self._mean(list(bound.values()), count), self._mean(list(new.values()), count))

    def _mean(self, uses: Sequence[StorageUse], count: int) -> Scores:
        total = np.zeros(count, dtype=np.int64)
        classes = np.zeros(count, dtype=np.int64)
        for use in uses:
            total += np.where(use.present, self._score(use), 0)
            classes += use.present
        mean = np.floor(total / np.maximum(classes, 1) + 0.5)
        return mean.astype(np.int64)

    def _score(self, use: StorageUse) -> Scores:
        full: Mask = (use.capacity == 0) | (use.requested > use.capacity)
        percent = use.requested * 100 // np.maximum(use.capacity, 1)
        return self._line[np.where(full, 100, percent)]
