from __future__ import annotations

from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.engine.turns import Turns
from tests.builders import make_node, make_pod
from tests.clusters import Cluster

IN_TURNS = {"equalScores": "RoundRobin"}


def placed(cluster: Cluster, count: int, seed: int = 0) -> list[str | None]:
    return [cluster.schedule(make_pod(f"p{number}"), seed).node for number in range(count)]


def test_the_best_nodes_take_turns_by_name_from_the_last() -> None:
    cluster = Cluster([make_node(name) for name in ("n2", "n10", "n3", "n1")], profile=IN_TURNS)
    assert placed(cluster, 6) == ["n3", "n2", "n10", "n1", "n3", "n2"]
    assert placed(cluster, 2, seed=7) == ["n10", "n1"], "nothing is left to chance"


def test_without_turns_chance_decides() -> None:
    cluster = Cluster([make_node(f"n{number}") for number in range(8)])
    assert len({cluster.schedule(make_pod(), seed).node for seed in range(40)}) > 4
    assert len(set(placed(cluster, 5, seed=3))) == 1


def test_a_better_node_is_taken_out_of_turn_and_counts_as_one() -> None:
    nodes = [make_node("a"), make_node("b"), make_node("c", allocatable={"cpu": "64", "memory": "512Gi"})]
    cluster = Cluster(nodes, profile=IN_TURNS)
    assert placed(cluster, 2) == ["c", "c"]
    cluster.cache.remove_node(nodes[2])
    assert placed(cluster, 3) == ["b", "a", "b"]


def test_a_single_choice_takes_no_turn() -> None:
    nodes = [make_node("a", labels={"disk": "ssd"}), make_node("b")]
    cluster = Cluster(nodes, profile=IN_TURNS)
    assert placed(cluster, 1) == ["b"]
    assert cluster.schedule(make_pod(nodeSelector={"disk": "ssd"})).node == "a"
    assert placed(cluster, 1) == ["a"]


def test_nodes_that_come_and_go_find_their_place() -> None:
    table = NodeTable()
    turns = Turns(table)
    for name in ("b", "d"):
        table.set_node(make_node(name))
    names = [table.names[turns.choose(table.live_rows())] for _ in range(2)]
    table.remove_node("b")
    for name in ("c", "a"):
        table.set_node(make_node(name))
    names += [table.names[turns.choose(table.live_rows())] for _ in range(4)]
    assert names == ["d", "b", "a", "d", "c", "a"]
