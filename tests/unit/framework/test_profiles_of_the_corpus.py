"""Every profile of the parity corpus, against what kube-scheduler's verdicts say about the plugins that ran."""

from __future__ import annotations

from pathlib import Path

from kube_pyscheduler.config.load import load_profile
from kube_pyscheduler.framework.profile import build_profile
from tests.parity.corpus_files import read_cases
from tests.unit.framework.stub_plugins import REGISTRY

CORPUS = Path(__file__).parents[2] / "parity" / "corpus"


def test_the_plugins_that_ran_are_those_of_the_profile() -> None:
    count = 0
    for case in read_cases(CORPUS):
        if not case.get("profile"):
            continue
        profile = build_profile(load_profile(case["profile"]), REGISTRY)
        expected = case["expected"]
        filters = {plugin.name for plugin in profile.filter}
        assert {status["plugin"] for status in expected["filter"].values()} <= filters, case["id"]
        assert set(expected["prefilter_skip"]) <= {plugin.name for plugin in profile.pre_filter}, case["id"]
        if expected["feasible"] and "score_error" not in expected:
            scored = set(expected["scores"]) | set(expected.get("score_skip", ()))
            assert {plugin.name for plugin, _ in profile.score} <= scored, case["id"]
            assert set(expected["scores"]) <= {plugin.name for plugin, _ in profile.score}, case["id"]
        for plugin, weight in profile.score:
            assert all(score % weight == 0 for score in expected["scores"].get(plugin.name, {}).values()), case["id"]
        count += 1
    assert count > 200
