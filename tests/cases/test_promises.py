"""Promised nodes (nominations), through the daemon and an API server: kept, given up when they are of no use, and in
nobody's way."""

from __future__ import annotations

from kube_pyscheduler.devserver.resources import NODES
from tests.cases.stage import Stage, is_pod_deletion, play


async def preempting(stage: Stage) -> None:
    """``high`` was promised the node of ``low``, which is on its way out."""
    stage.add_pod("low", cpu="4")
    await stage.until(lambda: stage.node_of("low"))
    stage.hold("low")
    stage.add_pod("high", cpu="4", priority=100)
    await stage.until(lambda: stage.promised("high"))


def test_a_promise_is_given_up_when_its_node_is_deleted() -> None:
    async def story(stage: Stage) -> None:
        first = stage.add_node(0)
        await stage.start()
        await preempting(stage)
        second = stage.add_node(1)
        stage.add_pod("other", cpu="4", priority=100)
        await stage.until(lambda: stage.node_of("other") == second)
        stage.registry.delete(NODES, "", first)
        await stage.until(lambda: not stage.promised("high"), within=5.0)
        third = stage.add_node(2)
        await stage.until(lambda: stage.node_of("high") == third, within=5.0)

    play(story)


def test_who_was_promised_a_node_that_is_deleted_preempts_elsewhere() -> None:
    async def story(stage: Stage) -> None:
        first = stage.add_node(0)
        await stage.start()
        await preempting(stage)
        second = stage.add_node(1)
        stage.add_pod("middle", cpu="4", priority=50, node=second)
        await stage.until(lambda: stage.pod("middle")["status"]["phase"] == "Running")
        stage.registry.delete(NODES, "", first)
        await stage.until(lambda: stage.node_of("high") == second, within=10.0)

    play(story)


def test_a_promise_survives_a_restart() -> None:
    async def story(stage: Stage) -> None:
        node = stage.add_node()
        daemon = await stage.start()
        await preempting(stage)
        await daemon.crash()
        await daemon.start()
        await stage.until(lambda: stage.world.leader is daemon and daemon.scheduler is not None)
        stage.add_pod("thief", cpu="4")
        stage.let_go("low")
        await stage.until(lambda: stage.node_of("high") == node)
        assert not stage.node_of("thief")
        assert len(stage.wire.of(is_pod_deletion)) == 1

    play(story)


def test_who_cannot_use_his_promise_any_more_keeps_nobody_away() -> None:
    """A more important pod takes the room; then there is some left, and somebody for it."""

    async def story(stage: Stage) -> None:
        node = stage.add_node(cpu="32")
        await stage.start()
        stage.add_pod("first", cpu="10", priority=10)
        await stage.until(lambda: stage.node_of("first"))
        stage.hold("first")
        stage.add_pod("second", cpu="25", priority=100)
        await stage.until(lambda: stage.promised("second") == node)
        stage.let_go("first")
        stage.add_pod("third", cpu="20", priority=1000)
        stage.add_pod("fourth", cpu="10", priority=10)
        await stage.until(lambda: stage.node_of("third") and stage.node_of("fourth"), within=10.0)
        assert not stage.node_of("second")
        await stage.until(lambda: not stage.promised("second"), within=10.0)

    play(story)


def test_a_preemptor_that_is_deleted_leaves_its_promise_behind_for_others() -> None:
    async def story(stage: Stage) -> None:
        node = stage.add_node()
        daemon = await stage.start()
        await preempting(stage)
        stage.add_pod("middle", cpu="4", priority=50)
        await stage.until(lambda: "FailedScheduling" in stage.told("middle"))
        stage.delete_pod("high")
        stage.let_go("low")
        await stage.until(lambda: stage.node_of("middle") == node, within=10.0)
        assert daemon.scheduler is not None
        assert daemon.scheduler.queue.nominator.nodes() == []

    play(story)
