from typing import Any

import pytest

from kube_pyscheduler.transport.binding import LOOKS, Fate, bind_pod
from kube_pyscheduler.transport.client import Client
from kube_pyscheduler.transport.errors import Conflict, Forbidden, NetworkError, ServerError
from kube_pyscheduler.transport.session import Session
from tests.unit.scripted_server import ScriptedServer, Sleeps, drop, reply, session_to, status

POD = "/api/v1/namespaces/ns/pods/p"
BINDING = f"{POD}/binding"
LOST = [drop, status(500, "InternalError", "etcdserver: request timed out"), status(504, "Timeout")]
LOST_NAMES = ["dropped", "500", "504"]


def _pod(node: str | None = None, uid: str = "uid-1", *, deleted: str | None = None, **spec: Any) -> Any:
    metadata = {"name": "p", "namespace": "ns", "uid": uid, "deletionTimestamp": deleted}
    return reply(200, {"metadata": metadata, "spec": {"nodeName": node, **spec}})


async def _bind(session: Session) -> Fate:
    return await bind_pod(Client(session), namespace="ns", name="p", uid="uid-1", node="n1", sleep=Sleeps())


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
    server.script("POST", BINDING, lost)
    server.script("GET", POD, _pod())
    with pytest.raises((NetworkError, ServerError)):
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
    server.script("GET", POD, found)
    assert await _bind(session) is fate
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


async def test_a_refusal_needs_no_look(server: ScriptedServer, session: Session) -> None:
    server.script("POST", BINDING, status(403, "Forbidden", "namespace is being terminated"))
    with pytest.raises(Forbidden):
        await _bind(session)
    assert len(server.seen) == 1


async def test_what_was_never_sent_needs_no_look() -> None:
    async with session_to("http://127.0.0.1:1") as session:
        with pytest.raises(NetworkError) as caught:
            await _bind(session)
    assert not caught.value.sent
