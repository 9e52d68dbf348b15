"""Worlds that are taken down after each test, with nothing left running."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.unit.scheduler.world import World

MakeWorld = Callable[..., World]


@pytest.fixture
async def make_world() -> AsyncIterator[MakeWorld]:
    worlds: list[World] = []

    def make(*args: Any, **more: Any) -> World:
        worlds.append(World(*args, **more))
        return worlds[-1]

    yield make
    for world in worlds:
        await world.scheduler.abort()
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.fixture
async def world(make_world: MakeWorld) -> World:
    return make_world()
