"""Plugins as users write them, from the public API alone, through the real profile and engine."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path

import numpy as np
import pytest

from kube_pyscheduler import api
from kube_pyscheduler.api import (
    CycleContext,
    Filter,
    NodeInfo,
    NodeScore,
    NodeTable,
    Normalize,
    Pod,
    PodInfo,
    Rows,
    Scope,
    Score,
    ScoreKernel,
    Scores,
    Status,
    error,
    unschedulable,
)
from kube_pyscheduler.config.load import load_profile
from kube_pyscheduler.framework.profile import build_profile
from kube_pyscheduler.plugins import IN_TREE
from tests.builders import make_node, make_pod
from tests.clusters import Cluster


class OnlyAtNight(Filter):
    name = "OnlyAtNight"

    def __init__(self, args: object) -> None: ...

    def filter(self, ctx: CycleContext, pod: Pod, node: NodeInfo) -> Status | None:
        if node.labels.get("power") == "solar" and pod.metadata.labels.get("load") == "heavy":
            return unschedulable("node(s) rest at night")
        return None


class Breaking(Filter):
    name = "Breaking"

    def __init__(self, args: object) -> None: ...

    def filter(self, ctx: CycleContext, pod: Pod, node: NodeInfo) -> Status | None:
        if node.name == "raises":
            raise RuntimeError("out of order")
        return error("no such quota") if node.name == "fails" else None


class Roomy(Score):
    name = "Roomy"
    normalize = Normalize.DEFAULT

    def __init__(self, args: object) -> None: ...

    def score(self, ctx: CycleContext, pod: Pod, node: NodeInfo) -> int:
        return node.allocatable["cpu"] - node.requested["cpu"]


class QuietKernel(ScoreKernel):
    rows_asked = 0

    def scores(self, table: NodeTable, rows: Rows) -> Scores:
        counts = table.pod_count[rows]
        QuietKernel.rows_asked += len(counts)
        return 100 - np.minimum(counts, 100)


class Quiet(NodeScore):
    name = "Quiet"
    scope = Scope.NODE

    def __init__(self, args: object) -> None: ...

    def fragment(self, pod: PodInfo) -> Hashable:
        return None

    def score_kernel(self, ctx: CycleContext, pod: PodInfo) -> ScoreKernel:
        return QuietKernel()


class OutOfBounds(Roomy):
    name = "OutOfBounds"
    normalize = Normalize.NONE


def cluster_with(plugin: type[api.Plugin], *nodes: str) -> Cluster:
    cluster = Cluster([make_node(name) for name in nodes])
    enabled = [{"name": "PrioritySort"}, {"name": "DefaultBinder"}, {"name": plugin.name}]
    multi_point = {"disabled": [{"name": "*"}], "enabled": enabled}
    config = load_profile({"plugins": {"multiPoint": multi_point}})
    cluster.profile = build_profile(config, {**IN_TREE, plugin.name: plugin})
    return cluster


def test_a_refusal_is_told_in_the_plugins_words() -> None:
    cluster = cluster_with(OnlyAtNight, "a")
    cluster.cache.set_node(make_node("sunny", labels={"power": "solar"}))
    heavy = make_pod(labels={"load": "heavy"})
    assert cluster.fit(heavy) == {"a"}
    assert cluster.fit(make_pod()) == {"a", "sunny"}
    cluster.cache.remove_node(make_node("a"))
    decision = cluster.schedule(heavy)
    assert decision.status.message == "0/1 nodes are available: 1 node(s) rest at night."
    assert decision.diagnosis is not None
    assert decision.diagnosis.unschedulable_plugins == {"OnlyAtNight"}


def test_scores_of_the_easy_form_are_normalised() -> None:
    cluster = cluster_with(Roomy, "a", "b")
    cluster.cache.set_pod(make_pod("there", node="b", requests={"cpu": "2"}))
    assert cluster.totals(make_pod()) == {"a": 100, "b": 50}


def test_a_node_scoped_kernel_is_asked_for_written_rows_only() -> None:
    cluster = cluster_with(Quiet, *(f"n{number}" for number in range(50)))
    cluster.fit(make_pod())
    QuietKernel.rows_asked = 0
    for number in range(10):
        info = PodInfo(make_pod(f"p{number}"))
        node = cluster.schedule(info.pod).node
        assert node is not None
        cluster.cache.assume(info, node)
    assert QuietKernel.rows_asked == 9
    assert len({cluster.cache.pod(f"uid-default-p{n}").node for n in range(10)}) == 10  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ("fails", 'running "Breaking" filter plugin: no such quota'),
        ("raises", """running "Breaking" filter plugin: RuntimeError('out of order')"""),
    ],
)
def test_an_error_or_an_exception_fails_the_attempt_and_nothing_else(
    node: str, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = cluster_with(Breaking, "fine", node)
    decision = cluster.schedule(make_pod())
    assert decision.node is None
    assert decision.status.code == api.Code.ERROR
    assert decision.status.message == message
    assert ("Traceback" in caplog.text) is (node == "raises")
    cluster.cache.remove_node(make_node(node))
    assert cluster.schedule(make_pod()).node == "fine"


def test_scores_outside_their_range_are_an_error_that_names_the_plugin() -> None:
    decision = cluster_with(OutOfBounds, "a", "b").schedule(make_pod())
    assert decision.status.code == api.Code.ERROR
    assert 'plugin "OutOfBounds" returns an invalid score 4000' in decision.status.message


def test_the_example_in_the_readme_is_the_plugin_tested_here() -> None:
    readme = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")
    assert 'return unschedulable("node(s) rest at night")' in readme
    assert set(api.__all__) == {name for name in vars(api) if not name.startswith("_")}
