"""Public cases about bindings: the daemon and an API server, over a wire that is slow, is cut, or delivers late."""

from __future__ import annotations

import asyncio
import itertools
import json

import pytest

from kube_pyscheduler.devserver.resources import NODES
from tests.cases.stage import Stage, counter, is_binding, is_status_patch, play, watches
from tests.cases.storage import add_claim, add_class, claim, using
from tests.faults.proxy import Answer, Asked, Cut, Fault, Tampered
from tests.faults.world import Daemon
from tests.storage import SELECTED_NODE

RESULT = "scheduler_schedule_attempts_total"


def used(daemon: Daemon, node: str) -> int:
    """Milli-CPU that the daemon charges to the node."""
    assert daemon.scheduler is not None
    table = daemon.scheduler.cache.table
    return int(table.requested[0, table.row_of[node]])


def test_bc_13_a_binding_for_the_predecessor_is_refused_for_its_successor() -> None:
    async def story(stage: Stage) -> None:
        node = stage.add_node()
        daemon = await stage.start()
        stage.wire.suffer(is_binding, Fault(delay=2.0))
        first = stage.add_pod("x", cpu="3")["metadata"]["uid"]
        await stage.until(lambda: stage.wire.of(is_binding))
        stage.delete_pod("x")
        second = stage.add_pod("x", cpu="2")["metadata"]["uid"]
        await stage.until(lambda: stage.node_of("x"))
        uids = [json.loads(heard.asked.body)["metadata"]["uid"] for heard in stage.wire.of(is_binding)]
        assert uids == [first, second]
        await stage.until(lambda: counter(daemon, RESULT, result="scheduled") == 1)
        assert stage.told("x") == ["Scheduled"]
        assert used(daemon, node) == 2000
        assert daemon.scheduler is not None
        assert len(daemon.scheduler.queue.in_flight) == daemon.scheduler.queue.in_flight.event_count == 0

    play(story)


def test_bc_43_a_bind_that_timed_out_but_happened() -> None:
    async def story(stage: Stage) -> None:
        node = stage.add_node()
        daemon = await stage.start()
        stage.wire.suffer(is_binding, Fault(late=11.0, answer=Cut.RESET))
        stage.wire.tamper(watches("pods"), lambda lines: Tampered(lines, delay=5.0))
        stage.add_pod("p", cpu="3")
        await stage.until(lambda: "Scheduled" in stage.told("p"))
        await stage.until(lambda: counter(daemon, "scheduler_cache_size", type="assumed_pods") == 0)
        assert len(stage.wire.of(is_binding)) == 1
        assert stage.told("p") == ["Scheduled"]
        assert used(daemon, node) == 3000
        assert counter(daemon, RESULT, result="scheduled") == 1
        assert counter(daemon, RESULT, result="error") == counter(daemon, RESULT, result="unschedulable") == 0

    play(story)


def test_bc_41_the_claim_is_told_the_node_and_is_bound_before_the_pod_is() -> None:
    async def story(stage: Stage) -> None:
        node = stage.add_node()
        await stage.start()
        add_class(stage)
        add_claim(stage, "c")
        stage.add_pod("p", **using("c"))
        await stage.until(lambda: SELECTED_NODE in claim(stage, "c")["metadata"].get("annotations", {}))
        assert claim(stage, "c")["metadata"]["annotations"][SELECTED_NODE] == node
        assert claim(stage, "c")["status"]["phase"] == "Pending"
        assert not stage.wire.of(is_binding)
        await stage.until(lambda: stage.wire.of(is_binding))
        assert claim(stage, "c")["status"]["phase"] == "Bound"
        await stage.until(lambda: stage.node_of("p") == node)

    play(story)


@pytest.mark.parametrize("late", [0.0, 3.0], ids=["the watch is quick", "the watch is late"])
def test_bc_44_already_assigned(late: float) -> None:
    async def story(stage: Stage) -> None:
        first = stage.add_node(0)
        daemon = await stage.start()
        stage.wire.suffer(is_binding, Fault(delay=2.0))
        stage.add_pod("p", cpu="3")
        await stage.until(lambda: stage.wire.of(is_binding))
        # Our scheduler may not use this one, but the other one does.
        second = stage.add_node(1, unschedulable=True)
        stage.add_pod("wants-the-same-node", cpu="2")
        await stage.until(lambda: "FailedScheduling" in stage.told("wants-the-same-node"))
        stage.wire.tamper(watches("pods"), lambda lines: Tampered(lines, delay=late))
        stage.bind("p", second)
        await stage.until(lambda: stage.node_of("wants-the-same-node") == first)
        await stage.until(lambda: used(daemon, second) == 3000)
        assert (stage.node_of("p"), used(daemon, first)) == (second, 2000)
        assert "FailedScheduling" not in stage.told("p")
        assert daemon.scheduler is not None
        assert not list(daemon.scheduler.queue)
        await stage.until(lambda: not len(daemon.scheduler.bindings))
        assert counter(daemon, "scheduler_conflicts_total", kind="bound_elsewhere") == 1

    play(story)


def test_bc_46_a_success_without_the_expected_body_is_a_success() -> None:
    """As API servers do it, ours answers with a Status instead of a Binding."""

    async def story(stage: Stage) -> None:
        stage.add_node()
        daemon = await stage.start()
        stage.add_pod("p")
        await stage.until(lambda: counter(daemon, RESULT, result="scheduled") == 1)
        assert len(stage.wire.of(is_binding)) == 1
        assert counter(daemon, RESULT, result="error") == 0

    play(story)


