import pytest

from kube_pyscheduler.kit.clock import FakeClock
from kube_pyscheduler.transport.limiter import TokenBucket, limiter
from tests.unit.scripted_server import Sleeps


def test_a_burst_then_a_steady_rate() -> None:
    clock = FakeClock()
    bucket = TokenBucket(10.0, 3, clock=clock)
    assert [bucket.reserve() for _ in range(5)] == pytest.approx([0, 0, 0, 0.1, 0.2])
    clock.advance(0.3)
    assert bucket.reserve() == 0.0


def test_idling_saves_no_more_than_a_burst() -> None:
    clock = FakeClock()
    bucket = TokenBucket(10.0, 2, clock=clock)
    clock.advance(3600.0)
    assert [bucket.reserve() for _ in range(3)] == pytest.approx([0, 0, 0.1])


async def test_waiting_sleeps_only_when_it_must() -> None:
    sleeps = Sleeps()
    bucket = TokenBucket(2.0, 1, clock=FakeClock(), sleep=sleeps)
    await bucket.wait()
    assert sleeps.delays == []
    await bucket.wait()
    assert sleeps.delays == [0.5]


def test_zero_means_the_default_and_negative_no_limit() -> None:
    assert limiter(-1.0, 0) is None
    default = limiter(0.0, 0, clock=FakeClock())
    assert default is not None
    assert [default.reserve() for _ in range(101)] == [0.0] * 100 + [1 / 50]
