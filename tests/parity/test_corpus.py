"""The corpus through one long-lived cache and engine: exact, and the same whatever came before."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from kube_pyscheduler.config.defaults import NOT_BUILT
from tests.parity.compare import differences
from tests.parity.corpus_files import Case, read_cases
from tests.parity.runner import Runner

CORPUS = Path(__file__).parent / "corpus"
FAMILIES = tuple(sorted(file.name.partition(".")[0] for file in CORPUS.glob("*.jsonl.gz")))
OF_DYNAMIC_RESOURCES = frozenset({"dra", "dra_extended"})
NOTHING_TO_DEALLOCATE = "no new claims to deallocate"


def what_is_built(expected: dict[str, Any]) -> dict[str, Any]:
    """Without what plugins that are not built yet would say; everything once all are."""
    if not NOT_BUILT:
        return expected
    kept = {key: value for key, value in expected.items() if key != "scores"}
    kept["scores"] = {plugin: scores for plugin, scores in expected["scores"].items() if plugin not in NOT_BUILT}
    if "DynamicResources" in NOT_BUILT:
        if any(expected["scores"].get("DynamicResources", {}).values()):
            del kept["totals"], kept["best"]
        said = expected.get("postfilter_message", "")
        for key in ("message", "message_full", "postfilter_message"):
            if said.startswith(NOTHING_TO_DEALLOCATE) and key in kept:
                rest = said.removeprefix(NOTHING_TO_DEALLOCATE).removeprefix(", ")
                kept[key] = kept[key].replace(said, rest).rstrip()
            elif said == "not found":
                # It fails where a PreFilter before its own ended the attempt, and keeps preemption from running.
                kept.pop(key, None)
        if not kept.get("postfilter_message", "-"):
            del kept["postfilter_message"]
    return kept


@pytest.mark.parametrize("family", [f for f in FAMILIES if f not in OF_DYNAMIC_RESOURCES])
def test_family_is_exact(family: str) -> None:
    results = list(Runner(seed=1).run(list(read_cases(CORPUS, family))))
    assert len(results) >= 60
    wrong = {}
    for result in results:
        differing = differences(what_is_built(result.case["expected"]), result.got)
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


def _dumped(value: Any) -> Any:
    """As in a dump: the order of keys does not count."""
    if isinstance(value, dict):
        return {key: _dumped(item) for key, item in sorted(value.items())}
    return value
