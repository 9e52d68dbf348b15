"""Where we differ from kube-scheduler on purpose, as far as no other test pins it. See docs/differences.md."""

from __future__ import annotations

from kube_pyscheduler.config.defaults import V1_36_PLUGINS
from tests.builders import make_node, make_pod
from tests.clusters import Cluster
from tests.plugins.classic.test_plugins import AFFINITY, WEB, web, with_service


def test_every_node_is_judged_and_scored_whatever_the_percentage() -> None:
    cluster = Cluster([make_node(f"n{number}") for number in range(250)], profile={"percentageOfNodesToScore": 5})
    decision = cluster.schedule(make_pod())
    assert (decision.evaluated, decision.feasible) == (250, 250)


def test_the_best_of_all_nodes_is_always_found() -> None:
    nodes = [make_node(f"n{number}") for number in range(250)]
    best = make_node("best", allocatable={"cpu": "64", "memory": "256Gi"})
    cluster = Cluster([*nodes, best], profile={"percentageOfNodesToScore": 1})
    assert {cluster.schedule(make_pod(), seed).node for seed in range(20)} == {"best"}


def test_the_pods_of_a_service_follow_one_on_the_first_node_that_came() -> None:
    nodes = [make_node("late", labels={"region": "b"}), make_node("early", labels={"region": "a"})]
    pods = [web("2", "early"), web("1", "late")]
    assert with_service(Cluster(nodes, pods, AFFINITY), WEB).fit(web("p")) == {"late"}
    assert with_service(Cluster(nodes[::-1], pods, AFFINITY), WEB).fit(web("p")) == {"early"}


def test_the_classic_policies_are_off_by_default() -> None:
    profile = Cluster().profile
    used = {plugin.name for plugin in (*profile.filter, *(plugin for plugin, _weight in profile.score))}
    assert used <= {plugin.name for plugin in V1_36_PLUGINS}
