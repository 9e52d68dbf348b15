from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator

import pytest

from kube_pyscheduler.devserver.controllers.environment import Settings
from tests.devserver_controllers.cluster import Cluster, running_cluster


@pytest.fixture(autouse=True)
def no_controller_crashed(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A controller's exception is logged, not raised; here it fails the test."""
    yield
    crashes = [r.getMessage() for r in caplog.get_records("call") if r.levelno >= logging.ERROR]
    assert crashes == []


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    """Two nodes and every controller, with the default delays."""
    async with running_cluster(Settings()) as running:
        yield running
