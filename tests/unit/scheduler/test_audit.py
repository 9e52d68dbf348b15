"""The second look."""

from __future__ import annotations

import pytest

from kube_pyscheduler.cache.cache import CONFIRMATION_SECONDS
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
