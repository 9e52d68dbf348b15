from collections.abc import Callable
from typing import Any

import pytest

from kube_pyscheduler.kit.clock import FakeClock
from kube_pyscheduler.transport.binding import LOOKS, PATIENCE, Fate, bind_pod
from kube_pyscheduler.transport.client import DEADLINE, Client
from kube_pyscheduler.transport.errors import APIError, Conflict, Forbidden, MayNotWrite, NetworkError, ServerError
from kube_pyscheduler.transport.requests import Request
from kube_pyscheduler.transport.session import Session
from tests.unit.scripted_server import ScriptedServer, drop, reply, session_to, status

POD = "/api/v1/namespaces/ns/pods/p"
BINDING = f"{POD}/binding"
LOST = [drop, status(500, "InternalError", "etcdserver: request timed out"), status(504, "Timeout")]
LOST_NAMES = ["dropped", "500", "504"]


def _pod(node: str | None = None, uid: str = "uid-1", *, deleted: str | None = None, **spec: Any) -> Any:
    metadata = {"name": "p", "namespace": "ns", "uid": uid, "deletionTimestamp": deleted}
    return reply(200, {"metadata": metadata, "spec": {"nodeName": node, **spec}})


async def _bind(client: Session | Client, is_free: Callable[[], bool] = lambda: True) -> Fate:
    """In as much time as the pauses between the requests add up to."""
    client = client if isinstance(client, Client) else Client(client)
    clock = FakeClock()

    async def sleep(delay: float) -> None:
        clock.advance(delay)

    return await bind_pod(
        client, namespace="ns", name="p", uid="uid-1", node="n1", is_free=is_free, clock=clock, sleep=sleep
    )


async def test_a_binding_is_one_request(server: ScriptedServer, session: Session) -> None:
    server.script("POST", BINDING, reply(201, {}))
    assert await _bind(session) is Fate.BOUND
    assert len(server.seen) == 1


@pytest.mark.parametrize("lost", LOST, ids=LOST_NAMES)
async def test_bc43_a_lost_answer_to_a_binding_that_happened(
    server: ScriptedServer, session: Session, lost: Any
) -> None:
    server.script("POST", BINDING, lost)
    server.script("GET", POD, status(503, "ServiceUnavailable"), _pod("n1"))
    assert await _bind(session) is Fate.BOUND
    assert server.count("POST", BINDING) == 1


@pytest.mark.parametrize("lost", LOST, ids=LOST_NAMES)
async def test_bc43_a_lost_answer_to_a_binding_that_did_not_happen(
    server: ScriptedServer, session: Session, lost: Any
) -> None:
    server.script("POST", BINDING, lost, reply(201, {}))
    server.script("GET", POD, status(503, "ServiceUnavailable"), _pod())
    assert await _bind(session) is Fate.BOUND
    assert [seen.method for seen in server.seen] == ["POST", "GET", "GET", "POST"]


async def test_a_second_try_may_be_lost_too(server: ScriptedServer, session: Session) -> None:
    server.script("POST", BINDING, drop, drop)
    server.script("GET", POD, _pod(), _pod("n1"))
    assert await _bind(session) is Fate.BOUND
    assert [seen.method for seen in server.seen] == ["POST", "GET", "POST", "GET"]


async def test_a_node_that_others_filled_meanwhile_is_not_tried_again(server: ScriptedServer, session: Session) -> None:
    server.script("POST", BINDING, drop)
    server.script("GET", POD, _pod())
    with pytest.raises(NetworkError):
        await _bind(session, is_free=lambda: False)
    assert server.count("POST", BINDING) == 1


async def test_a_server_that_is_away_too_long_finds_no_old_decisions(server: ScriptedServer, session: Session) -> None:
    server.script("POST", BINDING, drop)
    server.script("GET", POD, *[status(503, "ServiceUnavailable")] * int(PATIENCE), _pod())
    with pytest.raises(NetworkError):
        await _bind(session)
    assert server.count("POST", BINDING) == 1


