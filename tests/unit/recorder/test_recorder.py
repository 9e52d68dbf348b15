import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kube_pyscheduler.kit.clock import FakeClock
from kube_pyscheduler.kit.tasks import Tasks
from kube_pyscheduler.recorder.event import Reference
from kube_pyscheduler.recorder.recorder import ATTEMPTS, Recorder
from kube_pyscheduler.recorder.series import FINISH_AFTER
from kube_pyscheduler.transport.client import Client
from kube_pyscheduler.transport.requests import Request
from kube_pyscheduler.transport.session import Session
from tests.unit.scripted_server import ScriptedServer, Seen, Sleeps, drop, logged, reply, session_to, status

EVENTS = "/apis/events.k8s.io/v1/namespaces/ns/events"


def pod(name: str = "p", version: str = "1") -> Reference:
    return Reference("v1", "Pod", "ns", name, f"uid-{name}", version)


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer() as scripted:
        yield scripted


@pytest.fixture
async def session(server: ScriptedServer) -> AsyncIterator[Session]:
    async with session_to(server.url) as opened:
        yield opened


@pytest.fixture
async def tasks() -> AsyncIterator[Tasks]:
    async with Tasks() as group:
        yield group


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def sleeps() -> Sleeps:
    return Sleeps()


@pytest.fixture
def recorder(session: Session, tasks: Tasks, clock: FakeClock, sleeps: Sleeps) -> Recorder:
    return Recorder(Client(session), tasks, host="host", clock=clock, sleep=sleeps)


def fail(recorder: Recorder, note: str = "0/3 nodes", *, about: Reference | None = None) -> None:
    recorder.event(about or pod(), "Warning", "FailedScheduling", "Scheduling", note, controller="sched")


def name_in(seen: Seen) -> str:
    return str(seen.body["metadata"]["name"])


async def test_an_event_is_written(server: ScriptedServer, recorder: Recorder) -> None:
    server.script("POST", EVENTS, reply(201, {}))
    recorder.event(pod(), "Normal", "Scheduled", "Binding", "to n1", controller="sched", repeats=False)
    await recorder.drain()
    (seen,) = server.seen
    assert (seen.body["reason"], seen.body["action"], seen.body["note"]) == ("Scheduled", "Binding", "to n1")
    assert (seen.body["reportingController"], seen.body["reportingInstance"]) == ("sched", "sched-host")
    assert name_in(seen).startswith("p.")
    assert recorder.counts.written == 1


async def test_every_event_has_a_name_of_its_own(server: ScriptedServer, recorder: Recorder) -> None:
    server.script("POST", EVENTS, *[reply(201, {})] * 3)
    for note in ("a", "b", "c"):
        recorder.event(pod(), "Normal", "Scheduled", "Binding", note, controller="sched", repeats=False)
    await recorder.drain()
    assert len({name_in(seen) for seen in server.seen}) == 3


async def test_the_first_repetition_starts_a_series_the_rest_is_counted(
    server: ScriptedServer, recorder: Recorder, clock: FakeClock
) -> None:
    server.script("POST", EVENTS, reply(201, {}))
    fail(recorder)
    await recorder.drain()
    path = f"{EVENTS}/{name_in(server.seen[0])}"
    server.script("PATCH", path, reply(200, {}))
    clock.advance(1.0)
    fail(recorder, about=pod(version="2"))
    await recorder.drain()
    for _ in range(10):
        clock.advance(1.0)
        fail(recorder, about=pod(version="3"))
    await recorder.drain()
    first, second = server.seen
    assert "series" not in first.body
    assert second.body["series"]["count"] == 2
    assert second.headers["Content-Type"] == "application/merge-patch+json"


async def test_a_series_that_ended_gets_its_final_count(
    server: ScriptedServer, session: Session, tasks: Tasks, clock: FakeClock
) -> None:
    swept = asyncio.Event()
    go_on = asyncio.Event()

    async def sleep(_: float) -> None:
        swept.set()
        await go_on.wait()
        go_on.clear()

    recorder = Recorder(Client(session), tasks, host="host", clock=clock, sleep=sleep)
    tasks.start(recorder.sweep_for_ever(), name="sweeper", forever=True)
    server.script("POST", EVENTS, reply(201, {}))
    fail(recorder)
    await recorder.drain()
    path = f"{EVENTS}/{name_in(server.seen[0])}"
    server.script("PATCH", path, *[reply(200, {})] * 2)
    for _ in range(4):
        fail(recorder)
        await recorder.drain()
    clock.advance(FINISH_AFTER)
    await swept.wait()
    go_on.set()
    assert [seen.body["series"]["count"] for seen in await server.saw("PATCH", path, 2)] == [2, 5]


