"""The corpus through one long-lived cache and engine: exact, and the same whatever came before."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.parity.compare import differences
from tests.parity.corpus_files import Case, read_cases
from tests.parity.runner import Runner

CORPUS = Path(__file__).parent / "corpus"
FAMILIES = tuple(sorted(file.name.partition(".")[0] for file in CORPUS.glob("*.jsonl.gz")))


@pytest.mark.parametrize("family", FAMILIES)
def test_family_is_exact(family: str) -> None:
    results = list(Runner(seed=1).run(list(read_cases(CORPUS, family))))
    assert len(results) >= 60
    wrong = {}
    for result in results:
        differing = differences(result.case["expected"], result.got)
        if differing:
            wrong[result.case["id"]] = differing
    assert wrong == {}


def test_the_order_of_cases_and_objects_changes_nothing() -> None:
    cases: list[Case] = list(read_cases(CORPUS))[::4]
    shuffled = list(cases)
    random.Random(5).shuffle(shuffled)
    first = {result.case["id"]: _dumped(result.got) for result in Runner(seed=3).run(cases)}
    second = {result.case["id"]: _dumped(result.got) for result in Runner(seed=4).run(shuffled)}
    assert len(first) == len(cases)
    assert first == second


def test_a_case_that_breaks_us_fails_and_the_others_are_run() -> None:
    good, other, *_ = read_cases(CORPUS, "node_name")
    broken_pod = {**good, "pod": {**good["pod"], "spec": "none"}}
    broken_world = {**good, "cluster": {"nodes": [{"metadata": {"name": 5}}]}}
    results = list(Runner().run([good, broken_pod, broken_world, other]))
    assert [bool(result.wrong) for result in results] == [False, True, True, False]
    assert not results[1].filter_exact


def _dumped(value: Any) -> Any:
    """As in a dump: the order of keys does not count."""
    if isinstance(value, dict):
        return {key: _dumped(item) for key, item in sorted(value.items())}
    return value
