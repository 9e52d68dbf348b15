"""One storm: a cluster, faults and events by chance from a seed; then calm, and a look at what is left.

``PYTHONHASHSEED=0 python -m tests.faults.storm SEED --tell`` plays a storm again and tells what happens.
"""

from __future__ import annotations

import asyncio
import logging
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass

import click
import pytest

from tests.faults.checks import problems
from tests.faults.defects import DEFECTS
from tests.faults.life import Life
from tests.faults.scripts import Weather
from tests.faults.virtual_time import VirtualLoop, run
from tests.faults.world import Daemon, World, world

PATIENCE = 300.0
"""Seconds of calm after which everything must be as it should be: two audits, a confirmation that never comes, and the
longest pause of an informer have room in it."""

LOOK_PAUSE = 5.0
"""Seconds between two looks."""

WRONG = 3
"""Exit code of a storm that was played to its end and showed something wrong."""

Log = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """``pods`` are alive at a time. ``pause``: seconds between two steps, on average. ``rate``: the share of requests,
    and of what watches bring, that suffer. ``crashes``: how often the leader is killed."""

    seed: int
    nodes: int = 100
    pods: int = 500
    steps: int = 3000
    pause: float = 0.03
    rate: float = 0.1
    crashes: int = 2

    @property
    def daemons(self) -> int:
        """Every other storm has two, of which one leads."""
        return 1 + self.seed % 2


def play(plan: Plan, *, defect: str = "", log: Log | None = None) -> list[str]:
    """What was wrong in the storm or after it; nothing if all is well. ``defect``: planted into the product."""
    with pytest.MonkeyPatch.context() as patch:
        if defect:
            DEFECTS[defect](patch)
        return run(lambda loop: _storm(loop, plan, log), plan.seed)


async def _storm(loop: VirtualLoop, plan: Plan, log: Log | None) -> list[str]:
    rng = random.Random(plan.seed)
    async with world(loop, log=log) as here:
        before = asyncio.all_tasks()
        weathers = [Weather(random.Random(rng.random()), plan.rate) for _ in range(plan.daemons)]
        here.daemons = [Daemon(f"daemon-{n}", here, weather) for n, weather in enumerate(weathers)]
        life = Life(here, rng, nodes=plan.nodes, pods=plan.pods, daemons=here.daemons)
        for _ in range(plan.pods // 2):
            life.make_pod()
        supervisors = [asyncio.create_task(_supervise(here, daemon)) for daemon in here.daemons]
        fatal = {rng.randrange(plan.steps) for _ in range(plan.crashes)}
        for step in range(plan.steps):
            life.step()
            if step in fatal and (leader := here.leader) is not None:
                here.log(f"{leader.name} is killed")
                await leader.crash()
            await asyncio.sleep(rng.expovariate(1 / plan.pause))
        here.log("calm")
        for weather in weathers:
            weather.calm = True
        try:
            async with asyncio.timeout(PATIENCE):
                await life.end()
        except TimeoutError:
            here.violate("some scheduler does not get to know what happened")
        here.violations += await _await_peace(here)
        here.violations += await _audited(here)
        for supervisor in supervisors:
            supervisor.cancel()
        await asyncio.wait(supervisors)
        await _end(here, before)
        return here.violations


async def _supervise(here: World, daemon: Daemon) -> None:
    """Start it whenever it has ended, as a Deployment would."""
    while True:
        if daemon.has_ended:
            await daemon.start()
        await asyncio.sleep(1.0)
        outcome = daemon.outcome()
        if outcome is not None:
            here.log(f"{daemon.name} ended: {outcome!r}")
        if isinstance(outcome, BaseException):
            here.violate(f"{daemon.name} died of {outcome!r}")


async def _await_peace(here: World) -> list[str]:
    found = ["not looked yet"]
    for _ in range(int(PATIENCE / LOOK_PAUSE)):
        await asyncio.sleep(LOOK_PAUSE)
        found = problems(here)
        if not found:
            break
    return found


async def _audited(here: World) -> list[str]:
    """What the schedulers themselves find when they compare."""
    found = []
    for daemon in here.daemons:
        if daemon.scheduler is not None:
            found += [f"{daemon.name}: {difference}" for difference in await daemon.scheduler.audit.compare()]
    return found


async def _end(here: World, before: set[asyncio.Task[object]]) -> None:
    """Everybody leaves, and nobody may be left."""
    for daemon in here.daemons:
        code = await daemon.leave()
        if code != 0:
            here.violate(f"{daemon.name} left with {code}")
        await daemon.proxy.down()
    await asyncio.sleep(1.0)
    for task in asyncio.all_tasks() - before - {asyncio.current_task()}:
        here.violate(f"task {task.get_name()} is left over: {task.get_coro()!r}")


@click.command()
@click.argument("seed", type=int)
@click.option("--defect", default="", type=click.Choice(["", *DEFECTS]), help="Plant a defect.")
@click.option("--tell", is_flag=True, help="Tell everything that happens.")
def main(seed: int, defect: str, tell: bool) -> None:
    """Play the storm of SEED. Exits with 3 if something is wrong."""
    logging.disable()
    wrong = play(Plan(seed), defect=defect, log=click.echo if tell else None)
    for what in wrong:
        click.echo(what, err=True)
    sys.exit(WRONG if wrong else 0)


if __name__ == "__main__":
    main()
