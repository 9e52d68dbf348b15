import asyncio
import socket

import pytest

from kube_pyscheduler.objects.kinds import POD
from kube_pyscheduler.transport import requests
from kube_pyscheduler.transport.client import Client
from kube_pyscheduler.transport.errors import APIError, Conflict, NetworkError, ServerError, Silent, TooManyRequests
from kube_pyscheduler.transport.limiter import TokenBucket
from kube_pyscheduler.transport.session import Session
from tests.unit.scripted_server import LiveWatch, ScriptedServer, Sleeps, drop, reply, session_to, status

PODS = "/api/v1/pods"
BINDING = "/api/v1/namespaces/ns/pods/p/binding"
BIND = requests.bind_pod("ns", "p", "uid-1", "n1")


async def test_a_request_carries_what_the_server_needs(server: ScriptedServer) -> None:
    server.script("POST", BINDING, reply(201, {"kind": "Status", "status": "Success"}))
    async with session_to(server.url, authorization="Bearer secret") as session:
        body = await Client(session).send(BIND)
    assert b"Success" in body
    (seen,) = server.seen
    assert seen.headers["Authorization"] == "Bearer secret"
    assert seen.headers["Accept"] == seen.headers["Content-Type"] == "application/json"
    assert seen.headers["User-Agent"] == "test"
    assert "Accept-Encoding" not in seen.headers
    assert seen.body == {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "p", "namespace": "ns", "uid": "uid-1"},
        "target": {"kind": "Node", "name": "n1"},
    }


async def test_bc46_success_is_judged_by_the_http_code_alone(server: ScriptedServer, session: Session) -> None:
    server.script("POST", BINDING, reply(201, b"this is no JSON"))
    assert await Client(session).send(BIND) == b"this is no JSON"


async def test_quotes_stay_as_they_were_built(server: ScriptedServer, session: Session) -> None:
    server.script("GET", PODS, reply(200, {}))
    selector = "status.phase!=Succeeded,status.phase!=Failed"
    await Client(session).send(requests.list_page(POD, limit=500, continue_token="a+b/c=", field_selector=selector))
    assert server.seen[0].query == {"limit": "500", "continue": "a+b/c=", "fieldSelector": selector}


async def test_an_answer_that_is_no_is_an_error_with_the_status_text(server: ScriptedServer, session: Session) -> None:
    server.script("POST", BINDING, status(409, "Conflict", "pod p is already assigned to node n2"))
    with pytest.raises(Conflict, match="already assigned to node n2") as caught:
        await Client(session).send(BIND)
    assert (caught.value.code, caught.value.reason) == (409, "Conflict")


async def test_a_redirect_is_not_followed(server: ScriptedServer, session: Session) -> None:
    server.script("GET", PODS, reply(302, {}, Location="/elsewhere"))
    with pytest.raises(APIError) as caught:
        await Client(session).send(requests.list_page(POD))
    assert caught.value.code == 302


async def test_429_with_retry_after_is_sent_again_after_that_time(server: ScriptedServer, session: Session) -> None:
    server.script("POST", BINDING, status(429, "TooManyRequests", Retry_After="3"), reply(201, {}))
    sleeps = Sleeps()
    await Client(session, sleep=sleeps).send(BIND)
    assert sleeps.delays == [3.0]
    assert server.count("POST", BINDING) == 2


async def test_a_server_that_asks_for_no_pause_is_not_pressed(server: ScriptedServer, session: Session) -> None:
    no_pause = status(429, "TooManyRequests", Retry_After="0")
    server.script("POST", BINDING, *[no_pause] * 12, reply(201, {}))
    sleeps = Sleeps()
    await Client(session, sleep=sleeps).send(BIND)
    assert len(sleeps.delays) == 12
    assert sleeps.delays[0] >= 0.05
    assert min(sleeps.delays[6:]) >= 0.5


async def test_429_without_retry_after_is_the_callers(server: ScriptedServer, session: Session) -> None:
    server.script("POST", BINDING, status(429, "TooManyRequests"))
    with pytest.raises(TooManyRequests):
        await Client(session).send(BIND)


