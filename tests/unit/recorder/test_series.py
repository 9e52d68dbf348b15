from kube_pyscheduler.recorder.event import Content, Reference, Series
from kube_pyscheduler.recorder.series import FINISH_AFTER, REFRESH_AFTER, Entry, Phase, SeriesTable

FAILED = Content(
    Reference("v1", "Pod", "ns", "p", "u", "1"), "Warning", "FailedScheduling", "Scheduling", "no", "s", "s-h"
)


def entry(content: Content = FAILED, *, known: bool = False) -> Entry:
    made = Entry(content, "p.1", 0.0, 0.0)
    if known:
        made.phase, made.written = Phase.KNOWN, 1
    return made


def test_what_is_equal_but_for_the_objects_version_repeats() -> None:
    table = SeriesTable()
    first = entry()
    table.add(first)
    assert table.find(FAILED._replace(regarding=FAILED.regarding._replace(version="2"))) is first
    for other in (
        FAILED._replace(regarding=FAILED.regarding._replace(uid="v")),
        FAILED._replace(reason="Other"),
        FAILED._replace(action="Other"),
        FAILED._replace(type="Normal"),
        FAILED._replace(controller="t"),
        FAILED._replace(related=FAILED.regarding),
    ):
        assert table.find(other) is None


def test_repetitions_are_counted() -> None:
    table = SeriesTable()
    first = entry(known=True)
    table.add(first)
    assert first.series() is None
    assert table.repeat(first, FAILED, 5.0, 5.0)
    assert table.repeat(first, FAILED, 6.0, 6.0)
    assert first.series() == Series(3, 6.0)


def test_another_note_overtakes_what_is_still_waiting() -> None:
    table = SeriesTable()
    first = entry()
    table.add(first)
    table.repeat(first, FAILED, 1.0, 1.0)
    assert table.repeat(first, FAILED._replace(note="still no"), 2.0, 2.0)
    assert (first.content.note, first.count, first.first_at) == ("still no", 1, 2.0)


def test_another_note_is_another_event_once_the_first_is_on_its_way() -> None:
    table = SeriesTable()
    first = entry(known=True)
    table.add(first)
    assert not table.repeat(first, FAILED._replace(note="still no"), 1.0, 1.0)
    second = entry(FAILED._replace(note="still no"))
    table.add(second)
    assert table.find(FAILED) is second
    assert len(table) == 1


def test_a_series_is_finished_when_it_has_been_quiet() -> None:
    table = SeriesTable()
    repeated, single = entry(known=True), entry(FAILED._replace(reason="Other"), known=True)
    table.add(repeated)
    table.add(single)
    table.repeat(repeated, FAILED, 1.0, 1.0)
    assert table.sweep(FINISH_AFTER - 1) == []
    assert table.sweep(FINISH_AFTER + 1) == [repeated]
    assert len(table) == 0


def test_a_series_that_goes_on_is_refreshed() -> None:
    table = SeriesTable()
    repeated = entry(known=True)
    table.add(repeated)
    for minute in range(1, 31):
        now = 60.0 * minute
        table.repeat(repeated, FAILED, now, now)
        assert table.sweep(now) == ([repeated] if now >= REFRESH_AFTER else [])
    repeated.written, repeated.written_at = repeated.count, now
    assert table.sweep(now + 1) == []


def test_the_longest_quiet_ones_are_forgotten_first() -> None:
    table = SeriesTable(limit=2)
    a, b, c = (entry(FAILED._replace(reason=reason), known=True) for reason in "abc")
    table.add(a)
    table.add(b)
    table.repeat(a, a.content, 1.0, 1.0)
    table.add(c)
    assert [table.find(known.content) for known in (a, b, c)] == [a, None, c]


def test_forgetting_leaves_a_successor_alone() -> None:
    table = SeriesTable()
    first, second = entry(), entry()
    table.add(first)
    table.add(second)
    table.forget(first)
    assert table.find(FAILED) is second
    table.forget(second)
    assert len(table) == 0
