from __future__ import annotations

import random
from collections import Counter

from kube_pyscheduler.columns.row_counts import RowCounts


def test_counts_agree_with_a_counter_after_any_changes() -> None:
    rng = random.Random(3)
    counts, plain = RowCounts(), Counter[int]()
    for _ in range(3000):
        row = rng.randrange(40)
        amount = rng.choice([1, 2]) if rng.random() < 0.5 else -min(plain[row], rng.choice([1, 3]))
        if amount == 0:
            continue
        counts.change(row, amount)
        plain[row] += amount
        present = {row: count for row, count in plain.items() if count}
        assert dict(zip(counts.rows.tolist(), counts.counts.tolist(), strict=True)) == present
        assert len(counts) == len(present)
        assert counts.total == plain.total()