@pytest.mark.parametrize("answer", [drop, status(409, "Conflict", "the pod is not as it was")])
@pytest.mark.parametrize(
    ("found", "fate"),
    [
        (_pod("n1"), Fate.BOUND),
        (_pod("n2"), Fate.ELSEWHERE),
        (_pod("n1", uid="uid-2"), Fate.GONE),
        (_pod(deleted="2026-01-01T00:00:00Z"), Fate.GONE),
        (_pod(schedulingGates=[{"name": "hold"}]), Fate.GATED),
        (status(404, "NotFound"), Fate.GONE),
    ],
    ids=["here", "elsewhere", "successor", "terminating", "gated", "deleted"],
)
async def test_bc44_a_refusal_or_lost_answer_is_explained_by_the_pod(
    server: ScriptedServer, session: Session, answer: Any, found: Any, fate: Fate
) -> None:
    server.script("POST", BINDING, answer)
    server.script("GET", POD, found, found)
    assert await _bind(session) is fate
    assert server.count("POST", BINDING) == 1


@pytest.mark.parametrize("odd", [status(404, "NotFound"), reply(200, b"<html>"), reply(200, {"metadata": {}})])
async def test_one_odd_answer_to_a_look_is_not_believed(server: ScriptedServer, session: Session, odd: Any) -> None:
    server.script("POST", BINDING, drop)
    server.script("GET", POD, odd, _pod("n1"))
    assert await _bind(session) is Fate.BOUND
    assert server.count("POST", BINDING) == 1


async def test_an_unexplained_conflict_is_handed_on(server: ScriptedServer, session: Session) -> None:
    server.script("POST", BINDING, status(409, "Conflict", "try again"))
    server.script("GET", POD, _pod())
    with pytest.raises(Conflict, match="try again"):
        await _bind(session)


async def test_a_pod_that_is_gone(server: ScriptedServer, session: Session) -> None:
    server.script("POST", BINDING, status(404, "NotFound"))
    assert await _bind(session) is Fate.GONE


async def test_only_the_server_knows_so_it_is_asked_until_it_answers(server: ScriptedServer, session: Session) -> None:
    server.script("POST", BINDING, drop)
    silence = [drop, status(503, "ServiceUnavailable"), status(429, "TooManyRequests"), status(403, "Forbidden")]
    server.script("GET", POD, *silence * (LOOKS - 1), _pod("n1"))
    assert await _bind(session) is Fate.BOUND
    assert server.count("GET", POD) == len(silence) * (LOOKS - 1) + 1


async def test_who_may_not_look_at_the_pod_does_not_go_on_asking(server: ScriptedServer, session: Session) -> None:
    server.script("POST", BINDING, drop)
    server.script("GET", POD, *[status(403, "Forbidden")] * LOOKS)
    with pytest.raises(Forbidden):
        await _bind(session)
    assert server.count("GET", POD) == LOOKS


@pytest.mark.parametrize("again", [403, 500])
async def test_a_refusal_is_believed_the_second_time(server: ScriptedServer, session: Session, again: int) -> None:
    server.script("POST", BINDING, status(403, "Forbidden", "not yet"), status(again, "", "never"))
    server.script("GET", POD, _pod(), _pod())
    with pytest.raises((Forbidden, ServerError), match="never"):
        await _bind(session)
    assert server.count("POST", BINDING) == 2


async def test_a_server_that_has_just_started_refuses_everything(server: ScriptedServer, session: Session) -> None:
    refusal = status(403, "Forbidden")
    server.script("POST", BINDING, refusal, reply(201, {}))
    server.script("GET", POD, refusal, refusal, _pod())
    assert await _bind(session) is Fate.BOUND


@pytest.mark.parametrize("code", [400, 422])
async def test_what_is_wrong_stays_wrong(server: ScriptedServer, session: Session, code: int) -> None:
    server.script("POST", BINDING, status(code, "Invalid", "no such field"))
    with pytest.raises(APIError, match="no such field"):
        await _bind(session)
    assert len(server.seen) == 1


async def test_what_was_never_sent_needs_no_look_and_is_sent_for_a_while(server: ScriptedServer) -> None:
    async with session_to("http://127.0.0.1:1") as nowhere, session_to(server.url) as session:
        tries = 0

        class Unreliable(Client):
            async def send(self, request: Request, *, deadline: float = DEADLINE) -> bytes:
                nonlocal tries
                tries += 1
                return await Client(nowhere if tries < 4 else session).send(request, deadline=deadline)

        server.script("POST", BINDING, reply(201, {}))
        assert await _bind(Unreliable(session)) is Fate.BOUND
        assert len(server.seen) == 1
        with pytest.raises(NetworkError) as caught:
            await _bind(nowhere)
    assert not caught.value.sent


async def test_who_may_not_write_does_not_try_again(server: ScriptedServer, session: Session) -> None:
    with pytest.raises(MayNotWrite):
        await _bind(Client(session, may_write=lambda: False))
    assert server.seen == []
