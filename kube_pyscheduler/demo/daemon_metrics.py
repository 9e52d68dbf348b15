"""What the daemon says about itself on its metrics page."""

from __future__ import annotations

import re
from dataclasses import dataclass

import aiohttp

_SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{.*\})? (\S+)$", re.MULTILINE)
_ATTEMPTS = "scheduler_schedule_attempts_total"
_ALGORITHM = "scheduler_scheduling_algorithm_duration_seconds"
_E2E = "scheduler_pod_scheduling_sli_duration_seconds"


@dataclass(frozen=True, slots=True)
class Numbers:
    """``decisions`` were made in ``deciding`` seconds. ``scheduled`` pods took ``latency`` seconds on the average from
    their appearance to their binding."""

    decisions: int
    deciding: float
    scheduled: int
    latency: float

    @property
    def decisions_a_second(self) -> float:
        return self.decisions / self.deciding if self.deciding else 0.0


def parse(text: str) -> Numbers:
    """From the text format of Prometheus; metrics that are missing count as 0."""
    sums: dict[str, float] = {}
    for name, value in _SAMPLE.findall(text):
        sums[name] = sums.get(name, 0.0) + float(value)
    scheduled = sums.get(f"{_E2E}_count", 0.0)
    return Numbers(
        decisions=int(sums.get(_ATTEMPTS, 0.0)),
        deciding=sums.get(f"{_ALGORITHM}_sum", 0.0),
        scheduled=int(scheduled),
        latency=sums.get(f"{_E2E}_sum", 0.0) / scheduled if scheduled else 0.0,
    )


async def read(http: aiohttp.ClientSession, url: str) -> Numbers:
    """Raises aiohttp.ClientError."""
    async with http.get(f"{url}/metrics") as response:
        response.raise_for_status()
        return parse(await response.text())


async def answers(http: aiohttp.ClientSession, url: str) -> bool:
    """Whether a GET of the URL is answered with 200."""
    try:
        async with http.get(url) as response:
            return response.status == 200
    except aiohttp.ClientError:
        return False
