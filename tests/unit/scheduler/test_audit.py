"""The second look."""

from __future__ import annotations

import asyncio

import pytest

from kube_pyscheduler.cache.cache import CONFIRMATION_SECONDS
from kube_pyscheduler.scheduler.audit import COMPARE_EVERY, PAUSE, SECOND_LOOK
from kube_pyscheduler.scheduler.consistency import Difference
from kube_pyscheduler.scheduler.ports import Listing, Version
from tests.builders import make_node
from tests.unit.scheduler.conftest import MakeWorld
from tests.unit.scheduler.world import World
from tests.unit.scheduling_queue.builders import changed, make_pod


async def overdue(world: World) -> None:
    """A pod is bound to n1, and the watch never says so."""
    world.node()
    world.apply(make_pod(cpu="3"))
    await world.settle()
    assert world.bound == {"p": "n1"}
    world.clock.advance(CONFIRMATION_SECONDS)


async def test_a_lost_pod_is_found_by_the_second_audit(world: World) -> None:
    pod = make_pod()
    world.pods.by_key[pod.key] = pod
    world.node()
    world.scheduler.audit.find_lost()
    assert world.observer.of("lost_pod") == []
    world.scheduler.audit.find_lost()
    assert world.observer.of("lost_pod") == [()]
    await world.settle()
    assert world.bound == {"p": "n1"}


async def test_only_pods_that_should_be_queued_are_lost(world: World) -> None:
    world.binder.hold()
    world.node()
    world.apply(make_pod("binding"))
    await world.settle()
    world.apply(make_pod("refused", cpu="9"))
    await world.settle()
    world.apply(make_pod("gated", gates=["g"]))
    for pod in (
        make_pod("foreign", scheduler="other"),
        make_pod("bound", node="n1"),
        make_pod("deleting", deletion="2026-01-01T00:00:00Z"),
        make_pod("done", status={"phase": "Succeeded"}),
    ):
        world.pods.by_key[pod.key] = pod
    world.scheduler.audit.find_lost()
    world.scheduler.audit.find_lost()
    assert world.observer.of("lost_pod") == []
    world.binder.release()
    await world.settle()


async def test_a_slow_watch_costs_nothing(world: World) -> None:
    await overdue(world)
    world.server.pods["default/p"] = changed(make_pod(cpu="3"), node_name="n1")
    await world.scheduler.audit.settle_overdue()
    assert world.used() == 3000
    assert world.scheduler.cache.overdue(world.clock.monotonic()) == []


async def test_a_bound_pod_that_is_gone_frees_its_node(world: World) -> None:
    await overdue(world)
    waiter = world.apply(make_pod("waiter", cpu="2"))
    await world.settle()
    assert world.queued(waiter).attempts == 1
    await world.scheduler.audit.settle_overdue()
    await world.settle()
    assert world.used() == 2000
    assert dict(world.binder.sent)["waiter"] == "n1"


async def test_a_binding_that_the_server_does_not_know_is_done_again(world: World) -> None:
    await overdue(world)
    world.server.pods["default/p"] = make_pod(cpu="3")
    await world.scheduler.audit.settle_overdue()
    await world.settle()
    assert world.binder.sent == [("p", "n1"), ("p", "n1")]
    assert world.used() == 3000


async def test_a_pod_that_is_elsewhere_is_charged_there(world: World) -> None:
    await overdue(world)
    world.node("n2")
    world.server.pods["default/p"] = changed(make_pod(cpu="3"), node_name="n2")
    await world.scheduler.audit.settle_overdue()
    assert (world.used("n1"), world.used("n2")) == (0, 3000)
    world.delete(make_pod(cpu="3"))
    assert world.used("n2") == 0


async def test_a_server_that_cannot_tell_changes_nothing(world: World, caplog: pytest.LogCaptureFixture) -> None:
    await overdue(world)
    world.server.broken = True
    await world.scheduler.audit.settle_overdue()
    assert world.used() == 3000
    assert len(world.scheduler.cache.overdue(world.clock.monotonic())) == 1
    assert len(caplog.records) == 1


async def busy(world: World) -> None:
    """Pods in all places: bound, being bound, refused, gated; one of somebody else; one on a node that is gone."""
    for name in ("n1", "n2"):
        world.node(name)
    for name in ("bound", "binding"):
        world.apply(make_pod(name, cpu="1"))
    await world.settle()
    world.confirm("bound")
    world.apply(make_pod("refused", cpu="9"))
    world.apply(make_pod("gated", gates=["g"]))
    world.apply(make_pod("foreign", scheduler="other"))
    world.apply(make_pod("orphan", node="gone"))
    await world.settle()
    world.time_passes.set()


async def compared(world: World) -> list[tuple[str, str]]:
    return sorted((found.what, found.name) for found in await world.scheduler.audit.compare())


async def test_where_all_is_well_one_look_is_enough(world: World) -> None:
    await busy(world)
    assert await compared(world) == []
    assert SECOND_LOOK not in world.sleeps


