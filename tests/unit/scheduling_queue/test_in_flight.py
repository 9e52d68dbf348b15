"""InFlightLog: each pod sees the events after its pop, and nothing is kept longer than somebody may need it."""

from __future__ import annotations

from kube_pyscheduler.scheduling_queue.in_flight import InFlightLog
from tests.unit.scheduling_queue.builders import NODE_ADD, POD_DELETE


def seen(log: InFlightLog, uid: str) -> list[object]:
    return [happened.new for happened in log.since(uid)]


def test_a_pod_sees_what_happened_after_its_pop() -> None:
    log = InFlightLog()
    log.enter("a")
    log.record(NODE_ADD, None, 1)
    log.enter("b")
    log.record(NODE_ADD, None, 2)
    assert seen(log, "a") == [1, 2]
    assert seen(log, "b") == [2]
    assert seen(log, "unknown") == []


def test_nothing_is_recorded_while_nobody_is_in_flight() -> None:
    log = InFlightLog()
    log.record(NODE_ADD, None, 1)
    assert log.event_count == 0


def test_events_go_with_the_last_pod_that_may_need_them() -> None:
    log = InFlightLog()
    log.enter("a")
    log.record(NODE_ADD, None, 1)
    log.enter("b")
    log.record(POD_DELETE, 2, None)
    log.enter("c")
    log.record(NODE_ADD, None, 3)
    log.done("b")
    assert log.event_count == 3
    log.done("a")
    assert log.event_count == 1
    assert seen(log, "c") == [3]
    log.done("c")
    assert (len(log), log.event_count) == (0, 0)


def test_done_twice_and_done_of_strangers_do_nothing() -> None:
    log = InFlightLog()
    log.enter("a")
    log.record(NODE_ADD, None, 1)
    log.done("stranger")
    assert seen(log, "a") == [1]
    log.done("a")
    log.done("a")
    assert (len(log), log.event_count) == (0, 0)


def test_events_are_counted_by_label() -> None:
    log = InFlightLog()
    log.enter("a")
    log.record(NODE_ADD, None, 1)
    log.record(NODE_ADD, None, 2)
    log.record(POD_DELETE, 3, None)
    assert log.counts() == {"NodeAdd": 2, "PodDelete": 1, "PodPopped": 1}
