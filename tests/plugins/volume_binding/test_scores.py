from __future__ import annotations

from typing import Any

from tests.builders import make_node, make_pod
from tests.clusters import Cluster
from tests.storage import HOSTNAME, claim_volumes, make_claim, make_class, make_volume, put

EMPTY_FIRST = {"shape": [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]}


def difference(args: dict[str, Any]) -> int:
    """By how much a node with a volume of twice the size is better than one with a volume that fits exactly."""
    profile = {"pluginConfig": [{"name": "VolumeBinding", "args": args}]} if args else {}
    cluster = Cluster([make_node("n1"), make_node("n2")], profile=profile)
    exact = make_volume("exact", size="1Gi", nodes={HOSTNAME: ["n1"]})
    double = make_volume("double", size="2Gi", nodes={HOSTNAME: ["n2"]})
    put(cluster.cache.listers, make_class(), make_claim("c"), exact, double)
    totals = cluster.totals(make_pod(volumes=claim_volumes("c")))
    return totals["n2"] - totals["n1"]


def test_storage_is_scored_only_along_a_line() -> None:
    assert difference({}) == 0
    assert difference(EMPTY_FIRST) == 50


def test_a_pod_without_claims_is_not_scored() -> None:
    profile = {"pluginConfig": [{"name": "VolumeBinding", "args": EMPTY_FIRST}]}
    nodes = [make_node("n1"), make_node("n2")]
    assert Cluster(nodes, profile=profile).totals(make_pod()) == Cluster(nodes).totals(make_pod())


def test_without_its_pre_score_the_plugin_scores_as_with_it() -> None:
    profile = {
        "plugins": {"preScore": {"disabled": [{"name": "VolumeBinding"}]}},
        "pluginConfig": [{"name": "VolumeBinding", "args": EMPTY_FIRST}],
    }
    nodes = [make_node("n1"), make_node("n2")]
    assert Cluster(nodes, profile=profile).totals(make_pod()) == Cluster(nodes).totals(make_pod())
