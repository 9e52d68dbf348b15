import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kube_pyscheduler.kit.clock import FakeClock
from kube_pyscheduler.kit.tasks import Tasks
from kube_pyscheduler.leader.election import Timing
from kube_pyscheduler.leader.elector import Elector, LeaseLost
from kube_pyscheduler.objects.kinds import POD
from kube_pyscheduler.transport import requests
from kube_pyscheduler.transport.client import Client
from kube_pyscheduler.transport.errors import Forbidden, NetworkError, ServerError
from tests.unit.leader.lease_api import LeaseAPI
from tests.unit.leader.virtual_time import VirtualTime
from tests.unit.scripted_server import ScriptedServer, logged, reply, session_to

DOWN = ServerError(500, "InternalError", "etcd is down")


class World:
    """Candidates of one lease on one timeline."""

    def __init__(self) -> None:
        self.time = VirtualTime()
        self.api = LeaseAPI()
        self.tasks = Tasks()
        self.told: list[str] = []
        self.lost: list[str] = []

    def candidate(self, name: str, clock: FakeClock | None = None, api: Any = None) -> Elector:
        return Elector(
            api or self.api,
            namespace="kube-system",
            name="kube-pyscheduler",
            identity=name,
            timing=Timing(),
            announce=lambda lease, note: self.told.append(note),
            clock=clock or self.time.clock,
            sleep=self.time.sleep,
            uniform=lambda: 0.5,
        )

    def start(self, elector: Elector) -> asyncio.Task[None]:
        async def lead() -> None:
            await elector.acquire()
            try:
                await elector.hold()
            except LeaseLost as error:
                self.lost.append(f"{elector.identity}: {error}")

        return self.tasks.start(lead(), name=elector.identity)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    created = World()
    yield created
    await created.tasks.close()


async def test_the_first_candidate_creates_the_lease_and_renews_it(world: World) -> None:
    a = world.candidate("a")
    assert not a.is_leader()
    world.start(a)
    await world.time.advance(0.0)
    assert a.is_leader()
    assert world.told == ["a became leader"]
    assert world.api.lease is not None
    assert world.api.lease["metadata"] == {
        "name": "kube-pyscheduler",
        "namespace": "kube-system",
        "resourceVersion": "1",
    }
    await world.time.advance(60.0)
    assert a.is_leader()
    assert (world.api.count("GET"), world.api.count("POST"), world.api.count("PUT")) == (1, 1, 30)
    assert world.api.lease["spec"]["leaseTransitions"] == 0


async def test_others_wait_while_the_leader_renews(world: World, caplog: pytest.LogCaptureFixture) -> None:
    a, b = world.candidate("a"), world.candidate("b")
    world.start(a)
    await world.time.advance(0.0)
    world.start(b)
    await world.time.advance(300.0)
    assert (a.is_leader(), b.is_leader()) == (True, False)
    assert a.leader == b.leader == "a"
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_after_a_crash_the_lease_is_taken_when_its_duration_has_passed(world: World) -> None:
    a, b = world.candidate("a"), world.candidate("b")
    crashed = world.start(a)
    await world.time.advance(0.0)
    world.start(b)
    await world.time.advance(4.0)
    crashed.cancel()
    await world.time.advance(10.0)
    assert not b.is_leader()
    await world.time.advance(15.0 + 2.0 - 10.0)
    assert b.is_leader()
    assert world.api.lease is not None
    assert world.api.lease["spec"]["leaseTransitions"] == 1


async def test_bc58_a_jump_of_the_wall_clock_moves_nobody(world: World) -> None:
    a, b = world.candidate("a"), world.candidate("b", clock=(jumping := _SharedMonotonic(world.time.clock)))
    world.start(a)
    await world.time.advance(0.0)
    world.start(b)
    await world.time.advance(4.0)
    jumping.jump(3600.0)
    await world.time.advance(60.0)
    assert (a.is_leader(), b.is_leader()) == (True, False)


class _SharedMonotonic(FakeClock):
    """Another process on the same machine time, with a wall clock of its own."""

    def __init__(self, machine: FakeClock) -> None:
        super().__init__()
        self._machine = machine

    def monotonic(self) -> float:
        return self._machine.monotonic()


async def test_bc59_a_leader_that_cannot_renew_stops_before_anybody_else_starts(world: World) -> None:
    a = world.candidate("a")
    other_way = LeaseAPI()
    world.start(a)
    await world.time.advance(1.0)
    other_way.lease, other_way._version = world.api.lease, 1
    b = world.candidate("b", api=other_way)
    world.start(b)
    world.api.fail = DOWN
    active: list[tuple[bool, bool]] = []
    for _ in range(250):
        await world.time.advance(0.1)
        active.append((a.is_leader(), b.is_leader()))
    assert (True, True) not in active
    assert active[85] == (True, False)
    assert active[91] == (False, False)
    assert active[-1] == (False, True)
    assert world.lost == ["a: not renewed for 10 s"]
    assert world.told == ["a became leader", "a stopped leading", "b became leader"]


async def test_bc59_nothing_is_written_after_the_deadline_even_if_nobody_noticed(
    world: World, server_and_client: tuple[ScriptedServer, Any]
) -> None:
    server, client_for = server_and_client
    a = world.candidate("a")
    await a.acquire()
    client = client_for(a.is_leader)
    world.time.clock.advance(9.9)
    server.script("POST", "/api/v1/namespaces/ns/pods/p/binding", reply(201, {}))
    await client.send(requests.bind_pod("ns", "p", "u", "n"))
    world.time.clock.advance(0.2)
    with pytest.raises(NetworkError) as caught:
        await client.send(requests.bind_pod("ns", "p", "u", "n"))
    assert not caught.value.sent
    assert len(server.seen) == 1
    server.script("GET", "/api/v1/pods", reply(201, {}))
    await client.send(requests.list_page(POD))


