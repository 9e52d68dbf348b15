from __future__ import annotations

import random

import pytest

from kube_pyscheduler.columns.node_table import INITIAL_CAPACITY, NodeTable
from kube_pyscheduler.columns.row_counts import RowCounts
from kube_pyscheduler.columns.topology import NOWHERE, Topologies, Topology
from tests.builders import make_info, make_node


def domains(table: NodeTable, topology: Topology) -> dict[str, set[str]]:
    """Which nodes are together, by one label value of each domain."""
    found: dict[int, set[str]] = {}
    for row, domain in enumerate(topology.domain[: table.high].tolist()):
        if domain != NOWHERE:
            found.setdefault(domain, set()).add(table.names[row])
    return {min(names): names for names in found.values()}


def expected(table: NodeTable, *, absent_is_empty: bool) -> dict[str, set[str]]:
    by_value: dict[str, set[str]] = {}
    for node in table.nodes:
        if node is not None:
            value = node.metadata.labels.get("zone", "" if absent_is_empty else None)
            if value is not None:
                by_value.setdefault(value, set()).add(node.name)
    return {min(names): names for names in by_value.values()}


@pytest.mark.parametrize("absent_is_empty", [False, True])
def test_domains_follow_the_nodes(absent_is_empty: bool) -> None:
    rng = random.Random(11)
    table = NodeTable()
    topologies = table.attached(Topologies)
    for step in range(1500):
        name = f"n{rng.randrange(2 * INITIAL_CAPACITY)}"
        kind = rng.random()
        if kind < 0.5:
            table.set_node(make_node(name, labels={"zone": rng.choice(["a", "b", "c", ""])}))
        elif kind < 0.6:
            table.set_node(make_node(name))
        elif kind < 0.9:
            table.remove_node(name)
        else:
            table.add_pod(make_info(f"p{step}"), name)
        if step % 7 == 0:
            topology = topologies.get("zone", absent_is_empty=absent_is_empty)
            wanted = expected(table, absent_is_empty=absent_is_empty)
            assert domains(table, topology) == wanted
            assert topology.domain_count == len(wanted)
            assert topology.inside == sum(map(len, wanted.values()))
            assert len(topology.domain) == table.capacity


def test_domains_of_nodes_that_come_and_go_are_used_again() -> None:
    table = NodeTable()
    topologies = table.attached(Topologies)
    for number in range(100):
        table.set_node(make_node(f"n{number}", labels={"zone": f"zone-{number}"}))
        assert topologies.get("zone").domain_count == 1
        table.remove_node(f"n{number}")
        topologies.get("zone")
    assert topologies.get("zone").size == 2


def test_the_version_grows_with_the_domains_alone() -> None:
    table = NodeTable()
    table.set_node(make_node("n", labels={"zone": "a"}))
    topology = table.attached(Topologies).get("zone")
    before = topology.version
    table.set_node(make_node("n", labels={"zone": "a", "disk": "ssd"}))
    assert table.attached(Topologies).get("zone").version == before
    table.set_node(make_node("n", labels={"zone": "b"}))
    assert table.attached(Topologies).get("zone").version > before


def test_sums_leave_out_rows_that_are_not_eligible() -> None:
    table = NodeTable()
    for name, zone in (("n1", "a"), ("n2", "a"), ("n3", "b")):
        table.set_node(make_node(name, labels={"zone": zone}))
    table.set_node(make_node("n4"))
    counts = RowCounts()
    for name, amount in (("n1", 1), ("n2", 2), ("n3", 4), ("n4", 8)):
        counts.change(table.row_of[name], amount)
    topology = table.attached(Topologies).get("zone")
    of = {name: int(topology.domain[table.row_of[name]]) for name in ("n1", "n3")}
    sums = topology.sums(counts)
    assert (sums[of["n1"]], sums[of["n3"]]) == (3, 4)
    eligible = table.alive.copy()
    eligible[table.row_of["n2"]] = False
    assert topology.sums(counts, eligible)[of["n1"]] == 1
