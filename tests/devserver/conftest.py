from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest

from kube_pyscheduler.devserver.app import DevServer, serve
from tests.devserver.api import Api


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10)) as opened:
        yield opened


@pytest.fixture
async def server() -> AsyncIterator[DevServer]:
    running = await serve()
    yield running
    await running.stop()


@pytest.fixture
def api(server: DevServer, session: aiohttp.ClientSession) -> Api:
    return Api(server, session)
