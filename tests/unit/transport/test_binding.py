from typing import Any

import pytest

from kube_pyscheduler.transport.binding import LOOKS, bind_pod
from kube_pyscheduler.transport.client import Client
from kube_pyscheduler.transport.errors import Conflict, Forbidden, NetworkError, NotFound, ServerError
from kube_pyscheduler.transport.session import Session
from tests.unit.scripted_server import ScriptedServer, Sleeps, drop, reply, status

POD = "/api/v1/namespaces/ns/pods/p"
BINDING = f"{POD}/binding"
LOST = [drop, status(500, "InternalError", "etcdserver: request timed out"), status(504, "Timeout")]
LOST_NAMES = ["dropped", "500", "504"]


def _pod(node: str | None, uid: str = "uid-1") -> Any:
    return reply(200, {"metadata": {"name": "p", "namespace": "ns", "uid": uid}, "spec": {"nodeName": node}})


async def _bind(session: Session) -> None:
    await bind_pod(Client(session), namespace="ns", name="p", uid="uid-1", node="n1", sleep=Sleeps())


async def test_a_binding_is_one_request(server: ScriptedServer, session: Session) -> None:
    server.script("POST", BINDING, reply(201, {}))
    await _bind(session)
    assert len(server.seen) == 1


@pytest.mark.parametrize("lost", LOST, ids=LOST_NAMES)
async def test_bc43_a_lost_answer_to_a_binding_that_happened(
    server: ScriptedServer, session: Session, lost: Any
) -> None:
    server.script("POST", BINDING, lost)
    server.script("GET", POD, drop, _pod("n1"))
    await _bind(session)
    assert server.count("POST", BINDING) == 1


@pytest.mark.parametrize("lost", LOST, ids=LOST_NAMES)
async def test_bc43_a_lost_answer_to_a_binding_that_did_not_happen(
    server: ScriptedServer, session: Session, lost: Any
) -> None:
    server.script("POST", BINDING, lost)
    server.script("GET", POD, _pod(None))
    with pytest.raises((NetworkError, ServerError)):
        await _bind(session)
    assert server.count("POST", BINDING) == 1


async def test_a_lost_answer_and_somebody_elses_binding(server: ScriptedServer, session: Session) -> None:
    server.script("POST", BINDING, drop)
    server.script("GET", POD, _pod("n2"))
    with pytest.raises(Conflict, match="already assigned to node n2"):
        await _bind(session)


async def test_a_lost_answer_and_a_lost_pod(server: ScriptedServer, session: Session) -> None:
    server.script("POST", BINDING, drop)
    server.script("GET", POD, status(404, "NotFound"))
    with pytest.raises(NotFound):
        await _bind(session)


async def test_a_lost_answer_and_another_pod_of_that_name(server: ScriptedServer, session: Session) -> None:
    server.script("POST", BINDING, drop)
    server.script("GET", POD, _pod("n1", uid="uid-2"))
    with pytest.raises(NetworkError):
        await _bind(session)


async def test_the_pod_is_looked_at_a_few_times_only(server: ScriptedServer, session: Session) -> None:
    server.script("POST", BINDING, drop)
    server.script("GET", POD, *[status(503, "ServiceUnavailable")] * LOOKS)
    with pytest.raises(ServerError):
        await _bind(session)
    assert server.count("GET", POD) == LOOKS


async def test_bc44_already_assigned_elsewhere(server: ScriptedServer, session: Session) -> None:
    server.script("POST", BINDING, status(409, "Conflict", 'pod p is already assigned to node "n2"'))
    server.script("GET", POD, _pod("n2"))
    with pytest.raises(Conflict, match='already assigned to node "n2"'):
        await _bind(session)


async def test_already_assigned_where_we_wanted_it(server: ScriptedServer, session: Session) -> None:
    server.script("POST", BINDING, status(409, "Conflict", 'pod p is already assigned to node "n1"'))
    server.script("GET", POD, _pod("n1"))
    await _bind(session)


async def test_a_refusal_needs_no_look(server: ScriptedServer, session: Session) -> None:
    server.script("POST", BINDING, status(403, "Forbidden", "namespace is being terminated"))
    with pytest.raises(Forbidden):
        await _bind(session)
    assert len(server.seen) == 1
