"""A broken line from utilisation to score."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kube_pyscheduler.columns.arrays import Ints


def tabulated(shape: Sequence[tuple[int, int]]) -> Ints:
    """Score for each utilisation from 0 to 100 percent; ``shape``: (utilisation, score) with utilisations ascending.

    Source: BuildBrokenLinearFunction in plugins/helper/shape_score.go.
    """
    table = []
    for utilization in range(101):
        value = shape[-1][1]
        for index, (end, score) in enumerate(shape):
            if utilization <= end:
                if index == 0:
                    value = shape[0][1]
                else:
                    start, before = shape[index - 1]
                    step = (score - before) * (utilization - start)
                    width = end - start
                    value = before + (step // width if step >= 0 else -(-step // width))
                break
        table.append(value)
    return np.array(table, dtype=np.int64)
