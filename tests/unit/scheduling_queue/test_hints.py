"""Hints: who is asked, and what comes of the answers."""

from __future__ import annotations

from typing import Any

import pytest

from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.framework.cluster_event import (
    EVENT_FORCE_ACTIVATE,
    Action,
    ClusterEvent,
    EventRegistration,
    QueueingHint,
    Resource,
)
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.scheduling_queue.hints import UNKNOWN, Hints, Strategy
from kube_pyscheduler.scheduling_queue.queued_pod import QueuedPod
from tests.unit.scheduling_queue.builders import (
    NODE_ADD,
    NODE_TAINT,
    POD_DELETE,
    SCHEDULER,
    START,
    Asked,
    Incoming,
    make_pod,
    make_profile,
)


def make_hints(observer: Incoming | None = None, **events: list[EventRegistration]) -> Hints:
    return Hints([make_profile(events)], Listers(), observer or Incoming(), lambda: 0.0)


def waiting(*plugins: str, pending: tuple[str, ...] = ()) -> QueuedPod:
    return QueuedPod(
        PodInfo(make_pod()),
        START,
        unschedulable_plugins=frozenset((*plugins, *pending)),
        pending_plugins=frozenset(pending),
    )


QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.SKIP


@pytest.mark.parametrize(
    ("registered", "happened", "wanted"),
    [
        (NODE_ADD, NODE_ADD, True),
        (NODE_ADD, NODE_TAINT, False),
        (ClusterEvent(Resource.NODE, Action.UPDATE), NODE_TAINT, True),
        (ClusterEvent(Resource.WILDCARD, Action.ALL), NODE_TAINT, True),
        (
            ClusterEvent(Resource.POD, Action.UPDATE_POD_LABEL),
            ClusterEvent(Resource.POD, Action.UPDATE_POD_OTHER),
            False,
        ),
        (ClusterEvent(Resource.POD, Action.UPDATE), ClusterEvent(Resource.POD, Action.UPDATE_POD_OTHER), True),
    ],
)
def test_which_events_are_wanted(registered: ClusterEvent, happened: ClusterEvent, wanted: bool) -> None:
    hints = make_hints(Fit=[EventRegistration(registered)])
    assert hints.is_wanted(happened) is wanted
    assert hints.strategy(waiting("Fit"), happened, None, None) is (Strategy.AFTER_BACKOFF if wanted else Strategy.SKIP)


def test_a_plugin_without_registrations_wants_everything() -> None:
    hints = make_hints(Fit=[])
    assert hints.is_wanted(NODE_TAINT)
    assert hints.strategy(waiting("Fit"), NODE_TAINT, None, None) is Strategy.AFTER_BACKOFF


def test_only_those_who_refused_are_asked() -> None:
    mine, other = Asked(SKIP), Asked(QUEUE)
    hints = make_hints(Mine=[EventRegistration(NODE_ADD, mine)], Other=[EventRegistration(NODE_ADD, other)])
    assert hints.strategy(waiting("Mine"), NODE_ADD, None, "node") is Strategy.SKIP
    assert (mine.pods, other.pods) == (["p"], [])


def test_one_that_says_queue_is_enough() -> None:
    hints = make_hints(A=[EventRegistration(NODE_ADD, Asked(SKIP))], B=[EventRegistration(NODE_ADD, Asked(QUEUE))])
    assert hints.strategy(waiting("A", "B"), NODE_ADD, None, None) is Strategy.AFTER_BACKOFF


def test_a_pending_plugin_that_says_queue_skips_the_backoff() -> None:
    hints = make_hints(A=[EventRegistration(NODE_ADD, Asked(QUEUE))], B=[EventRegistration(NODE_ADD, Asked(QUEUE))])
    assert hints.strategy(waiting("A", pending=("B",)), NODE_ADD, None, None) is Strategy.IMMEDIATELY


def test_a_pending_plugin_that_says_skip_changes_nothing() -> None:
    hints = make_hints(A=[EventRegistration(NODE_ADD, Asked(QUEUE))], B=[EventRegistration(NODE_ADD, Asked(SKIP))])
    assert hints.strategy(waiting("A", pending=("B",)), NODE_ADD, None, None) is Strategy.AFTER_BACKOFF
    assert hints.strategy(waiting(pending=("B",)), NODE_ADD, None, None) is Strategy.SKIP


