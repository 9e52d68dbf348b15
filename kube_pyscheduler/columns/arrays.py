"""Named array types and a few exact integer operations.

``Rows`` selects nodes of a table: a slice for "all rows", an index array for some of them.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

RowIndex: TypeAlias = NDArray[np.int64]
Rows: TypeAlias = slice | RowIndex
Mask: TypeAlias = NDArray[np.bool_]
Codes: TypeAlias = NDArray[np.uint8]
Ids: TypeAlias = NDArray[np.int32]
Scores: TypeAlias = NDArray[np.int64]
Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

# Sums of absurd quantities wrap around, as Go's do; numpy would print a warning where a single number does.
np.seterr(over="ignore")


def truncated_divide(numerator: Ints, denominator: Ints | int) -> Ints:
    """Integer division that rounds toward zero, as Go's does; the denominator must not be 0."""
    quotient = numerator // denominator
    # numpy rounds down: a negative quotient with a remainder is one too low.
    low = (quotient < 0) & (quotient * denominator != numerator)
    if low.any():
        quotient = quotient + low
    return quotient


def grown(array: NDArray[Any], capacity: int, fill: int = 0) -> NDArray[Any]:
    """A copy with the last axis widened to ``capacity``, new cells set to ``fill``."""
    wider = np.full((*array.shape[:-1], capacity), fill, dtype=array.dtype)
    wider[..., : array.shape[-1]] = array
    return wider
