import json
from collections.abc import Iterator
from typing import Any

import pytest

from kube_pyscheduler.informers.reading import Reader
from kube_pyscheduler.informers.reflector import (
    REFUSALS,
    Applied,
    Changed,
    Deleted,
    Empty,
    Failed,
    Listed,
    Listing,
    Reflector,
    Replaced,
    Watching,
)
from kube_pyscheduler.informers.store import Identity, Store
from kube_pyscheduler.kit.clock import FakeClock
from kube_pyscheduler.objects.kinds import POD
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.transport.client import Client
from kube_pyscheduler.transport.errors import Gone, NetworkError
from kube_pyscheduler.transport.requests import Request
from kube_pyscheduler.transport.session import Session
from kube_pyscheduler.transport.watch import WatchStream
from tests.unit.informers.objects import bookmark, event, malformed, pod, pod_list
from tests.unit.scripted_server import Answer, LiveWatch, ScriptedServer, drop, reply, status

PODS = "/api/v1/pods"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


class TidyClient(Client):
    """Closes at the end the streams that a test left open."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.streams: list[WatchStream] = []

    async def open_watch(self, request: Request, *, idle: float) -> WatchStream:
        self.streams.append(await super().open_watch(request, idle=idle))
        return self.streams[-1]


@pytest.fixture
def reflector(session: Session, clock: FakeClock) -> Iterator[Reflector[Pod]]:
    reader = Reader(POD, Store(), salvage=None, malformed=lambda: None)
    client = TidyClient(session)
    yield Reflector(client, POD, reader, clock=clock, field_selector="a=b", uniform=lambda: 0.5)
    for stream in client.streams:
        stream.close()


async def watching(reflector: Reflector[Pod], version: str = "10") -> Watching:
    state, outcome = await reflector.step(Listed(version))
    assert isinstance(state, Watching)
    assert outcome is None
    return state


# -- listing -----------------------------------------------------------------------------------------------------------


async def test_a_list_in_one_page(server: ScriptedServer, reflector: Reflector[Pod]) -> None:
    server.script("GET", PODS, reply(200, pod_list(pod("a"), pod("b"), version=10)))
    state, outcome = await reflector.step(Empty())
    assert state == Listed("10")
    assert isinstance(outcome, Replaced)
    assert set(outcome.objects) == {"ns/a", "ns/b"}
    assert server.seen[0].query == {"limit": "500", "fieldSelector": "a=b"}


async def test_a_list_in_pages_is_handed_out_once_complete(server: ScriptedServer, reflector: Reflector[Pod]) -> None:
    server.script(
        "GET",
        PODS,
        reply(200, pod_list(pod("a"), version=10, continue_token="t+1")),
        reply(200, pod_list(malformed(pod("b", 4)), version=10)),
    )
    state, outcome = await reflector.step(Empty())
    assert isinstance(state, Listing)
    assert outcome is None
    state, outcome = await reflector.step(state)
    assert state == Listed("10")
    assert isinstance(outcome, Replaced)
    assert set(outcome.objects) == {"ns/a"}
    assert outcome.unreadable == {"ns/b": Identity("ns/b", "uid-b", "4")}
    assert server.seen[1].query == {"limit": "500", "continue": "t+1", "fieldSelector": "a=b"}


@pytest.mark.parametrize(
    "answers",
    [
        # The HTTP library itself repeats a GET once when a kept connection turns out to be dead.
        [drop, drop],
        [status(500, "InternalError")],
        [status(429, "TooManyRequests")],
    ],
)
async def test_a_failed_page_is_asked_for_again(
    server: ScriptedServer, reflector: Reflector[Pod], answers: list[Answer]
) -> None:
    server.script("GET", PODS, reply(200, pod_list(pod("a"), continue_token="t")), *answers)
    state, _ = await reflector.step(Empty())
    again, outcome = await reflector.step(state)
    assert again is state
    assert isinstance(outcome, Failed)


@pytest.mark.parametrize("refusal", [status(400, "BadRequest", "continue key is not valid"), status(403, "Forbidden")])
async def test_a_list_whose_next_page_is_refused_begins_anew(
    server: ScriptedServer, reflector: Reflector[Pod], refusal: Answer
) -> None:
    server.script("GET", PODS, reply(200, pod_list(pod("a"), continue_token="t")), refusal)
    state, _ = await reflector.step(Empty())
    state, outcome = await reflector.step(state)
    assert state == Empty()
    assert isinstance(outcome, Failed)


async def test_a_list_in_one_piece_that_is_too_much_for_the_server_is_tried_in_pages_again(
    server: ScriptedServer, reflector: Reflector[Pod]
) -> None:
    server.script("GET", PODS, status(504, "Timeout"))
    state, outcome = await reflector.step(Empty(paged=False))
    assert state == Empty()
    assert isinstance(outcome, Failed)
    assert "limit" not in server.seen[0].query


async def test_an_expired_continue_token_leads_to_a_list_in_one_piece(
    server: ScriptedServer, reflector: Reflector[Pod]
) -> None:
    server.script(
        "GET",
        PODS,
        reply(200, pod_list(pod("a"), continue_token="t")),
        status(410, "Expired", "The provided continue parameter is too old"),
        reply(200, pod_list(pod("b"), version=20)),
    )
    state, _ = await reflector.step(Empty())
    state, outcome = await reflector.step(state)
    assert state == Empty(paged=False)
    assert isinstance(outcome, Failed)
    state, outcome = await reflector.step(state)
    assert state == Listed("20")
    assert isinstance(outcome, Replaced)
    assert set(outcome.objects) == {"ns/b"}
    assert server.seen[2].query == {"fieldSelector": "a=b"}


@pytest.mark.parametrize(
    "body",
    [
        b"no json",
        b"{}",
        {"metadata": {}, "items": []},
        {"metadata": {"resourceVersion": None}, "items": []},
        {"metadata": {"resourceVersion": ""}, "items": None},
        {"metadata": {"resourceVersion": "1"}, "items": {}},
    ],
)
async def test_bc53_a_list_without_a_version_is_no_list(
    server: ScriptedServer, reflector: Reflector[Pod], body: Any
) -> None:
    server.script("GET", PODS, reply(200, body))
    state, outcome = await reflector.step(Empty())
    assert state == Empty()
    assert isinstance(outcome, Failed)


async def test_no_items_and_null_items_are_an_empty_list(server: ScriptedServer, reflector: Reflector[Pod]) -> None:
    metadata = {"resourceVersion": "5", "continue": None}
    server.script("GET", PODS, reply(200, {"metadata": metadata}), reply(200, {"metadata": metadata, "items": None}))
    for _ in range(2):
        state, outcome = await reflector.step(Empty())
        assert (state, outcome) == (Listed("5"), Replaced({}, {}))


# -- watching ----------------------------------------------------------------------------------------------------------


async def test_a_watch_begins_at_the_lists_version(server: ScriptedServer, reflector: Reflector[Pod]) -> None:
    server.script("WATCH", PODS, LiveWatch())
    await watching(reflector, "10")
    assert server.seen[0].query == {
        "watch": "1",
        "allowWatchBookmarks": "true",
        "resourceVersion": "10",
        "timeoutSeconds": "450",
        "fieldSelector": "a=b",
    }


async def test_events_come_in_order_and_move_the_version(server: ScriptedServer, reflector: Reflector[Pod]) -> None:
    live = LiveWatch()
    server.script("WATCH", PODS, live)
    state: Any = await watching(reflector)
    live.send_bytes(b"".join(_lines(event("ADDED", pod("a", 11)), event("DELETED", pod("a", 12)), bookmark(15))))
    state, outcome = await reflector.step(state)
    assert state.version == "15"
    added, deleted = _events(outcome)
    assert isinstance(added, Applied)
    assert isinstance(added.obj, Pod)
    assert deleted == Deleted(Identity("ns/a", "uid-a", "12"))


async def test_a_malformed_object_moves_the_version_too(server: ScriptedServer, reflector: Reflector[Pod]) -> None:
    server.script("WATCH", PODS, LiveWatch(event("MODIFIED", malformed(pod("a", 11)))))
    state, outcome = await reflector.step(await watching(reflector))
    assert isinstance(state, Watching)
    assert state.version == "11"
    assert _events(outcome) == [Applied(Identity("ns/a", "uid-a", "11"))]


@pytest.mark.parametrize(
    "odd",
    [
        event("BOOKMARK", {"metadata": {}}),
        event("BOOKMARK", {"metadata": {"resourceVersion": None}}),
        event("BOOKMARK", {"metadata": {"resourceVersion": "7"}}),
        event("NOVELTY", {"metadata": {"name": "a"}}),
    ],
)
async def test_bc53_the_version_never_gets_lost_or_falls_back(
    server: ScriptedServer, reflector: Reflector[Pod], odd: dict[str, Any]
) -> None:
    server.script("WATCH", PODS, LiveWatch(odd))
    state, outcome = await reflector.step(await watching(reflector, "10"))
    assert isinstance(state, Watching)
    assert state.version == "10"
    assert _events(outcome) == []


async def test_the_end_of_a_watch_is_resumed_at_the_last_version(
    server: ScriptedServer, reflector: Reflector[Pod]
) -> None:
    live = LiveWatch(bookmark(12))
    server.script("WATCH", PODS, live)
    state, _ = await reflector.step(await watching(reflector))
    live.end()
    state, outcome = await reflector.step(state)
    assert state == Listed("12")
    assert outcome == Changed([])


async def test_a_watch_that_ends_at_once_failed(server: ScriptedServer, reflector: Reflector[Pod]) -> None:
    live = LiveWatch()
    live.end()
    server.script("WATCH", PODS, live)
    state, outcome = await reflector.step(await watching(reflector))
    assert state == Listed("10", refusals=1)
    assert isinstance(outcome, Failed)


async def test_a_watch_that_was_silent_to_its_end_is_not_trusted(
    server: ScriptedServer, reflector: Reflector[Pod], clock: FakeClock
) -> None:
    live = LiveWatch()
    server.script("WATCH", PODS, live)
    state = await watching(reflector)
    clock.advance(300.0)
    live.end()
    assert await reflector.step(state) == (Empty(), Changed([]))


async def test_a_watch_that_falls_silent_is_resumed_if_it_ever_said_something(
    server: ScriptedServer, reflector: Reflector[Pod], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kube_pyscheduler.informers.reflector.SILENCE", 0.05)
    server.script("WATCH", PODS, LiveWatch(bookmark(12)), LiveWatch())
    state, _ = await reflector.step(await watching(reflector))
    state, outcome = await reflector.step(state)
    assert state == Listed("12")
    assert isinstance(outcome, Failed)
    state, _ = await reflector.step(state)
    assert await reflector.step(state) == (Empty(), Changed([]))


async def test_a_broken_watch_is_resumed_at_the_last_version(server: ScriptedServer, reflector: Reflector[Pod]) -> None:
    live = LiveWatch(bookmark(12))
    server.script("WATCH", PODS, live)
    state, _ = await reflector.step(await watching(reflector))
    live.send_bytes(b'{"type": "ADDED", "obj')
    live.reset()
    state, outcome = await reflector.step(state)
    assert state == Listed("12")
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.error, NetworkError)


async def test_bc52_a_reset_on_opening_a_watch_loses_nothing(server: ScriptedServer, reflector: Reflector[Pod]) -> None:
    server.script("WATCH", PODS, *[drop] * 20, LiveWatch())
    state: Any = Listed("10")
    while not isinstance(state, Watching):
        assert state == Listed("10")
        state, _ = await reflector.step(state)
    assert server.count("WATCH", PODS) == 21
    assert {seen.query["resourceVersion"] for seen in server.seen} == {"10"}


_STATUS = {"kind": "Status", "metadata": {}}
EXPIRED = {**_STATUS, "code": 410}
COMPACTED = {**_STATUS, "code": 500, "message": "etcdserver: mvcc: required revision has been compacted"}
TOO_LARGE = {**_STATUS, "code": 504, "reason": "Timeout", "message": "Too large resource version: 10, current: 5"}


@pytest.mark.parametrize("problem", [EXPIRED, COMPACTED, TOO_LARGE])
@pytest.mark.parametrize("in_stream", [True, False])
async def test_bc53_an_unknown_version_means_a_new_list(
    server: ScriptedServer, reflector: Reflector[Pod], problem: dict[str, Any], in_stream: bool
) -> None:
    if in_stream:
        server.script("WATCH", PODS, LiveWatch(event("ERROR", problem)))
        state: Any = await watching(reflector)
    else:
        server.script("WATCH", PODS, reply(problem["code"], problem))
        state = Listed("10")
    state, outcome = await reflector.step(state)
    assert state == Empty()
    assert isinstance(outcome, Failed)
    assert isinstance(outcome.error, Gone)


async def test_events_before_an_error_are_not_lost(server: ScriptedServer, reflector: Reflector[Pod]) -> None:
    live = LiveWatch()
    live.send_bytes(b"".join(_lines(event("ADDED", pod("a", 11)), event("ERROR", EXPIRED))))
    server.script("WATCH", PODS, live)
    state, outcome = await reflector.step(await watching(reflector))
    assert len(_events(outcome)) == 1
    state, outcome = await reflector.step(state)
    assert state == Empty()


async def test_a_version_that_is_refused_again_and_again_is_given_up(
    server: ScriptedServer, reflector: Reflector[Pod]
) -> None:
    state: Any = Listed("10")
    for refusals in range(REFUSALS):
        assert state == Listed("10", refusals)
        if refusals % 2:
            server.script("WATCH", PODS, status(500, "InternalError", "boom"))
        else:
            server.script("WATCH", PODS, LiveWatch(event("ERROR", {**_STATUS, "code": 500})))
            state, _ = await reflector.step(state)
        state, _ = await reflector.step(state)
    assert state == Empty()


async def test_a_busy_server_refuses_nothing(server: ScriptedServer, reflector: Reflector[Pod]) -> None:
    state: Any = Listed("10")
    for _ in range(REFUSALS + 1):
        server.script("WATCH", PODS, status(429, "TooManyRequests", "storage is (re)initializing", Retry_After="1"))
        state, _ = await reflector.step(state)
    assert state == Listed("10")


async def test_progress_forgives_refusals(server: ScriptedServer, reflector: Reflector[Pod]) -> None:
    live = LiveWatch(bookmark(11))
    server.script("WATCH", PODS, status(500, "InternalError"), live)
    state, _ = await reflector.step(Listed("10"))
    assert state == Listed("10", refusals=1)
    state, _ = await reflector.step(state)
    state, _ = await reflector.step(state)
    live.reset()
    state, _ = await reflector.step(state)
    assert state == Listed("11")


def _lines(*events: dict[str, Any]) -> list[bytes]:
    return [json.dumps(item).encode() + b"\n" for item in events]


def _events(outcome: Any) -> list[Any]:
    assert isinstance(outcome, Changed)
    return outcome.events
