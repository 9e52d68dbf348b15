from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from kube_pyscheduler.devserver.controllers.environment import Settings
from tests.devserver_controllers.cluster import Cluster, running_cluster


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    """Two nodes and every controller, with the default delays."""
    async with running_cluster(Settings()) as running:
        yield running
