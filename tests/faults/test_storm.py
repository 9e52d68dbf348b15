"""Random faults and random events, then calm: every pod that fits is bound, once; nothing is lost, stuck or left over.

``FAULT_SEEDS`` says how many storms are played; 10 unless it is set.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def play(seed: int, *options: str) -> subprocess.CompletedProcess[str]:
    """A process of its own, with a fixed order of sets: so that the same seed is the same storm everywhere."""
    command = [sys.executable, "-m", "tests.faults.storm", str(seed), *options]
    return subprocess.run(
        command, env={**os.environ, "PYTHONHASHSEED": "0"}, capture_output=True, text=True, check=False
    )


@pytest.mark.process
@pytest.mark.parametrize("seed", range(int(os.environ.get("FAULT_SEEDS", "10"))))
def test_after_the_storm_all_is_as_it_should_be(seed: int) -> None:
    played = play(seed)
    again = f"PYTHONHASHSEED=0 {sys.executable} -m tests.faults.storm {seed} --tell"
    assert played.returncode == 0, f"{played.stderr}\nSeed {seed}. To play it again: {again}"
