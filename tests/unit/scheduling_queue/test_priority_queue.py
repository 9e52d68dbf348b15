"""PriorityQueue: where pods go, and what moves them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.framework.cluster_event import (
    EVENT_ASSIGNED_POD_DELETE,
    Action,
    ClusterEvent,
    EventRegistration,
    QueueingHint,
    Resource,
)
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.objects.pod import PodCondition
from kube_pyscheduler.scheduling_queue.dump import dump_queue
from kube_pyscheduler.scheduling_queue.priority_queue import LEFTOVER_BATCH, Pending, PriorityQueue
from kube_pyscheduler.scheduling_queue.queued_pod import Place
from tests.unit.scheduling_queue.builders import (
    NODE_ADD,
    NODE_TAINT,
    POD_DELETE,
    SCHEDULER,
    START,
    Asked,
    Gate,
    Incoming,
    changed,
    make_pod,
    make_profile,
    make_queue,
    park,
    popped,
    refuse,
    relabelled,
    tolerating,
    with_status,
)

FIT = {"Fit": [EventRegistration(NODE_ADD)]}
SKIP = QueueingHint.SKIP


def names(queue: PriorityQueue, now: float) -> list[str]:
    found = []
    while (queued := queue.pop(now)) is not None:
        found.append(queued.pod.name)
    return found


# Coming and going


def test_pods_leave_by_priority_then_by_time() -> None:
    queue = make_queue()
    queue.add(make_pod("late"), START + 2)
    queue.add(make_pod("early"), START + 1)
    queue.add(make_pod("high", priority=10), START + 3)
    assert names(queue, START + 4) == ["high", "early", "late"]


def test_a_popped_pod_is_in_flight_until_it_is_done() -> None:
    queue = make_queue()
    pod = make_pod()
    queue.add(pod, START)
    queued = popped(queue)
    assert (queued.attempts, queued.place, queued.initial_attempt_timestamp) == (1, Place.IN_FLIGHT, START)
    assert pod.uid in queue
    assert queue.get(pod.uid) is None
    queue.done(pod.uid)
    assert pod.uid not in queue


def test_adding_a_known_pod_does_not_double_it() -> None:
    queue = make_queue()
    queue.add(make_pod(), START)
    queue.add(make_pod(version="2"), START)
    assert queue.pending().active == 1
    queued = popped(queue)
    assert queued.pod.metadata.resource_version == "2"
    queue.add(make_pod(version="3"), START)
    assert queue.pop(START) is None


def test_an_update_of_an_unknown_pod_takes_it_in() -> None:
    observer = Incoming()
    queue = make_queue(observer=observer)
    queue.update(make_pod(), make_pod(version="2"), START)
    assert names(queue, START) == ["p"]
    assert observer.entered == {("active", "UnschedulablePodUpdate"): 1}


def test_an_update_in_active_changes_the_pod_and_its_rank() -> None:
    queue = make_queue()
    first, second = make_pod("first"), make_pod("second")
    queue.add(first, START)
    queue.add(second, START)
    queue.update(second, changed(second, priority=7), START)
    assert names(queue, START) == ["second", "first"]


def test_deleted_pods_leave_every_place() -> None:
    queue = make_queue(FIT)
    active, backing_off, erring, parked, gated = (
        make_pod(name) for name in ("active", "backing-off", "erring", "parked", "gated")
    )
    park(queue, parked, "Fit")
    queued = park(queue, backing_off, "Fit")
    queue.move_all(NODE_ADD, None, None, START)
    assert queued.place is Place.BACKOFF
    park(queue, erring)
    queue.add(changed(gated, scheduling_gates=make_pod(gates=["g"]).spec.scheduling_gates), START)
    queue.add(active, START)
    assert queue.pending() == Pending(active=1, backoff=3, unschedulable=0, gated=1)
    for pod in (active, backing_off, erring, parked, gated):
        queue.delete(pod, START)
        queue.delete(pod, START)
    assert queue.pending() == Pending(0, 0, 0, 0)
    assert list(queue) == []
    assert queue.rejections == {}


# Refusals, errors, backoff


def test_a_refused_pod_waits_for_an_event_then_for_its_backoff() -> None:
    observer = Incoming()
    queue = make_queue(FIT, observer=observer)
    queued = park(queue, make_pod(), "Fit")
    assert queued.place is Place.UNSCHEDULABLE
    queue.move_all(NODE_TAINT, None, None, START)
    assert queued.place is Place.UNSCHEDULABLE
    queue.move_all(NODE_ADD, None, None, START)
    assert queued.place is Place.BACKOFF
    queue.flush_backoff_completed(START + 2)
    assert queued.place is Place.ACTIVE
    assert observer.entered == {
        ("active", "UnschedulablePodAdd"): 1,
        ("unschedulable", "ScheduleAttemptFailure"): 1,
        ("backoff", "NodeAdd"): 1,
        ("active", "BackoffComplete"): 1,
    }


def test_a_pod_whose_backoff_ended_meanwhile_becomes_active_at_once() -> None:
    queue = make_queue(FIT)
    queued = park(queue, make_pod(), "Fit")
    queue.move_all(NODE_ADD, None, None, START + 2)
    assert queued.place is Place.ACTIVE


def test_with_nothing_active_pods_leave_backoff_early() -> None:
    observer = Incoming()
    queue = make_queue(FIT, observer=observer)
    park(queue, make_pod("low"), "Fit")
    park(queue, make_pod("high", priority=9), "Fit")
    queue.move_all(NODE_ADD, None, None, START)
    queue.add(make_pod("new"), START)
    assert names(queue, START) == ["new", "high", "low"]
    assert observer.entered["active", "PopFromBackoffQ"] == 2


def test_errors_back_off_in_full_and_their_count_ends_with_a_refusal() -> None:
    queue = make_queue(FIT)
    queued = park(queue, make_pod())
    assert (queued.place, queued.consecutive_errors) == (Place.ERROR_BACKOFF, 1)
    assert queue.pop(START + 1.9) is None
    assert queue.next_wakeup(START + 1) == 1.0
    assert popped(queue, START + 2) is queued
    refuse(queue, queued, now=START + 2)
    assert (queued.consecutive_errors, queued.unschedulable_count) == (2, 0)
    assert queue.pop(START + 4.9) is None
    assert popped(queue, START + 5) is queued
    refuse(queue, queued, "Fit", now=START + 5)
    assert (queued.consecutive_errors, queued.unschedulable_count) == (0, 1)


def test_a_pod_refused_by_a_pending_plugin_skips_the_backoff() -> None:
    queue = make_queue(FIT)
    queued = park(queue, make_pod(), pending=["Fit"])
    queue.move_all(NODE_ADD, None, None, START)
    assert queued.place is Place.ACTIVE


def test_coming_back_while_it_is_in_the_queue_changes_nothing() -> None:
    queue = make_queue(FIT)
    queue.add(make_pod(), START)
    queued = popped(queue)
    queue.done(queued.uid)
    queue.add(make_pod(version="2"), START)
    assert queue.add_unschedulable(queued, START) is Place.ACTIVE
    assert names(queue, START) == ["p"]


# Events while in flight


def test_an_event_during_the_attempt_is_not_lost() -> None:
    queue = make_queue(FIT)
    queue.add(make_pod(), START)
    queued = popped(queue)
    queue.move_all(NODE_TAINT, None, None, START)
    queue.move_all(NODE_ADD, None, None, START)
    refuse(queue, queued, "Fit")
    assert queued.place is Place.BACKOFF
    assert queue.in_flight.event_count == 0


def test_events_nobody_wants_are_not_kept() -> None:
    queue = make_queue(FIT)
    queue.add(make_pod(), START)
    popped(queue)
    for _ in range(100):
        queue.move_all(NODE_TAINT, None, None, START)
    assert queue.in_flight.event_count == 0


def test_events_before_the_pop_or_against_the_hint_do_not_count() -> None:
    queue = make_queue({"Fit": [EventRegistration(NODE_ADD, Asked(lambda pod, old, new: new))]})
    queue.add(make_pod("other"), START)
    queue.add(make_pod(), START)
    popped(queue)
    queue.move_all(NODE_ADD, None, QueueingHint.QUEUE, START)
    queued = popped(queue)
    queue.move_all(NODE_ADD, None, SKIP, START)
    refuse(queue, queued, "Fit")
    assert queued.place is Place.UNSCHEDULABLE


def test_activating_a_pod_in_flight_is_remembered() -> None:
    queue = make_queue(FIT)
    for name in ("p", "q"):
        queue.add(make_pod(name), START)
    pods = [popped(queue), popped(queue)]
    queue.activate([make_pod("p"), make_pod("unknown")], START)
    for queued in pods:
        refuse(queue, queued, "Fit")
    assert [queued.place for queued in pods] == [Place.BACKOFF, Place.UNSCHEDULABLE]


def test_a_pod_whose_help_went_wrong_is_tried_again_after_a_backoff() -> None:
    queue = make_queue(FIT)
    queued = park(queue, make_pod(), "Fit")
    queue.retry_later(queued.pod, START)
    assert (queued.place, queue.rejections) == (Place.ERROR_BACKOFF, {})
    assert queue.pop(START + 1.9) is None
    assert popped(queue, START + 2) is queued
    queue.retry_later(queued.pod, START + 2)
    refuse(queue, queued, "Fit", now=START + 2)
    assert queued.place is Place.BACKOFF
    queue.retry_later(make_pod("unknown"), START)
    assert queue.in_flight.event_count == 0


def test_an_update_of_the_pod_in_flight_is_judged_when_it_comes_back() -> None:
    event = ClusterEvent(Resource.POD, Action.UPDATE_POD_TOLERATION)
    queue = make_queue({"Taints": [EventRegistration(event, Asked(lambda pod, old, new: QueueingHint.QUEUE))]})
    pod = make_pod()
    queue.add(pod, START)
    queued = popped(queue)
    queue.update(pod, with_status(pod, phase="Pending"), START)
    assert queue.in_flight.event_count == 0
    queue.update(pod, tolerating(pod), START)
    refuse(queue, queued, "Taints")
    assert queued.place is Place.BACKOFF


# The pod's own updates


def test_status_and_bookkeeping_wake_nobody() -> None:
    everything = {"Curious": [EventRegistration(ClusterEvent(Resource.POD, Action.ALL))]}
    queue = make_queue(everything)
    pod = make_pod()
    queued = park(queue, pod, "Curious")
    failed = with_status(pod, conditions=(PodCondition(type="PodScheduled", status="False"),), nominated_node_name="n")
    queue.update(pod, failed, START)
    assert queued.place is Place.UNSCHEDULABLE
    assert queued.pod is failed
    queue.update(failed, relabelled(failed, a="b"), START)
    assert queued.place is Place.BACKOFF


def test_the_first_change_that_helps_is_enough() -> None:
    toleration = ClusterEvent(Resource.POD, Action.UPDATE_POD_TOLERATION)
    label = ClusterEvent(Resource.POD, Action.UPDATE_POD_LABEL)
    observer = Incoming()
    queue = make_queue({"A": [EventRegistration(label, Asked(SKIP)), EventRegistration(toleration)]}, observer=observer)
    pod = make_pod()
    queued = park(queue, pod, "A")
    queue.update(pod, relabelled(tolerating(pod), a="b"), START)
    assert queued.place is Place.BACKOFF
    assert observer.entered["backoff", "UnschedulablePodUpdatePodToleration"] == 1


def test_groups_follow_the_pod_when_it_changes() -> None:
    hint = Asked(lambda pod, old, new: QueueingHint.QUEUE if pod.metadata.labels == new else SKIP)
    fragment = lambda pod: tuple(sorted(pod.metadata.labels.items()))  # noqa: E731
    queue = make_queue({"Fit": [EventRegistration(NODE_ADD, hint, fragment)]})
    pod = make_pod(labels={"a": "b"})
    queued = park(queue, pod, "Fit")
    park(queue, make_pod("twin", labels={"a": "b"}), "Fit")
    queue.update(pod, relabelled(pod, a="c"), START)
    queue.move_all(NODE_ADD, None, {"a": "c"}, START)
    assert queued.place is Place.BACKOFF
    assert hint.pods.count("twin") == 1


# Gates


def test_gated_pods_stay_out_until_their_gates_are_gone() -> None:
    observer = Incoming()
    queue = make_queue(FIT, observer=observer)
    pod = make_pod(gates=["a", "b"])
    queue.add(pod, START)
    assert queue.pending() == Pending(0, 0, 0, 1)
    assert queue.rejections == {(SCHEDULER, "SchedulingGates"): 1}
    one_left = changed(pod, scheduling_gates=pod.spec.scheduling_gates[:1])
    queue.update(pod, one_left, START)
    queue.move_all(NODE_ADD, None, None, START)
    assert queue.pending() == Pending(0, 0, 0, 1)
    open_pod = changed(one_left, scheduling_gates=())
    queue.update(one_left, open_pod, START)
    assert queue.pending() == Pending(1, 0, 0, 0)
    assert popped(queue).pod is open_pod
    assert queue.rejections == {}
    assert observer.entered == {
        ("unschedulable", "UnschedulablePodAdd"): 1,
        ("active", "UnschedulablePodUpdatePodSchedulingGatesEliminated"): 1,
    }


def test_a_gate_is_asked_again_only_by_events_of_its_plugin() -> None:
    gate = Gate()
    queue = make_queue(FIT, [gate])
    queue.add(make_pod(), START)
    queue.move_all(NODE_ADD, None, None, START)
    assert gate.asked == 1
    queue.move_all(POD_DELETE, make_pod("q"), None, START)
    assert gate.asked == 2
    gate.is_open = lambda _pod: True
    queue.move_all(POD_DELETE, make_pod("q"), None, START)
    assert queue.pending().active == 1


def test_gates_are_asked_on_the_way_into_backoff_and_not_again_on_the_way_out() -> None:
    gate = Gate(lambda _pod: True)
    queue = make_queue(FIT, [gate])
    queued = park(queue, make_pod(), "Fit")
    gate.is_open = lambda _pod: False
    queue.move_all(NODE_ADD, None, None, START)
    assert (queued.place, queued.gating_plugin) == (Place.UNSCHEDULABLE, "Gate")
    gate.is_open = lambda _pod: True
    queue.move_all(POD_DELETE, None, None, START)
    assert queued.place is Place.BACKOFF
    gate.is_open = lambda _pod: False
    assert popped(queue) is queued


def test_a_gate_that_raises_gates(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_pod: Any) -> bool:
        raise RuntimeError("broken")

    queue = make_queue({}, [Gate(broken)])
    queue.add(make_pod(), START)
    assert queue.pending().gated == 1
    assert [record.message for record in caplog.records] == ["PreEnqueue plugin failed"]


def test_the_gating_plugin_is_asked_first() -> None:
    first, second = Gate(lambda _pod: True), Gate()
    second.name = "Second"  # type: ignore[misc]
    queue = make_queue({}, [first, second])
    queue.add(make_pod(), START)
    assert (first.asked, second.asked) == (1, 1)
    queue.move_all(POD_DELETE, None, None, START)
    assert (first.asked, second.asked) == (1, 2)


# The safety net


def test_pods_that_wait_too_long_are_tried_again_and_marked() -> None:
    queue = make_queue(FIT)
    queued = park(queue, make_pod(), "Fit")
    assert queue.pop(START + 299) is None
    assert popped(queue, START + 330) is queued
    assert queued.was_flushed
    refuse(queue, queued, "Fit", now=START + 330)
    assert not queued.was_flushed


def test_gated_pods_that_wait_too_long_are_asked_again_but_not_marked() -> None:
    gate = Gate()
    queue = make_queue({}, [gate])
    queue.add(make_pod(), START)
    queued = queue.get(make_pod().uid)
    assert queued is not None
    assert queue.pop(START + 330) is None
    assert (gate.asked, queued.was_flushed) == (2, False)


def test_many_late_pods_are_moved_in_batches() -> None:
    queue = make_queue(FIT)
    for number in range(LEFTOVER_BATCH + 1):
        park(queue, make_pod(f"p{number}"), "Fit")
    queue.pop(START + 301)
    assert queue.pending().unschedulable == 1
    assert queue.next_wakeup(START + 301) == 0.0
    queue.pop(START + 302)
    assert queue.pending().unschedulable == 0


def test_next_wakeup() -> None:
    queue = make_queue(FIT)
    assert queue.next_wakeup(START) is None
    queue.add(make_pod(), START)
    assert queue.next_wakeup(START) == 0.0
    queued = popped(queue)
    refuse(queue, queued, "Fit")
    assert queue.next_wakeup(START + 10) == 20.0
    queue.move_all(NODE_ADD, None, None, START)
    assert queue.next_wakeup(START) == 0.0


# Pods of one kind


def test_an_event_is_judged_once_for_pods_that_are_alike() -> None:
    hint = Asked(SKIP)
    queue = make_queue({"Fit": [EventRegistration(NODE_ADD, hint, lambda pod: pod.namespace)]})
    for number in range(50):
        park(queue, make_pod(f"p{number}"), "Fit")
        park(queue, make_pod(f"q{number}", namespace="other"), "Fit")
    queue.move_all(NODE_ADD, None, None, START)
    assert len(hint.pods) == 2
    hint.answer = QueueingHint.QUEUE
    queue.move_all(NODE_ADD, None, None, START)
    assert queue.pending() == Pending(0, 100, 0, 0)


def test_a_pre_check_spares_those_it_does_not_name() -> None:
    hint = Asked()
    queue = make_queue({"Fit": [EventRegistration(NODE_ADD, hint, lambda pod: None)]})
    pods = {name: park(queue, make_pod(name), "Fit") for name in ("a", "b")}
    queue.move_all(NODE_ADD, None, None, START, lambda pod: pod.name == "b")
    assert [pods["a"].place, pods["b"].place] == [Place.UNSCHEDULABLE, Place.BACKOFF]
    assert hint.pods == ["b"]
    queue.move_all(NODE_ADD, None, None, START, lambda pod: False)
    assert hint.pods == ["b"]


# Promises


def freed_by_promise() -> tuple[Asked, PriorityQueue]:
    hint = Asked(lambda pod, old, new: QueueingHint.QUEUE if old.status.nominated_node_name == "n1" else SKIP)
    return hint, make_queue({"Fit": [EventRegistration(POD_DELETE, hint)]})


def test_a_promise_given_up_frees_the_node_for_lower_and_equal_priorities() -> None:
    _hint, queue = freed_by_promise()
    low = park(queue, make_pod("low", priority=1), "Fit")
    high = park(queue, make_pod("high", priority=9), "Fit")
    promised = park(queue, make_pod("promised", priority=5), "Fit")
    queue.nominate(promised.pod_info, "n1", START)
    assert [queued.place for queued in (low, high, promised)] == [Place.UNSCHEDULABLE] * 3
    queue.nominate(promised.pod_info, "", START)
    assert [queued.place for queued in (low, high, promised)] == [
        Place.BACKOFF,
        Place.UNSCHEDULABLE,
        Place.UNSCHEDULABLE,
    ]


def test_where_a_pod_goes_those_to_whom_its_node_is_promised_are_tried_again() -> None:
    queue = make_queue({"Fit": [EventRegistration(POD_DELETE, Asked(SKIP))]})
    promised, elsewhere = park(queue, make_pod("promised"), "Fit"), park(queue, make_pod("elsewhere"), "Fit")
    queue.nominate(promised.pod_info, "n1", START)
    queue.nominate(elsewhere.pod_info, "n2", START)
    queue.move_all(EVENT_ASSIGNED_POD_DELETE, make_pod("gone", node="n1"), None, START)
    assert (promised.place, elsewhere.place) == (Place.BACKOFF, Place.UNSCHEDULABLE)


def test_pods_that_go_during_the_attempt_of_one_that_has_a_promise_count_where_it_is() -> None:
    for node, place in (("n1", Place.BACKOFF), ("n2", Place.UNSCHEDULABLE)):
        queue = make_queue({"Fit": [EventRegistration(POD_DELETE, Asked(SKIP))]})
        queue.add(make_pod("promised", nominated="n1"), START)
        popped = queue.pop(START)
        assert popped is not None
        queue.move_all(EVENT_ASSIGNED_POD_DELETE, make_pod("gone", node=node), None, START)
        popped.unschedulable_plugins = frozenset({"Fit"})
        assert queue.add_unschedulable(popped, START) is place


def test_a_promise_withdrawn_for_another_lets_the_pod_look_elsewhere() -> None:
    _hint, queue = freed_by_promise()
    promised = park(queue, make_pod("promised", nominated="n1"), "Fit")
    queue.withdraw_nomination(promised.pod_info, START)
    assert promised.place is Place.BACKOFF
    assert queue.nominator.nodes() == []


def test_a_nomination_taken_away_from_outside_wakes_the_others() -> None:
    _hint, queue = freed_by_promise()
    waiting = park(queue, make_pod("waiting"), "Fit")
    pod = make_pod("promised", nominated="n1", priority=5)
    park(queue, pod, "Fit")
    queue.update(pod, with_status(pod, nominated_node_name=""), START)
    assert waiting.place is Place.BACKOFF


def test_deleting_a_promised_pod_wakes_the_others() -> None:
    _hint, queue = freed_by_promise()
    waiting = park(queue, make_pod("waiting"), "Fit")
    pod = make_pod("promised", nominated="n1", priority=5)
    queue.add(pod, START)
    queue.delete(pod, START)
    assert waiting.place is Place.BACKOFF


def test_no_word_on_the_promise_leaves_it() -> None:
    queue = make_queue()
    info = PodInfo(make_pod(nominated="n1"))
    queue.nominate(info, None, START)
    assert queue.nominator.node_of(info.uid) == "n1"
    queue.nominate(info, "n2", START)
    queue.nominate(info, None, START)
    assert queue.nominator.node_of(info.uid) == "n2"


def test_a_promise_is_followed_also_while_its_pod_is_in_flight() -> None:
    queue = make_queue()
    pod = make_pod(nominated="n1")
    queue.add(pod, START)
    popped(queue)
    queue.update(pod, with_status(pod, nominated_node_name=""), START)
    assert queue.nominator.nodes() == []
    assumed = make_pod("assumed")
    queue.add(assumed, START)
    popped(queue)
    queue.update(assumed, with_status(assumed, nominated_node_name="n1"), START)
    assert queue.nominator.nodes() == []


def test_gated_pods_are_promised_nothing() -> None:
    queue = make_queue()
    queue.add(make_pod(nominated="n1", gates=["g"]), START)
    assert queue.nominator.nodes() == []


# The rest


def test_rejections_count_pods_by_plugin() -> None:
    queue = make_queue({"Fit": [EventRegistration(NODE_ADD)], "Taints": [EventRegistration(NODE_TAINT)]})
    park(queue, make_pod("p"), "Fit", "Taints")
    park(queue, make_pod("q"), "Fit")
    assert queue.rejections == {(SCHEDULER, "Fit"): 2, (SCHEDULER, "Taints"): 1}
    queue.move_all(NODE_TAINT, None, None, START)
    assert popped(queue).pod.name == "p"
    assert queue.rejections == {(SCHEDULER, "Fit"): 1}


def test_readiness_is_announced() -> None:
    calls = []
    queue = make_queue(FIT, on_ready=lambda: calls.append("ready"))
    park(queue, make_pod(), "Fit")
    assert calls == ["ready"]
    queue.move_all(NODE_ADD, None, None, START)
    assert calls == ["ready", "ready"]


def test_pods_of_several_profiles_listen_to_their_own_plugins() -> None:
    profiles = {
        "one": make_profile({"Fit": [EventRegistration(NODE_ADD)]}, name="one"),
        "two": make_profile({"Fit": [EventRegistration(NODE_TAINT)]}, name="two"),
    }
    queue = PriorityQueue(profiles, Listers())
    one = park(queue, make_pod("a", scheduler="one"), "Fit")
    two = park(queue, make_pod("b", scheduler="two"), "Fit")
    queue.move_all(NODE_TAINT, None, None, START)
    assert (one.place, two.place) == (Place.UNSCHEDULABLE, Place.BACKOFF)


def test_a_reload_tries_all_pods_again_with_the_new_plugins() -> None:
    gate = Gate()
    queue = make_queue(FIT, [gate])
    gate.is_open = lambda pod: pod.name != "gated"
    refused = park(queue, make_pod("refused"), "Fit")
    queue.add(make_pod("gated"), START)
    erring = park(queue, make_pod("erring"))
    queue.add(make_pod("flying"), START)
    flying = popped(queue)
    queue.reload({SCHEDULER: make_profile({})}, START)
    refuse(queue, flying, "Fit")
    gated = queue.get(make_pod("gated").uid)
    assert gated is not None
    assert [queued.place for queued in (refused, gated, erring, flying)] == [
        Place.BACKOFF,
        Place.ACTIVE,
        Place.ERROR_BACKOFF,
        Place.BACKOFF,
    ]


def test_a_reload_leaves_the_pods_of_unchanged_profiles_alone() -> None:
    gate, observer = Gate(), Incoming()
    kept = make_profile(FIT, [gate], name="kept")
    queue = PriorityQueue({"kept": kept, "other": make_profile(FIT, name="other")}, Listers(), observer=observer)
    queue.add(make_pod("gated", scheduler="kept"), START)
    gated = queue.get(make_pod("gated").uid)
    assert gated is not None
    gate.is_open = lambda pod: True
    refused = park(queue, make_pod("refused", scheduler="kept"), "Fit")
    other = park(queue, make_pod("other", scheduler="other"), "Fit")
    asked, entered = gate.asked, dict(observer.entered)
    queue.reload({"kept": kept, "other": make_profile({}, name="other")}, START)
    waiting, woken = Place.UNSCHEDULABLE, Place.BACKOFF
    assert (gated.place, refused.place, other.place) == (waiting, waiting, woken)
    assert gate.asked == asked
    assert observer.entered == {**entered, ("backoff", "ConfigurationReload"): 1}
    # They are woken as before.
    queue.move_all(NODE_ADD, None, None, START)
    queue.move_all(POD_DELETE, make_pod("gone", node="n1"), None, START)
    assert (gated.place, refused.place) == (Place.ACTIVE, woken)


def test_a_new_backoff_holds_for_pods_that_fail_from_now_on() -> None:
    queue = make_queue(FIT)
    before = park(queue, make_pod("before"))
    queue.set_backoff(5.0, 8.0)
    after = park(queue, make_pod("after"))
    assert (before.backoff_expiration, after.backoff_expiration) == (START + 1, START + 5)


def test_the_dump_names_every_pod() -> None:
    queue = make_queue(FIT)
    park(queue, make_pod("refused", priority=1), "Fit")
    queue.add(make_pod("gated", gates=["g"], nominated=""), START)
    queue.add(make_pod("flying", nominated="n1", priority=2), START)
    popped(queue)
    text = "\n".join(dump_queue(queue, START + 5))
    assert "1 unschedulable, 1 gated, 1 in flight" in text
    assert "Unschedulable default/refused uid=uid-default-refused attempts=1 since=5.0s refused-by=Fit" in text
    assert "gated-by=SchedulingGates" in text
    assert "InFlight uid=uid-default-flying" in text
    assert "Nominated default/flying uid=uid-default-flying node=n1" in text


def test_the_label_of_the_event_is_what_metrics_see() -> None:
    observer = Incoming()
    queue = make_queue({"Fit": [EventRegistration(POD_DELETE)]}, observer=observer)
    park(queue, make_pod(), "Fit")
    gone = msgspec.structs.replace(make_pod("gone", node="n1"))
    queue.move_all(EVENT_ASSIGNED_POD_DELETE, gone, None, START)
    assert observer.entered["backoff", "AssignedPodDelete"] == 1
