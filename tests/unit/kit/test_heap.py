"""KeyedHeap: order, keys, and no growth."""

from __future__ import annotations

import random

from kube_pyscheduler.kit.heap import SLACK, KeyedHeap


def test_pops_the_smallest_rank_first_and_equals_in_order_of_arrival() -> None:
    heap: KeyedHeap[str, str] = KeyedHeap()
    for key, rank in (("a", 2), ("b", 1), ("c", 2), ("d", 1)):
        heap.push(key, rank, key.upper())
    assert [heap.pop() for _ in range(4)] == ["B", "D", "A", "C"]
    assert heap.pop() is None
    assert heap.peek() is None


def test_pushing_a_known_key_replaces_and_ranks_anew() -> None:
    heap: KeyedHeap[str, str] = KeyedHeap()
    heap.push("a", 1, "old")
    heap.push("b", 2, "b")
    heap.push("a", 3, "new")
    assert len(heap) == 2
    assert heap.get("a") == "new"
    assert [heap.pop(), heap.pop(), heap.pop()] == ["b", "new", None]


def test_removed_items_are_gone_everywhere() -> None:
    heap: KeyedHeap[str, str] = KeyedHeap()
    heap.push("a", 1, "a")
    heap.push("b", 2, "b")
    assert heap.remove("a") == "a"
    assert heap.remove("a") is None
    assert "a" not in heap
    assert list(heap) == ["b"]
    assert heap.peek() == "b"


def test_dead_entries_do_not_pile_up() -> None:
    heap: KeyedHeap[int, int] = KeyedHeap()
    heap.push(-1, -1, -1)
    for number in range(10_000):
        heap.push(0, number, number)
    assert len(heap._entries) <= 2 * len(heap) + SLACK + 1
    for number in range(1, 1000):
        heap.push(number, number, number)
    for number in range(1, 1000):
        heap.remove(number)
    assert len(heap._entries) <= 2 * len(heap) + SLACK + 1
    assert [heap.pop(), heap.pop()] == [-1, 9999]


def test_agrees_with_a_sorted_list() -> None:
    rng = random.Random(7)
    heap: KeyedHeap[int, int] = KeyedHeap()
    model: dict[int, tuple[int, int]] = {}
    for step in range(5000):
        key = rng.randrange(50)
        match rng.randrange(3):
            case 0:
                rank = rng.randrange(10)
                heap.push(key, rank, key)
                model[key] = (rank, step)
            case 1:
                assert heap.remove(key) == (key if model.pop(key, None) else None)
            case _:
                expected = min(model, key=model.__getitem__, default=None)
                assert heap.pop() == expected
                if expected is not None:
                    del model[expected]
        assert len(heap) == len(model)
