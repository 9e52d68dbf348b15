"""The node table: rows, charges, growth, what-ifs."""

from __future__ import annotations

import random

import numpy as np
import pytest

from kube_pyscheduler.columns.node_table import INITIAL_CAPACITY, NodeTable
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.columns.row_log import KEEP, RowLog
from kube_pyscheduler.columns.vocabulary import ABSENT, LookupTable, Vocabulary
from kube_pyscheduler.columns.what_if import charges_of
from tests.builders import make_info, make_node


def test_a_row_is_freed_only_when_neither_node_nor_pod_needs_it() -> None:
    table = NodeTable()
    row = table.set_node(make_node("a"))
    pod = make_info("p", node="a")
    table.add_pod(pod, "a")
    table.remove_node("a")
    assert not table.alive[row]
    assert table.node_count == 0
    assert table.set_node(make_node("a")) == row
    assert table.requested[0, row] == 100
    table.remove_pod(pod, "a")
    table.remove_node("a")
    assert table.row_of == {}
    assert table.set_node(make_node("b")) == row


def test_absurd_amounts_wrap_around_without_a_word_and_can_be_taken_back() -> None:
    table = NodeTable()
    row = table.set_node(make_node("a"))
    pods = [make_info(f"p{number}", node="a", requests={"cpu": "9E", "memory": "9E"}) for number in range(3)]
    for pod in pods:
        table.add_pod(pod, "a")
    for pod in pods:
        table.remove_pod(pod, "a")
    assert table.requested[:, row].tolist() == [0] * len(table.requested)


def test_growing_keeps_everything() -> None:
    table = NodeTable()
    table.label_column("zone")
    for number in range(INITIAL_CAPACITY + 1):
        table.set_node(
            make_node(f"n{number}", labels={"zone": f"z{number % 3}"}, taints=[{"key": "k", "effect": "NoSchedule"}])
        )
    assert table.capacity == 2 * INITIAL_CAPACITY
    assert table.layout == 1
    column = table.label_column("zone")
    assert [column.vocabulary.values[i] for i in column.ids[:4]] == ["z0", "z1", "z2", "z0"]
    assert set(column.ids[table.high :].tolist()) == {ABSENT}
    assert set(table.taint_set[: table.high].tolist()) == {0}
    assert table.allocatable[0, : table.high].tolist() == [4000] * table.high


def test_label_columns_follow_relabelling_and_removal() -> None:
    table = NodeTable()
    row = table.set_node(make_node("a", labels={"zone": "x"}))
    column = table.label_column("zone")
    assert column.vocabulary.values[column.ids[row]] == "x"
    table.set_node(make_node("a", labels={"zone": "y"}))
    assert column.vocabulary.values[column.ids[row]] == "y"
    table.remove_node("a")
    assert column.ids[row] == ABSENT


def test_a_resource_that_appears_late_gets_a_column() -> None:
    table = NodeTable()
    row = table.set_node(make_node("a", allocatable={"example.com/gpu": "8"}))
    table.add_pod(make_info("p", node="a", requests={"example.com/gpu": "2", "example.com/fpga": "1"}), "a")
    assert table.allocatable[table.resource_row("example.com/gpu"), row] == 8
    assert table.requested[table.resource_row("example.com/gpu"), row] == 2
    assert table.requested[table.resource_row("example.com/fpga"), row] == 1
    assert table.allocatable[table.resource_row("example.com/fpga"), row] == 0


def test_names_that_are_no_resources_of_the_scheduler_are_not_counted() -> None:
    table = NodeTable()
    table.set_node(make_node("a", allocatable={"nonsense": "8", "attachable-volumes-x": "3", "hugepages-2Mi": "4Mi"}))
    assert set(table.resources.values) == {
        "cpu",
        "memory",
        "ephemeral-storage",
        "attachable-volumes-x",
        "hugepages-2Mi",
    }


def test_what_if_leaves_no_trace() -> None:
    table = NodeTable()
    row = table.set_node(make_node("a"))
    there = make_info("there", node="a", containers=[{"name": "c", "ports": [{"hostPort": 80}]}])
    table.add_pod(there, "a")
    before = (table.requested.copy(), table.nonzero_requested.copy(), table.pod_count.copy(), table.usage.position)
    with table.what_if(np.array([row])) as change:
        change.remove(charges_of([(row, [there])], table.resources))
        change.add(charges_of([(row, [make_info("new", requests={"cpu": "3"})])], table.resources))
        assert table.requested[0, row] == 3000
        assert table.host_ports.rows_using("TCP", 80) == {}
    assert np.array_equal(table.requested, before[0])
    assert np.array_equal(table.nonzero_requested, before[1])
    assert np.array_equal(table.pod_count, before[2])
    assert table.usage.position == before[3]
    assert list(table.pods[row]) == [there.uid]
    assert table.host_ports.rows_using("TCP", 80) == {row: {"0.0.0.0": 1}}


