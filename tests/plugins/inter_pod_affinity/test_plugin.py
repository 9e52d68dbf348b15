from __future__ import annotations

from typing import Any

import pytest

from tests.builders import make_info, make_node, make_pod
from tests.clusters import Cluster
from tests.plugins.pod_world import only

HOSTNAME = "kubernetes.io/hostname"
NODES = [make_node("n1"), make_node("n2")]


def required(operator: str = "In", kind: str = "podAffinity", value: str = "web") -> dict[str, Any]:
    term = {
        "topologyKey": HOSTNAME,
        "labelSelector": {"matchExpressions": [{"key": "app", "operator": operator, "values": [value]}]},
    }
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


@pytest.mark.parametrize(("weight", "scores"), [(5, {"n1": 100, "n2": 0}), (0, {"n1": 0, "n2": 0})])
def test_required_terms_of_pods_that_are_there_attract_by_the_configured_weight(
    weight: int, scores: dict[str, int]
) -> None:
    profile = only("InterPodAffinity", args={"hardPodAffinityWeight": weight})
    cluster = Cluster(NODES, [make_pod("a", node="n1", affinity=required())], profile)
    assert cluster.totals(make_pod("p", labels={"app": "web"})) == scores


def test_without_weight_they_do_not_even_score() -> None:
    profile = only("InterPodAffinity", args={"hardPodAffinityWeight": 0})
    cluster = Cluster(NODES, [make_pod("a", node="n1", affinity=required())], profile)
    cycle, _judged = cluster.engine.cycle(cluster.profile, make_info("p", labels={"app": "web"}))
    cycle.pre_filter()
    cycle.filter()
    cycle.score()
    assert cycle.scores() == []


def test_a_term_that_makes_no_sense_refuses_the_pod() -> None:
    cluster = Cluster(NODES, profile=only("InterPodAffinity"))
    message = cluster.schedule(make_pod("p", affinity=required("Near"))).status.message
    assert message == (
        '0/2 nodes are available: parsing pod: requiredAffinityTerms: "Near" is not a valid label selector operator.'
    )


def test_such_a_term_of_a_pod_that_is_there_says_nothing_and_its_other_terms_still_hold() -> None:
    terms = {**required("Near"), **required(kind="podAntiAffinity")}
    cluster = Cluster(NODES, [make_pod("a", node="n1", affinity=terms)], only("InterPodAffinity"))
    assert cluster.fit(make_pod("p", labels={"app": "web"})) == {"n2"}
    cluster.cache.remove_pod(make_pod("a").uid)
    assert cluster.fit(make_pod("p", labels={"app": "web"})) == {"n1", "n2"}


# The same as v1.36, though one might think otherwise.


def test_match_label_keys_are_left_to_the_api_server() -> None:
    affinity = required(kind="podAntiAffinity")
    affinity["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]["matchLabelKeys"] = ["hash"]
    cluster = Cluster(NODES, [make_pod("a", node="n1", labels={"app": "web", "hash": "old"})])
    assert cluster.fit(make_pod("p", labels={"app": "web", "hash": "new"}, affinity=affinity)) == {"n2"}


def test_terminating_pods_still_attract_and_repel() -> None:
    going = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    cluster = Cluster(NODES, [make_pod("a", node="n1", labels={"app": "web"}, metadata=going)])
    assert cluster.fit(make_pod("p", affinity=required())) == {"n1"}
    assert cluster.fit(make_pod("p", affinity=required(kind="podAntiAffinity"))) == {"n2"}
