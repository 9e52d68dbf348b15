from collections.abc import AsyncIterator

import pytest

from kube_pyscheduler.transport.session import Session
from tests.unit.scripted_server import ScriptedServer, session_to


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer() as scripted:
        yield scripted


@pytest.fixture
async def session(server: ScriptedServer) -> AsyncIterator[Session]:
    async with session_to(server.url) as opened:
        yield opened
