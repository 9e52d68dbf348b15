from collections.abc import Callable

import pytest

from kube_pyscheduler.kit.backoff import Backoff


def _always(value: float) -> Callable[[], float]:
    return lambda: value


def test_delays_grow_to_the_maximum_and_begin_again() -> None:
    backoff = Backoff(1.0, 10.0, jitter=0.0)
    assert [backoff.next() for _ in range(6)] == [1, 2, 4, 8, 10, 10]
    backoff.reset()
    assert backoff.next() == 1


def test_jitter_spreads_every_delay_and_stays_below_the_maximum() -> None:
    low, high = Backoff(0.8, 30.0, uniform=_always(0.0)), Backoff(0.8, 30.0, uniform=_always(1.0))
    assert [low.next() for _ in range(7)] == pytest.approx([0.8, 1.6, 3.2, 6.4, 12.8, 15, 15])
    assert [high.next() for _ in range(7)] == pytest.approx([1.6, 3.2, 6.4, 12.8, 25.6, 30, 30])


def test_an_initial_delay_above_the_maximum_is_cut() -> None:
    assert Backoff(100.0, 10.0, jitter=0.0).next() == 10
