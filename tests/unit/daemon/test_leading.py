"""Several daemons and one lease."""

from __future__ import annotations

import asyncio
import time
from functools import partial

import pytest

from kube_pyscheduler.config.load import load_config
from kube_pyscheduler.daemon.connections import CountedSession
from kube_pyscheduler.devserver.http.watching import Watch
from kube_pyscheduler.devserver.resources import LEASES
from kube_pyscheduler.transport.requests import Request
from kube_pyscheduler.transport.session import Reply
from tests.unit.daemon.cluster import cluster, eventually
from tests.unit.daemon.running import HEADER, QUICK, answers, get, options, running


async def test_a_follower_serves_and_takes_over_when_the_leader_leaves() -> None:
    async with cluster() as api, running(options(api)) as (stop_leader, leader):
        await eventually(lambda: bool(api.holder))
        first = api.holder
        second = options(api)
        async with running(second) as (stop, follower):
            await eventually(lambda: answers(second.plain.port, "/readyz"))
            metrics = (await get(second.plain.port, "/metrics"))[1]
            assert 'leader_election_master_status{name="kube-pyscheduler"} 0.0' in metrics
            stop_leader.set()
            assert await leader == 0
            await eventually(lambda: api.holder not in ("", first))
            api.add_pod("b")
            await eventually(lambda: api.is_bound("b"))
            stop.set()
            assert await follower == 0


async def test_a_follower_that_is_told_to_stop_stops() -> None:
    async with cluster() as api, running(options(api)):
        await eventually(lambda: bool(api.holder))
        before = api.holder
        second = options(api)
        async with running(second) as (stop, follower):
            await eventually(lambda: answers(second.plain.port, "/readyz"))
            stop.set()
            assert await follower == 0
        assert api.holder == before


async def test_who_loses_the_lease_says_so_exits_with_1_and_leaves_it_alone(caplog: pytest.LogCaptureFixture) -> None:
    async with cluster() as api, running(options(api)) as (_, daemon):
        await eventually(lambda: bool(api.holder))
        stolen = dict(api.lease or {})
        stolen["spec"] = {**stolen["spec"], "holderIdentity": "somebody-else"}
        stolen["metadata"] = {k: v for k, v in stolen["metadata"].items() if k != "resourceVersion"}
        api.server.store.update(LEASES, stolen)
        assert await daemon == 1
        assert api.holder == "somebody-else"
    assert "Leaderelection lost" in caplog.text
    assert "Traceback" not in caplog.text


async def test_delayed_caches_are_filled_by_the_leader_only() -> None:
    async with cluster() as api, running(options(api)):
        await eventually(lambda: bool(api.holder))
        lazy = load_config(HEADER + "delayCacheUntilActive: true")
        second = options(api, config=lazy)
        async with running(second) as (stop, follower):
            await eventually(lambda: answers(second.plain.port, "/livez"))
            status, text = await get(second.plain.port, "/readyz")
            assert (status, "[-]informer-sync failed" in text) == (500, True)
            stop.set()
            assert await follower == 0


def _say_nothing(watch: Watch) -> list[bytes]:
    watch._queue.clear()
    return []


async def test_a_new_leader_lists_everything_before_it_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its watches may have been dead for a while: what the leader before it did last must not be missed."""
    async with cluster(nodes=1) as api, running(options(api)) as (stop_leader, leader):
        await eventually(lambda: bool(api.holder))
        second = options(api)
        async with running(second):
            await eventually(lambda: answers(second.plain.port, "/readyz"))
            for watch in tuple(api.server.context.watches):
                monkeypatch.setattr(watch, "pending_lines", partial(_say_nothing, watch))
            api.add_pod("large", cpu="30")
            api.server.registry.bind("default", "large", {"target": {"kind": "Node", "name": "node-00000"}})
            stop_leader.set()
            assert await leader == 0
            api.add_pod("too-large", cpu="3")
            api.add_pod("small", cpu="1")
            await eventually(lambda: api.is_bound("small") and bool(api.events("too-large")))
            assert not api.is_bound("too-large")


class Wire:
    """Between the daemon and its connections: delays bindings, refuses renewals, remembers when what was sent."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bindings: list[float] = []
        self.renewals: list[float] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.refuses_renewals = False
        self._pass_on = CountedSession.request
        monkeypatch.setattr(CountedSession, "request", lambda *args: self._request(*args))

    async def _request(self, session: CountedSession, request: Request, deadline: float) -> Reply:
        now = time.monotonic()
        if request.path.endswith("/binding"):
            self.bindings.append(now)
            await self.gate.wait()
        elif request.method == "PUT" and "/leases/" in request.path:
            if self.refuses_renewals:
                return Reply(500, b"", None)
            self.renewals.append(now)
        return await self._pass_on(session, request, deadline)


async def test_bc_61_the_lease_is_released_after_the_bindings_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    wire = Wire(monkeypatch)
    wire.gate.clear()
    async with cluster() as api:
        opts = options(api)
        async with running(opts) as (stop, daemon):
            for name in ("a", "b", "c"):
                api.add_pod(name)
            await eventually(lambda: len(wire.bindings) == 3)
            stop.set()
            await eventually(lambda: answers(opts.plain.port, "/readyz/shutdown", 500))
            api.add_pod("too-late")
            renewed = len(wire.renewals)
            await eventually(lambda: len(wire.renewals) > renewed + 1)
            assert api.holder
            assert not daemon.done()
            wire.gate.set()
            assert await daemon == 0
        assert all(api.is_bound(name) for name in ("a", "b", "c"))
        assert not api.is_bound("too-late")
        assert api.lease is not None
        assert (api.lease["spec"]["holderIdentity"], api.lease["spec"]["leaseDurationSeconds"]) == ("", 1)


async def test_bc_59_who_cannot_renew_stops_acting_in_time(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    wire = Wire(monkeypatch)
    async with cluster() as api, running(options(api)) as (_, daemon):
        await eventually(lambda: bool(wire.renewals))
        wire.refuses_renewals = True
        number = 0
        while not daemon.done():
            api.add_pod(f"pod-{number}")
            number += 1
            await asyncio.wait((daemon,), timeout=0.02)
        assert await daemon == 1
        assert len(wire.bindings) > 5
        assert max(wire.bindings) < wire.renewals[-1] + QUICK["renew_deadline"]
    assert "Leaderelection lost" in caplog.text
