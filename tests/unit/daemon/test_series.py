from __future__ import annotations

import pytest

from kube_pyscheduler.daemon.series import Counter, Histogram, bound_text, exponential_buckets


def test_buckets_grow_by_a_factor() -> None:
    assert exponential_buckets(1, 2, 5) == (1, 2, 4, 8, 16)
    assert exponential_buckets(0.001, 2, 15)[-1] == pytest.approx(16.384)


@pytest.mark.parametrize(
    ("bound", "text"), [(0.001, "0.001"), (1, "1"), (1.0, "1"), (0.00001, "1e-05"), (float("inf"), "+Inf")]
)
def test_bounds_are_written_as_go_writes_them(bound: float, text: str) -> None:
    assert bound_text(bound) == text


def test_a_value_on_a_bound_counts_below_it() -> None:
    histogram = Histogram("h", "", ("a",), (1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 2.0, 9.0):
        histogram.observe(("x",), value)
    assert histogram.cumulative(("x",)) == ([("1", 2), ("2", 4), ("+Inf", 5)], 14.0)


def test_without_labels_a_series_is_there_from_the_start() -> None:
    assert Counter("c", "") == {(): 0.0}
    assert Histogram("h", "", (), (1.0,)) == {(): [0.0, 0.0, 0.0]}
    assert Counter("c", "", ("a",)) == {}
    assert Histogram("h", "", ("a",), (1.0,)) == {}


def test_counters_add_up() -> None:
    counter = Counter("c", "", ("a",))
    counter.add(("x",))
    counter.add(("x",), 2)
    assert counter == {("x",): 3.0}