async def test_a_repetition_before_the_creation_was_answered_follows_it(
    server: ScriptedServer, recorder: Recorder
) -> None:
    fail(recorder)
    (seen,) = await server.saw("POST", EVENTS)
    fail(recorder)
    path = f"{EVENTS}/{name_in(seen)}"
    server.script("PATCH", path, reply(200, {}))
    server.script("POST", EVENTS, reply(201, {}))
    await recorder.drain()
    assert [request.method for request in server.seen] == ["POST", "PATCH"]


async def test_a_series_whose_event_was_forgotten_is_created_again(server: ScriptedServer, recorder: Recorder) -> None:
    server.script("POST", EVENTS, *[reply(201, {})] * 2)
    fail(recorder)
    await recorder.drain()
    server.script("PATCH", f"{EVENTS}/{name_in(server.seen[0])}", status(404, "NotFound"))
    fail(recorder)
    await recorder.drain()
    assert [seen.method for seen in server.seen] == ["POST", "PATCH", "POST"]
    assert server.seen[2].body["series"]["count"] == 2
    assert name_in(server.seen[2]) == name_in(server.seen[0])


async def test_a_server_that_does_not_answer_is_asked_again_a_few_times(
    server: ScriptedServer, recorder: Recorder, sleeps: Sleeps
) -> None:
    server.script("POST", EVENTS, drop, status(503, "ServiceUnavailable"), reply(201, {}))
    fail(recorder)
    await recorder.drain()
    assert (recorder.counts.written, recorder.counts.failed, len(sleeps.delays)) == (1, 0, 2)
    assert len({name_in(seen) for seen in server.seen}) == 1
    server.script("POST", EVENTS, *[status(500, "InternalError")] * ATTEMPTS)
    fail(recorder, "another note")
    await recorder.drain()
    assert (recorder.counts.written, recorder.counts.failed) == (1, 1)
    assert server.count("POST", EVENTS) == 3 + ATTEMPTS


async def test_an_event_that_exists_was_written_by_an_earlier_attempt(
    server: ScriptedServer, recorder: Recorder
) -> None:
    server.script("POST", EVENTS, drop, status(409, "AlreadyExists"))
    fail(recorder)
    await recorder.drain()
    assert (recorder.counts.written, recorder.counts.failed) == (1, 0)


@pytest.mark.parametrize(
    "refusal",
    [
        status(403, "Forbidden", "unable to create new content in namespace ns because it is being terminated"),
        status(404, "NotFound", 'namespaces "ns" not found'),
        status(422, "Invalid", "Event is invalid"),
    ],
)
async def test_a_refusal_is_said_once_and_counted_and_the_next_one_is_tried(
    server: ScriptedServer, recorder: Recorder, caplog: pytest.LogCaptureFixture, refusal: Any
) -> None:
    server.script("POST", EVENTS, *[refusal] * 3)
    for _ in range(3):
        fail(recorder)
        await recorder.drain()
    assert recorder.counts.failed == 3
    assert server.count("POST", EVENTS) == 3
    assert len(logged(caplog)) == 1


async def test_bc65_a_slow_api_costs_bounded_memory_and_holds_nobody_up(tasks: Tasks, clock: FakeClock) -> None:
    sent: list[Request] = []

    class Stuck:
        async def send(self, request: Request, *, deadline: float = 30.0) -> bytes:
            sent.append(request)
            await asyncio.Event().wait()
            return b""

    recorder = Recorder(Stuck(), tasks, host="host", queue_limit=100, parallel=4, clock=clock)
    for _ in range(20):
        for number in range(50):
            fail(recorder, about=pod(f"p{number}"))
    await asyncio.sleep(0)
    assert len(sent) == 4
    assert recorder.counts.dropped == 0, "the same event of a pod waits once"
    for number in range(500):
        fail(recorder, about=pod(f"q{number}"))
    assert recorder.counts.dropped == 500 - (100 - 46)
    assert len(recorder._queue) == 100


async def test_what_waits_is_overtaken_by_what_is_newer(server: ScriptedServer, session: Session, tasks: Tasks) -> None:
    recorder = Recorder(Client(session), tasks, host="host", parallel=1)
    fail(recorder, about=pod("first"))
    await server.saw("POST", EVENTS)
    for note in ("0/1 nodes", "0/2 nodes", "0/3 nodes"):
        fail(recorder, note)
    server.script("POST", EVENTS, *[reply(201, {})] * 2)
    await recorder.drain()
    assert [seen.body["note"] for seen in server.seen[1:]] == ["0/3 nodes"]
    assert "series" not in server.seen[1].body