def test_a_hint_that_raises_queues_and_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    def broken(pod: Any, old: Any, new: Any, view: Any) -> QueueingHint:
        raise RuntimeError("broken")

    observer = Incoming()
    hints = make_hints(observer, Fit=[EventRegistration(NODE_ADD, broken)])
    assert hints.strategy(waiting("Fit"), NODE_ADD, None, None) is Strategy.AFTER_BACKOFF
    assert observer.hints == [("Fit", "NodeAdd", "Error")]
    assert [record.message for record in caplog.records] == ["QueueingHint failed"]


def test_answers_are_observed() -> None:
    observer = Incoming()
    hints = make_hints(observer, A=[EventRegistration(NODE_ADD, Asked(SKIP))], B=[EventRegistration(NODE_ADD, Asked())])
    hints.strategy(waiting("A", "B"), NODE_ADD, None, None)
    assert observer.hints == [("A", "NodeAdd", "QueueSkip"), ("B", "NodeAdd", "Queue")]


def test_wildcards_are_for_all_or_for_the_pod_they_name() -> None:
    hints = make_hints(Fit=[EventRegistration(NODE_ADD)])
    pod = waiting("Fit")
    assert hints.strategy(pod, EVENT_FORCE_ACTIVATE, None, None) is Strategy.AFTER_BACKOFF
    assert hints.strategy(pod, EVENT_FORCE_ACTIVATE, None, pod.pod) is Strategy.AFTER_BACKOFF
    assert hints.strategy(pod, EVENT_FORCE_ACTIVATE, None, make_pod("q")) is Strategy.SKIP


def test_plugins_that_no_profile_has_want_everything() -> None:
    hints = make_hints(Fit=[EventRegistration(NODE_ADD, Asked(SKIP))])
    assert hints.key(SCHEDULER, "Removed") == UNKNOWN
    assert hints.strategy(waiting("Removed"), NODE_TAINT, None, None) is Strategy.AFTER_BACKOFF
    # An event that only such pods could want is not worth being kept for pods in flight.
    assert not hints.is_wanted(NODE_TAINT)


def test_gates_open_for_events_of_their_plugin_only() -> None:
    hints = make_hints(
        Fit=[EventRegistration(NODE_ADD)],
        Gate=[EventRegistration(POD_DELETE)],
        Eager=[EventRegistration(ClusterEvent(Resource.WILDCARD, Action.ALL))],
    )
    pod = waiting("Fit", "Gate")
    pod.gating_plugin = "Gate"
    assert hints.opens_gate(pod, POD_DELETE)
    assert not hints.opens_gate(pod, NODE_ADD)
    assert not hints.opens_gate(pod, EVENT_FORCE_ACTIVATE)
    pod.gating_plugin = "Eager"
    assert hints.opens_gate(pod, EVENT_FORCE_ACTIVATE)


def test_fragments_tell_pods_apart_as_far_as_all_hints_of_a_plugin_do() -> None:
    hints = make_hints(
        Apart=[EventRegistration(NODE_ADD, Asked())],
        Alike=[EventRegistration(NODE_ADD, Asked(), lambda pod: pod.namespace), EventRegistration(POD_DELETE)],
    )
    pod, twin, other = make_pod("p"), make_pod("q"), make_pod("r", namespace="elsewhere")
    apart, alike = (SCHEDULER, "Apart"), (SCHEDULER, "Alike")
    assert hints.fragment(apart, pod) != hints.fragment(apart, twin)
    assert hints.fragment(alike, pod) == hints.fragment(alike, twin) != hints.fragment(alike, other)


def test_a_fragment_that_fails_tells_the_pod_apart(caplog: pytest.LogCaptureFixture) -> None:
    hints = make_hints(
        Raises=[EventRegistration(NODE_ADD, Asked(), lambda pod: 1 // 0)],
        Unhashable=[EventRegistration(NODE_ADD, Asked(), lambda pod: pod.metadata.labels)],
    )
    for plugin in ("Raises", "Unhashable"):
        assert hints.fragment((SCHEDULER, plugin), make_pod()) == make_pod().uid
    assert len(caplog.records) == 2