async def test_what_the_watch_did_not_tell_is_found_counted_and_listed_anew(world: World) -> None:
    await busy(world)
    world.truth.missed["Pod"] = {
        "default/new": Version("u-new", "7"),
        "default/refused": Version("uid-default-refused", "8"),
    }
    world.truth.gone = {"default/gated"}
    names = ["default/gated", "default/new", "default/refused"]
    assert await compared(world) == [("watch_behind", name) for name in names]
    assert world.observer.of("difference") == [("watch_behind",)] * 3
    assert world.truth.relisted == ["Pod"]


async def test_pods_without_a_node_that_nobody_told_of_are_counted_as_lost(world: World) -> None:
    await busy(world)
    new = make_pod("new", uid="u-new", version="7", cpu="9")
    foreign = make_pod("foreign-too", uid="u-foreign", version="7", scheduler="other")
    world.truth.missed["Pod"] = {pod.key: Version(pod.uid, "7") for pod in (new, foreign)}
    world.truth.gone = {"default/bound", "default/gated"}
    world.truth.on_relist = lambda: [world.apply(pod) for pod in (new, foreign)]
    found = await world.scheduler.audit.compare_waiting()
    assert sorted(difference.name for difference in found) == ["default/foreign-too", "default/new"]
    assert world.truth.relisted == ["Pod"]
    assert world.observer.of("lost_pod") == [()]
    assert await world.scheduler.audit.compare_waiting() == []


async def test_a_watch_that_is_merely_late_is_no_difference(world: World) -> None:
    await busy(world)
    world.truth.missed["Pod"] = {"default/new": Version("u-new", "7")}
    world.time_passes.clear()
    comparing = asyncio.ensure_future(world.scheduler.audit.compare())
    await world.settle()
    assert SECOND_LOOK in world.sleeps
    world.apply(make_pod("new", uid="u-new", version="7", cpu="9"))
    await world.settle()
    world.time_passes.set()
    assert await comparing == []
    assert world.truth.relisted == []


async def test_what_the_watch_told_after_the_list_is_no_difference(world: World) -> None:
    await busy(world)
    world.apply(make_pod("newer", version="1001", cpu="9"))
    await world.settle()
    world.truth.gone = {"default/newer"}
    assert await compared(world) == []


async def test_a_cache_and_a_queue_that_differ_from_the_watch_are_found(world: World) -> None:
    await busy(world)
    scheduler = world.scheduler
    scheduler.cache.remove_pod("uid-default-bound")
    scheduler.cache.set_pod(make_pod("ghost", node="n1"))
    scheduler.cache.set_pod(changed(make_pod("orphan"), node_name="n2"))
    scheduler.queue.delete(make_pod("refused"), world.clock.monotonic())
    scheduler.queue.add(make_pod("stranger"), world.clock.monotonic())
    scheduler.cache.remove_node(world.nodes["n2"])
    scheduler.cache.set_node(make_node("n3"))
    scheduler.cache.table.requested[0, scheduler.cache.table.row_of["n1"]] += 5
    assert await compared(world) == [
        ("node_charge", "n1"),
        ("node_missing", "n2"),
        ("node_redundant", "n3"),
        ("pod_elsewhere", "default/orphan"),
        ("pod_missing", "default/bound"),
        ("pod_redundant", "default/ghost"),
        ("queue_missing", "default/refused"),
        ("queue_redundant", "default/stranger"),
    ]
    assert world.truth.relisted == []


async def test_a_node_whose_update_was_lost_on_the_way_to_the_cache_is_found(world: World) -> None:
    await busy(world)
    world.nodes["n1"] = make_node("n1", metadata={"resourceVersion": "9"})
    assert await compared(world) == [("node_stale", "n1")]


def test_differences_are_told_apart_by_what_we_have_and_not_by_what_is_said_of_them() -> None:
    assert Difference("pod_missing", "Pod", "a", "u", "one") == Difference("pod_missing", "Pod", "a", "u", "another")
    assert Difference("node_stale", "Node", "a", "7") != Difference("node_stale", "Node", "a", "8")


async def test_comparisons_are_rarer_than_the_rest_and_may_fail(
    make_world: MakeWorld, caplog: pytest.LogCaptureFixture
) -> None:
    world = make_world()
    tried = asyncio.Event()
    looks: list[int] = []

    async def waiting() -> Listing:
        looks.append(world.sleeps.count(PAUSE))
        return Listing("1000", {})

    async def broken(_kind: str) -> None:
        world.time_passes.clear()
        tried.set()
        raise OSError("no connection")

    world.truth.waiting = waiting  # type: ignore[method-assign]
    world.truth.list = broken  # type: ignore[method-assign, assignment]
    world.time_passes.set()
    running = asyncio.ensure_future(world.scheduler.audit.run())
    await tried.wait()
    running.cancel()
    assert looks == [5, 10, 15, 20, 25]
    assert world.sleeps.count(PAUSE) == COMPARE_EVERY + 1, "it goes on"
    assert "Cannot compare" in caplog.text