async def test_503_is_repeated_only_where_repeating_is_harmless(server: ScriptedServer, session: Session) -> None:
    client = Client(session, sleep=Sleeps())
    server.script("GET", PODS, status(503, "ServiceUnavailable", Retry_After="1"), reply(200, {}))
    assert await client.send(requests.list_page(POD)) == b"{}"
    server.script("POST", BINDING, status(503, "ServiceUnavailable", Retry_After="1"))
    with pytest.raises(ServerError):
        await client.send(BIND)
    assert server.count("POST", BINDING) == 1


async def test_waiting_longer_than_the_deadline_is_not_begun(server: ScriptedServer, session: Session) -> None:
    server.script("GET", PODS, status(429, "TooManyRequests", Retry_After="60"))
    sleeps = Sleeps()
    with pytest.raises(TooManyRequests) as caught:
        await Client(session, sleep=sleeps).send(requests.list_page(POD), deadline=30.0)
    assert caught.value.retry_after == 60.0
    assert sleeps.delays == []


async def test_a_broken_connection_may_have_done_it(server: ScriptedServer, session: Session) -> None:
    server.script("POST", BINDING, drop)
    with pytest.raises(NetworkError) as caught:
        await Client(session).send(BIND)
    assert caught.value.sent
    assert server.count("POST", BINDING) == 1


async def test_a_deadline_is_kept_and_may_have_done_it(server: ScriptedServer, session: Session) -> None:
    with pytest.raises(NetworkError) as caught:
        await Client(session).send(BIND, deadline=0.05)
    assert caught.value.sent


async def test_a_refused_connection_has_certainly_done_nothing() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        async with session_to(url) as session:
            with pytest.raises(NetworkError) as caught:
                await Client(session).send(BIND)
    assert not caught.value.sent


async def test_every_attempt_takes_a_token(server: ScriptedServer, session: Session) -> None:
    bucket = TokenBucket(1.0, 2, sleep=Sleeps())
    server.script("GET", PODS, status(429, "TooManyRequests", Retry_After="0"), reply(200, {}))
    await Client(session, limiter=bucket, sleep=Sleeps()).send(requests.list_page(POD))
    assert bucket.reserve() > 0


async def test_a_watch_is_read_event_by_event(server: ScriptedServer, session: Session) -> None:
    live = LiveWatch({"type": "ADDED", "object": {"a": 1}})
    server.script("WATCH", PODS, live)
    request = requests.watch(POD, version="7", timeout=300)
    stream = await Client(session).open_watch(request, idle=60.0)
    assert server.seen[0].query == {
        "watch": "1",
        "allowWatchBookmarks": "true",
        "resourceVersion": "7",
        "timeoutSeconds": "300",
    }
    assert [(event.type, bytes(event.object)) for event in await stream.read()] == [("ADDED", b'{"a": 1}')]
    live.end()
    assert await stream.read() == []
    stream.close()


async def test_a_refused_watch_is_an_error(server: ScriptedServer, session: Session) -> None:
    server.script("WATCH", PODS, status(403, "Forbidden", "pods is forbidden"))
    with pytest.raises(APIError, match="pods is forbidden"):
        await Client(session).open_watch(requests.watch(POD, version="7", timeout=300), idle=60.0)


async def test_a_silent_watch_breaks(server: ScriptedServer, session: Session) -> None:
    server.script("WATCH", PODS, LiveWatch())
    stream = await Client(session).open_watch(requests.watch(POD, version="7", timeout=300), idle=0.05)
    with pytest.raises(Silent):
        await stream.read()
    stream.close()


async def test_requests_are_not_held_up_by_open_watches(server: ScriptedServer, session: Session) -> None:
    client = Client(session)
    server.script("WATCH", PODS, *(LiveWatch() for _ in range(110)))
    request = requests.watch(POD, version="7", timeout=300)
    streams = await asyncio.gather(*(client.open_watch(request, idle=60.0) for _ in range(110)))
    server.script("POST", BINDING, reply(201, {}))
    await client.send(BIND)
    for stream in streams:
        stream.close()