def test_bc_49_a_foreign_pod_that_comes_while_ours_is_on_its_way_is_seen_before_ours_is_bound() -> None:
    """Bindings wait for each other; while this one waits its turn, another scheduler fills the node."""

    async def story(stage: Stage) -> None:
        small, large = stage.add_node(0), stage.add_node(1, cpu="8")
        daemon = await stage.start()
        assert daemon.scheduler is not None
        slots = daemon.scheduler.bindings._slots
        taken = [await slots.acquire() for _ in range(64)]
        stage.add_pod("ours", cpu="3", nodeSelector={"kubernetes.io/hostname": small})
        await stage.until(lambda: daemon.scheduler.bindings.is_target(small))
        stage.add_pod("theirs", cpu="3", schedulerName="default-scheduler")
        stage.add_pod("pending", cpu="1", schedulerName="default-scheduler")
        stage.bind("theirs", small)
        await stage.until(lambda: used(daemon, small) == 6000)
        for _ in taken:
            slots.release()
        await stage.until(lambda: "FailedScheduling" in stage.told("ours"))
        assert stage.wire.of(is_binding) == []
        assert used(daemon, small) == 3000
        assert counter(daemon, "scheduler_conflicts_total", kind="over_allocatable") == 1
        assert [queued.pod.name for queued in daemon.scheduler.queue] == ["ours"]
        assert large not in (stage.node_of("ours"), stage.node_of("pending"))

    play(story)


def test_a_binding_that_is_always_refused_is_tried_ever_more_rarely_and_keeps_nobody_away() -> None:
    async def story(stage: Stage) -> None:
        stage.add_node()
        await stage.start()

        def is_refused(asked: Asked) -> bool:
            return asked.path.endswith("/pods/unwanted/binding")

        stage.wire.suffer_always(is_refused, Fault(passes=False, answer=Answer(422, "Invalid")))
        stage.add_pod("unwanted", cpu="4", priority=100)
        await stage.until(lambda: stage.wire.of(is_refused))
        stage.add_pod("other", cpu="4")
        assert await stage.until(lambda: stage.node_of("other")) < 1.0
        stage.delete_pod("other")
        await asyncio.sleep(120.0)
        tries = [heard.at for heard in stage.wire.of(is_refused)]
        pauses = [after - first for first, after in itertools.pairwise(tries)]
        assert pauses == sorted(pauses)
        assert 10.0 <= pauses[-1] <= 12.0

    play(story)


def test_a_status_patch_that_a_binding_overtakes_does_not_have_the_last_word() -> None:
    async def story(stage: Stage) -> None:
        stage.add_node(cpu="1")
        await stage.start()
        stage.wire.suffer(is_status_patch, Fault(delay=8.0))
        stage.add_pod("p", cpu="2")
        await stage.until(lambda: stage.wire.of(is_status_patch))
        stage.add_node(1)
        assert await stage.until(lambda: stage.node_of("p")) < 5.0
        await asyncio.sleep(20.0)
        (condition,) = [c for c in stage.pod("p")["status"]["conditions"] if c["type"] == "PodScheduled"]
        assert (condition["status"], condition.get("reason"), condition.get("message")) == ("True", None, None)
        assert not stage.promised("p")

    play(story)


def is_claim_patch(asked: Asked) -> bool:
    return asked.method == "PATCH" and "/persistentvolumeclaims/" in asked.path


def test_a_pod_that_is_deleted_while_its_volume_is_made_leaves_the_claim_to_the_next() -> None:
    async def story(stage: Stage) -> None:
        stage.add_node(cpu="1")
        daemon = await stage.start()
        add_class(stage)
        add_claim(stage, "c")
        stage.add_pod("first", cpu="1", **using("c"))
        await stage.until(lambda: stage.wire.of(is_claim_patch))
        stage.delete_pod("first")
        stage.add_pod("second", cpu="1", **using("c"))
        await stage.until(lambda: stage.node_of("second"), within=10.0)
        assert list(daemon.ledger.open_entries()) == []

    play(story)


def test_a_pod_whose_node_is_deleted_while_its_volume_is_made_goes_elsewhere() -> None:
    async def story(stage: Stage) -> None:
        first = stage.add_node(0)
        await stage.start()
        add_class(stage)
        add_claim(stage, "c")
        stage.add_pod("p", **using("c"))
        await stage.until(lambda: stage.wire.of(is_claim_patch))
        stage.registry.delete(NODES, "", first)
        second = stage.add_node(1)
        await stage.until(lambda: stage.node_of("p") == second, within=10.0)
        assert len(stage.wire.of(is_binding)) == 1

    play(story)


def test_a_claim_that_cannot_be_written_is_tried_again() -> None:
    async def story(stage: Stage) -> None:
        stage.add_node()
        await stage.start()
        add_class(stage)
        add_claim(stage, "c")
        refused, lost = Fault(passes=False, answer=Answer(409, "Conflict")), Fault(answer=Cut.RESET)
        stage.wire.suffer(is_claim_patch, refused, lost)
        stage.add_pod("p", **using("c"))
        await stage.until(lambda: stage.node_of("p"), within=10.0)
        assert len(stage.wire.of(is_claim_patch)) >= 2

    play(story)