def test_a_shared_host_port_is_free_without_one_of_its_holders_while_that_is_thought() -> None:
    table = NodeTable()
    row = table.set_node(make_node("a"))
    containers = [{"name": "c", "ports": [{"hostPort": 80}]}]
    one, other = (make_info(name, node="a", containers=containers) for name in ("one", "other"))
    table.add_pod(one, "a")
    table.add_pod(other, "a")
    with table.what_if(np.array([row])) as change:
        change.remove(charges_of([(row, [one])], table.resources))
        assert table.host_ports.rows_using("TCP", 80) == {}
        change.add(charges_of([(row, [one])], table.resources))
        assert table.host_ports.rows_using("TCP", 80) == {row: {"0.0.0.0": 1}}
        change.remove(charges_of([(row, [one, other])], table.resources))
    assert table.host_ports.rows_using("TCP", 80) == {row: {"0.0.0.0": 2}}


def test_node_info_is_made_anew_after_a_write() -> None:
    table = NodeTable()
    row = table.set_node(make_node("a"))
    first = table.node_info(row)
    assert table.node_info(row) is first
    table.add_pod(make_info("p", node="a"), "a")
    assert table.node_info(row).requested["cpu"] == 100
    table.remove_node("a")
    with pytest.raises(LookupError):
        table.node_info(row)


def test_bc_10_a_node_made_again_smaller_never_shows_its_old_size() -> None:
    rng = random.Random(7)
    table = NodeTable()
    for _ in range(1000):
        table.set_node(make_node("n1", allocatable={"cpu": "8"}))
        for number in range(rng.randrange(4)):
            table.set_node(make_node(f"other{number}"))
        seen = table.facts.position
        table.remove_node("n1")
        row = table.set_node(make_node("n1", allocatable={"cpu": "1"}))
        dirty = table.facts.since(seen)
        assert dirty is not None
        assert row in dirty
        assert table.allocatable[0, row] == 1000


class Counter:
    """Counts pods by row, as told."""

    def __init__(self) -> None:
        self.rows: dict[int, list[PodInfo]] = {}

    def pod_added(self, row: int, info: PodInfo) -> None:
        self.rows.setdefault(row, []).append(info)

    def pod_removed(self, row: int, info: PodInfo) -> None:
        self.rows[row].remove(info)


def test_watchers_hear_of_every_pod_but_not_of_what_ifs() -> None:
    table = NodeTable()
    first = make_info("first", node="a")
    row = table.add_pod(first, "a")
    counter = Counter()
    table.watch_pods(counter)
    second = make_info("second", node="a")
    table.add_pod(second, "a")
    newer = make_info("second", node="a", labels={"x": "y"})
    table.swap_pod(newer, "a")
    with table.what_if(np.array([row])) as change:
        change.remove(charges_of([(row, [first])], table.resources))
    assert counter.rows[row] == [first, newer]
    table.remove_pod(newer, "a")
    assert counter.rows[row] == [first]


def test_a_log_tells_the_distinct_rows_since_a_position() -> None:
    log = RowLog()
    for row in (3, 1, 3):
        log.append(row)
    seen = log.position
    log.append(2)
    assert log.since(0) is not None
    assert sorted(log.since(0).tolist()) == [1, 2, 3]  # type: ignore[union-attr]
    assert log.since(seen).tolist() == [2]  # type: ignore[union-attr]
    assert log.since(log.position).tolist() == []  # type: ignore[union-attr]


def test_a_log_forgets_and_says_so() -> None:
    log = RowLog()
    for row in range(2 * KEEP + 1):
        log.append(row % 7)
    assert log.since(0) is None
    assert log.since(log.position - 1) is not None


def test_lookup_tables_grow_with_their_vocabulary() -> None:
    words: Vocabulary[str] = Vocabulary()
    words.intern("a")
    lengths = LookupTable(words, len, -5, np.int64)
    assert lengths.take(np.array([0, ABSENT], dtype=np.int32)).tolist() == [1, -5]
    words.intern("four")
    assert lengths.take(np.array([1, 0, ABSENT], dtype=np.int32)).tolist() == [4, 1, -5]
    assert words.lookup("unknown") == ABSENT
    assert len(words) == 2
