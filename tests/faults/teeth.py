"""Whether the storms bite: each planted defect must be seen in one of the first ``STORMS``.

Not collected with the other tests, as it takes minutes: ``make test-faults-teeth``.
"""

from __future__ import annotations

import pytest

from tests.faults.defects import DEFECTS
from tests.faults.storm import WRONG
from tests.faults.test_storm import play

STORMS = 60
"""Most defects show in the first."""


@pytest.mark.process
@pytest.mark.timeout(900)
@pytest.mark.parametrize("defect", DEFECTS)
def test_the_storms_show(defect: str) -> None:
    for seed in range(STORMS):
        played = play(seed, "--defect", defect)
        assert played.returncode in (0, WRONG), played.stderr
        if played.returncode:
            print(f"{defect}: seed {seed}: {played.stderr.splitlines()[0]}")
            return
    pytest.fail(f"{STORMS} storms did not show {defect}")
