"""The API behaviour that the daemon relies on, tested through its own transport.

With KUBECONFIG the tests run on that cluster, in a namespace and with node objects of their own that they remove again;
without it on the embedded development server.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kube_pyscheduler.devserver.app import serve
from kube_pyscheduler.kit.clock import RealClock
from kube_pyscheduler.transport.client import Client
from kube_pyscheduler.transport.credentials import Access, Credentials, Source
from kube_pyscheduler.transport.session import Session
from tests.contract.cluster import Cluster


@pytest.fixture
def kubeconfig(request: pytest.FixtureRequest) -> str:
    """KUBECONFIG, but only when nothing except contract tests was asked for: a run of the whole suite must not touch a
    cluster that happens to be the shell's."""
    here = Path(__file__).parent
    asked = [Path(argument.partition("::")[0]).resolve() for argument in request.config.args]
    return os.environ.get("KUBECONFIG", "") if all(path.is_relative_to(here) for path in asked) else ""


@pytest.fixture
async def credentials(kubeconfig: str) -> AsyncIterator[Credentials]:
    if kubeconfig:
        yield await Credentials.read(Source(kubeconfig))
        return
    server = await serve(rbac=True, bookmark_seconds=1.0)
    # A server that has been running for a while no longer knows its first versions.
    server.store.compact()
    access = Access(server=server.url, authorization=f"Bearer {server.token}")
    yield Credentials(Source(), access, RealClock())
    await server.stop()


@pytest.fixture
async def session(credentials: Credentials) -> AsyncIterator[Session]:
    async with Session(credentials, user_agent="kube-pyscheduler-contract") as opened:
        yield opened


@pytest.fixture
async def client(session: Session) -> Client:
    return Client(session)


@pytest.fixture
async def cluster(client: Client) -> AsyncIterator[Cluster]:
    cluster = Cluster(client, f"contract-{uuid.uuid4().hex[:10]}")
    await cluster.open()
    yield cluster
    await cluster.close()


@pytest.fixture
async def node(cluster: Cluster) -> str:
    return await cluster.create_node()


@pytest.fixture
async def pod(cluster: Cluster) -> dict[str, Any]:
    return await cluster.create_pod("p")
