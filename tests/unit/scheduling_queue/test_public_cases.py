"""Public reports about queues, as far as the queue alone must be right about them."""

from __future__ import annotations

from typing import Any

import pytest

from kube_pyscheduler.framework.cluster_event import (
    EVENT_ASSIGNED_POD_ADD,
    EVENT_ASSIGNED_POD_DELETE,
    Action,
    ClusterEvent,
    EventRegistration,
    QueueingHint,
    Resource,
)
from kube_pyscheduler.objects.pod import Pod, PodCondition, PodResourceClaimStatus
from kube_pyscheduler.scheduling_queue.pod_changes import ASSIGNED_POD_UPDATE
from kube_pyscheduler.scheduling_queue.priority_queue import Pending
from kube_pyscheduler.scheduling_queue.queued_pod import Place
from tests.unit.scheduling_queue.builders import (
    NODE_ADD,
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

FIT = {"Fit": [EventRegistration(POD_DELETE), EventRegistration(NODE_ADD)]}
QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.SKIP


def test_bc_13_recreated_under_its_name_while_in_flight() -> None:
    queue = make_queue(FIT)
    first, second = make_pod("x", uid="A"), make_pod("x", uid="B")
    queue.add(first, START)
    attempt = popped(queue)
    queue.delete(first, START)
    queue.add(second, START)
    queue.move_all(NODE_ADD, None, None, START)
    # Whoever handles the failure sees that A is gone, and says no more than this.
    queue.done(attempt.uid)
    assert (len(queue.in_flight), queue.in_flight.event_count) == (0, 0)
    assert popped(queue).uid == "B"
    assert queue.pop(START) is None


def test_bc_14_a_skipped_pod_leaves_nothing_behind() -> None:
    queue = make_queue(FIT)
    queue.add(make_pod(deletion="2026-01-01T00:00:00Z"), START)
    skipped = popped(queue)
    queue.done(skipped.uid)
    for _ in range(10_000):
        queue.move_all(NODE_ADD, None, None, START)
    assert (len(queue.in_flight), queue.in_flight.event_count) == (0, 0)


def test_bc_14_the_log_stays_flat_while_pods_come_and_go() -> None:
    queue = make_queue(FIT)
    longest = 0
    previous = ""
    for number in range(1000):
        queue.add(make_pod(f"p{number}"), START)
        queued = popped(queue)
        queue.move_all(NODE_ADD, None, None, START)
        queue.done(previous)
        previous = queued.uid
        longest = max(longest, queue.in_flight.event_count)
    assert longest <= 2


def test_bc_16_a_preemptor_is_not_parked_by_its_second_preemption() -> None:
    """V is gone while H is gated by its second eviction; the end of that eviction activates H."""
    gate = Gate(lambda _pod: True)
    queue = make_queue(FIT, [gate])
    queued = park(queue, make_pod("h", priority=100), "Fit")
    gate.is_open = lambda _pod: False
    queue.move_all(EVENT_ASSIGNED_POD_DELETE, make_pod("v", node="n1"), None, START)
    assert queued.gating_plugin == "Gate"
    gate.is_open = lambda _pod: True
    queue.activate([queued.pod], START)
    assert popped(queue) is queued


def test_bc_17_unrelated_deletions_do_not_retry_a_preemptor_that_waits() -> None:
    gate = Gate(lambda _pod: True)
    queue = make_queue(FIT, [gate])
    queued = park(queue, make_pod("h", priority=100), "Fit")
    gate.is_open = lambda _pod: False
    for number in range(50):
        queue.move_all(EVENT_ASSIGNED_POD_DELETE, make_pod(f"u{number}", node="n2"), None, START)
        assert queue.pop(START) is None
    assert queued.attempts == 1


def affinity_hint(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """P wants a pod labelled app=db, and suffers from the pod named r."""
    if new is None:
        return QUEUE if old.name == "r" else SKIP
    was, now = (other is not None and other.metadata.labels.get("app") == "db" for other in (old, new))
    return QUEUE if now and not was else SKIP


def test_bc_35_affinity_waiters_wake_for_the_right_pods_only() -> None:
    events = ClusterEvent(Resource.POD, Action.ADD | Action.DELETE | Action.UPDATE_POD_LABEL)
    queue = make_queue({"Affinity": [EventRegistration(events, Asked(affinity_hint))]})
    waiter = park(queue, make_pod("p"), "Affinity")
    relabel = ASSIGNED_POD_UPDATE[Action.UPDATE_POD_LABEL]
    stranger, other, right = make_pod("s", node="n1"), make_pod("q", node="n1", labels={"app": "tmp"}), make_pod("r")
    queue.move_all(relabel, stranger, relabelled(stranger, x="y"), START)
    queue.move_all(EVENT_ASSIGNED_POD_DELETE, stranger, None, START)
    queue.move_all(EVENT_ASSIGNED_POD_ADD, None, stranger, START)
    assert waiter.place is Place.UNSCHEDULABLE
    queue.move_all(relabel, other, relabelled(other, app="db"), START)
    assert popped(queue) is waiter
    refuse(queue, waiter, "Affinity")
    queue.move_all(EVENT_ASSIGNED_POD_DELETE, right, None, START)
    assert popped(queue) is waiter


def test_bc_47_gated_pods_are_not_tried_and_open_at_once() -> None:
    queue = make_queue(FIT)
    pod = make_pod(gates=["example.com/hold"])
    queue.add(pod, START)
    assert queue.pop(START) is None
    queue.update(pod, changed(pod, scheduling_gates=()), START)
    assert popped(queue).attempts == 1


def test_bc_47_events_cost_nothing_for_gated_pods() -> None:
    """No hint and no gate is asked for any of the 10,000."""
    observer = Incoming()
    queue = make_queue(FIT, observer=observer)
    for number in range(10_000):
        queue.add(make_pod(f"p{number}", gates=["example.com/hold"]), START)
    asked_before = len(observer.points)
    for number in range(100):
        queue.move_all(EVENT_ASSIGNED_POD_DELETE, make_pod(f"gone{number}", node="n1"), None, START)
    assert (len(observer.points), observer.hints) == (asked_before, [])
    assert queue.pending() == Pending(0, 0, 0, 10_000)


def test_bc_62_counts_say_the_truth() -> None:
    queue = make_queue(FIT)
    pods = [make_pod(f"p{number}") for number in range(4)]
    for pod in pods:
        park(queue, pod, "Fit")
    assert queue.pending() == Pending(active=0, backoff=0, unschedulable=4, gated=0)
    queue.delete(pods[0], START)
    queue.delete(pods[0], START)
    assert queue.pending() == Pending(active=0, backoff=0, unschedulable=3, gated=0)


def test_bc_77_a_reload_without_the_refusing_plugin_activates_the_pod() -> None:
    queue = make_queue({"X": [EventRegistration(NODE_ADD)]})
    queued = park(queue, make_pod(), "X")
    queue.reload({SCHEDULER: make_profile({})}, START)
    assert popped(queue) is queued


@pytest.mark.parametrize(
    ("change", "wakes"),
    [
        (lambda pod: with_status(pod, conditions=(PodCondition(type="PodScheduled", status="False"),)), False),
        (lambda pod: with_status(pod, nominated_node_name="n1"), False),
        (lambda pod: with_status(pod), False),
        (tolerating, True),
        (lambda pod: relabelled(pod, a="b"), True),
        (lambda pod: changed(pod, containers=make_pod(cpu="50m").spec.containers), True),
        (lambda pod: with_status(pod, resource_claim_statuses=(PodResourceClaimStatus(name="c"),)), True),
    ],
)
def test_bc_83_our_own_status_write_does_not_wake_the_pod(change: Any, wakes: bool) -> None:
    queue = make_queue({"X": [EventRegistration(ClusterEvent(Resource.POD, Action.UPDATE))]})
    pod = make_pod()
    queued = park(queue, pod, "X")
    queue.update(pod, change(pod), START)
    assert (queued.place is not Place.UNSCHEDULABLE) is wakes


def test_events_of_wanted_kinds_that_cannot_help_leave_everybody_where_he_is() -> None:
    observer = Incoming()
    hint = Asked(SKIP)
    queue = make_queue(
        {"Fit": [EventRegistration(POD_DELETE, hint, lambda pod: pod.spec.containers[0].resources.requests["cpu"])]},
        observer=observer,
    )
    for number in range(1000):
        park(queue, make_pod(f"p{number}", cpu=f"{number % 10 + 1}"), "Fit")
    before = dict(observer.entered)
    for number in range(1000):
        queue.move_all(EVENT_ASSIGNED_POD_DELETE, make_pod(f"gone{number}", node="n1"), None, START)
    assert len(hint.pods) == 10 * 1000
    assert observer.entered == before
    assert all(queued.attempts == 1 for queued in queue)
