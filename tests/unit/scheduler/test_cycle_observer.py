"""The time that cycles take, and the line for those that take long."""

from __future__ import annotations

import pytest

from kube_pyscheduler.framework.status import Code
from kube_pyscheduler.kit.clock import FakeClock
from kube_pyscheduler.scheduler.cycle_observer import CycleObserver
from tests.unit.scheduler.world import Recorder
from tests.unit.scheduling_queue.builders import START, make_pod


def cycle(observer: CycleObserver, clock: FakeClock, filter_seconds: float) -> float:
    observer.begin("pysched", clock.monotonic())
    observer.enter("PreFilter")
    clock.advance(0.01)
    observer.leave("PreFilter", Code.SUCCESS)
    observer.enter("Filter")
    clock.advance(filter_seconds)
    observer.leave("Filter", Code.UNSCHEDULABLE)
    return observer.end(make_pod())


def test_points_and_cycles_are_measured(caplog: pytest.LogCaptureFixture) -> None:
    recorder, clock = Recorder(), FakeClock(START)
    assert cycle(CycleObserver(recorder, clock), clock, 0.05) == clock.monotonic()
    assert [args[:3] for args in recorder.of("extension_point")] == [
        ("pysched", "PreFilter", "Success"),
        ("pysched", "Filter", "Unschedulable"),
    ]
    assert [args[3] for args in recorder.of("extension_point")] == pytest.approx([0.01, 0.05])
    assert recorder.of("algorithm")[0][0] == pytest.approx(0.06)
    assert caplog.records == []


def test_a_long_cycle_leaves_one_line_with_its_steps(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock(START)
    observer = CycleObserver(Recorder(), clock)
    with caplog.at_level("INFO", logger="kube_pyscheduler"):
        cycle(observer, clock, 0.25)
        cycle(observer, clock, 0.01)
    (record,) = caplog.records
    assert record.message == (
        'Trace: "Scheduling" namespace:default,name:p (total time: 260ms): '
        '---"Computing pre-filters done" 10ms ---"Computing predicates done" 250ms'
    )
