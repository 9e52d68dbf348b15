import re

import pytest

from kube_pyscheduler.recorder.event import (
    NOTE_LIMIT,
    Content,
    Reference,
    Series,
    cut,
    event_name,
    event_object,
)

POD = Reference("v1", "Pod", "ns", "web-1", "uid-1", "42")
NODE = Reference("v1", "Node", "", "n1", "uid-n", "7")
SAID = Content(POD, "Normal", "Scheduled", "Binding", "Successfully assigned ns/web-1 to n1", "sched", "sched-host")


def test_the_object_as_the_scheduler_of_kubernetes_writes_it() -> None:
    assert event_object(SAID, "web-1.18f", 1_700_000_000.25) == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "web-1.18f", "namespace": "ns"},
        "eventTime": "2023-11-14T22:13:20.250000Z",
        "reportingController": "sched",
        "reportingInstance": "sched-host",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "ns",
            "name": "web-1",
            "uid": "uid-1",
            "resourceVersion": "42",
        },
        "note": "Successfully assigned ns/web-1 to n1",
        "type": "Normal",
    }


def test_an_object_without_namespace_has_its_events_in_default() -> None:
    assert event_object(SAID._replace(regarding=NODE), "n1.18f", 0.0)["metadata"]["namespace"] == "default"


def test_a_series_and_a_related_object() -> None:
    event = event_object(SAID._replace(related=NODE), "x", 0.0, Series(3, 0.5))
    assert event["related"]["name"] == "n1"
    assert event["series"] == {"count": 3, "lastObservedTime": "1970-01-01T00:00:00.500000Z"}


def test_names() -> None:
    assert event_name("web-1", 0x18F) == "web-1.18f"
    for unfit in ("x" * 250, "a:b", "A"):
        assert re.fullmatch(r"[0-9a-f-]{36}", event_name(unfit, 0x18F))


@pytest.mark.parametrize("note", ["", "short", "x" * NOTE_LIMIT, "é" * (NOTE_LIMIT // 2)])
def test_a_note_that_fits_is_left_alone(note: str) -> None:
    assert cut(note) == note


@pytest.mark.parametrize("character", ["x", "é", "€", "𝄞"])
@pytest.mark.parametrize("shift", range(4))
def test_a_long_note_is_cut_between_characters(character: str, shift: int) -> None:
    note = "a" * shift + character * (NOTE_LIMIT + 1)
    short = cut(note)
    assert short.endswith(" ...")
    assert NOTE_LIMIT - 4 < len(short.encode()) <= NOTE_LIMIT
    assert note.startswith(short.removesuffix(" ..."))