async def test_a_short_outage_is_survived(world: World) -> None:
    a = world.candidate("a")
    world.start(a)
    await world.time.advance(1.0)
    world.api.fail = NetworkError("connection refused", sent=False)
    await world.time.advance(7.0)
    world.api.fail = None
    await world.time.advance(30.0)
    assert a.is_leader()
    assert world.lost == []


async def test_a_renewal_whose_answer_got_lost_is_still_ours(world: World) -> None:
    a = world.candidate("a")
    world.start(a)
    await world.time.advance(1.0)
    world.api.fail, world.api.lose_answers = NetworkError("reset", sent=True), True
    await world.time.advance(2.0)
    world.api.fail = None
    await world.time.advance(30.0)
    assert a.is_leader()
    assert world.lost == []


async def test_a_creation_whose_answer_got_lost_is_still_ours(world: World) -> None:
    a = world.candidate("a")
    world.api.fail, world.api.lose_answers = NetworkError("reset", sent=True), True
    world.start(a)
    await world.time.advance(0.0)
    world.api.fail = None
    await world.time.advance(2.0)
    assert a.is_leader()


async def test_a_stolen_lease_is_lost_at_once(world: World) -> None:
    a = world.candidate("a")
    world.start(a)
    await world.time.advance(1.0)
    world.api.change(holderIdentity="thief")
    await world.time.advance(2.0)
    assert not a.is_leader()
    assert world.lost == ["a: the lease is held by thief"]


async def test_no_request_may_outlive_the_renew_deadline(world: World) -> None:
    a = world.candidate("a")
    world.start(a)
    await world.time.advance(1.0)
    world.api.fail = DOWN
    world.api.deadlines.clear()
    await world.time.advance(9.5)
    assert max(world.api.deadlines) == 5.0
    assert world.api.deadlines[-1] <= 2.0


async def test_bc59_the_end_is_noticed_when_it_comes(world: World) -> None:
    world.start(world.candidate("a"))
    await world.time.advance(1.0)
    world.api.fail = DOWN
    await world.time.advance(8.99)
    assert world.lost == []
    await world.time.advance(0.02)
    assert world.lost == ["a: not renewed for 10 s"]


async def test_what_a_lease_carries_besides_is_kept(world: World) -> None:
    await world.candidate("a").acquire()
    world.api.change(holderIdentity="", strategy="OldestEmulationVersion", preferredHolder="x")
    assert world.api.lease is not None
    world.api.lease["metadata"]["labels"] = {"team": "infra"}
    await world.candidate("b").acquire()
    assert world.api.lease["metadata"]["labels"] == {"team": "infra"}
    assert world.api.lease["spec"]["strategy"] == "OldestEmulationVersion"
    assert world.api.lease["spec"]["preferredHolder"] == "x"


async def test_a_problem_is_said_once_until_it_changes(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.api.fail = Forbidden(403, "Forbidden", "leases are forbidden")
    world.start(world.candidate("a"))
    await world.time.advance(60.0)
    assert len([text for text in logged(caplog) if "leases are forbidden" in text]) == 1


# -- giving it back ----------------------------------------------------------------------------------------------------


async def test_bc61_a_released_lease_is_taken_within_one_retry_period(world: World) -> None:
    a, b = world.candidate("a"), world.candidate("b")
    leading = world.start(a)
    await world.time.advance(0.0)
    world.start(b)
    await world.time.advance(30.0)
    leading.cancel()
    await a.release()
    assert not a.is_leader()
    assert world.api.lease is not None
    assert world.api.lease["spec"]["holderIdentity"] == ""
    assert world.api.lease["spec"]["leaseDurationSeconds"] == 1
    assert "a stopped leading" in world.told
    await world.time.advance(2.0)
    assert b.is_leader()


async def test_bc61_a_stolen_lease_is_not_given_back(world: World) -> None:
    a = world.candidate("a")
    await a.acquire()
    world.api.change(holderIdentity="thief")
    await a.release()
    assert world.api.count("PUT") == 0
    assert world.api.lease is not None
    assert world.api.lease["spec"]["holderIdentity"] == "thief"


async def test_bc61_a_lease_stolen_while_it_is_given_back_stays_stolen(world: World) -> None:
    a = world.candidate("a", api=(slow := _StolenAfterGet(world.api)))
    await a.acquire()
    slow.armed = True
    await a.release()
    assert world.api.lease is not None
    assert world.api.lease["spec"]["holderIdentity"] == "thief"


class _StolenAfterGet:
    """Another writer gets in between our GET and our PUT."""

    def __init__(self, api: LeaseAPI) -> None:
        self._api = api
        self.armed = False

    async def send(self, request: requests.Request, *, deadline: float = 30.0) -> bytes:
        answer = await self._api.send(request, deadline=deadline)
        if self.armed and request.method == "GET":
            self._api.change(holderIdentity="thief")
        return answer


async def test_whoever_does_not_lead_gives_nothing_back(world: World) -> None:
    await world.candidate("a").release()
    assert world.api.requests == []
    assert world.told == []


async def test_health_fails_only_long_after_the_lease(world: World) -> None:
    a = world.candidate("a")
    assert a.is_healthy()
    await a.acquire()
    world.time.clock.advance(35.0)
    assert a.is_healthy()
    world.time.clock.advance(0.1)
    assert not a.is_healthy()


@pytest.fixture
async def server_and_client() -> AsyncIterator[tuple[ScriptedServer, Any]]:
    async with ScriptedServer() as server, session_to(server.url) as session:
        yield server, lambda may_write: Client(session, may_write=may_write)
