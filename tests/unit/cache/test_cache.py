"""The cache: every transition of a pod, and what must not happen."""

from __future__ import annotations

import pytest

from kube_pyscheduler.cache.cache import CONFIRMATION_SECONDS, Cache
from kube_pyscheduler.cache.errors import CacheInvariantError
from tests.builders import make_info, make_node, make_pod


def cpu(cache: Cache, node: str) -> int:
    return int(cache.table.requested[0, cache.table.row_of[node]])


@pytest.fixture
def cache() -> Cache:
    cache = Cache()
    cache.set_node(make_node("a"))
    cache.set_node(make_node("b"))
    return cache


def test_assumed_then_confirmed_is_charged_once(cache: Cache) -> None:
    assumed = cache.assume(make_info("p"), "a")
    assert assumed.pod.spec.node_name == "a"
    assert cache.is_assumed(assumed.uid)
    written = cache.table.usage.position
    cache.set_pod(make_pod("p", node="a"))
    assert not cache.is_assumed(assumed.uid)
    assert cpu(cache, "a") == 100
    assert cache.table.usage.position == written, "confirming must not make the row dirty again"


def test_confirmed_elsewhere_moves_the_charge(cache: Cache) -> None:
    cache.assume(make_info("p"), "a")
    cache.set_pod(make_pod("p", node="b"))
    assert (cpu(cache, "a"), cpu(cache, "b")) == (0, 100)


def test_forget_gives_back_assumed_pods_only(cache: Cache) -> None:
    info = make_info("p")
    cache.assume(info, "a")
    cache.forget(info.uid)
    assert cpu(cache, "a") == 0
    cache.set_pod(make_pod("p", node="a"))
    cache.forget(info.uid)
    assert cpu(cache, "a") == 100


def test_a_pod_cannot_be_assumed_twice(cache: Cache) -> None:
    cache.assume(make_info("p"), "a")
    with pytest.raises(CacheInvariantError, match="on node a"):
        cache.assume(make_info("p"), "b")
    assert (cpu(cache, "a"), cpu(cache, "b")) == (100, 0)


def test_overdue_only_after_a_finished_binding_and_silence(cache: Cache) -> None:
    info = make_info("p")
    cache.assume(info, "a")
    assert cache.overdue(1e9) == []
    cache.finish_binding(info.uid, now=10.0)
    assert cache.overdue(10.0 + CONFIRMATION_SECONDS - 0.1) == []
    assert [late.uid for late in cache.overdue(10.0 + CONFIRMATION_SECONDS)] == [info.uid]
    cache.set_pod(make_pod("p", node="a"))
    assert cache.overdue(1e9) == []


def test_a_resize_changes_the_charge(cache: Cache) -> None:
    cache.set_pod(make_pod("p", node="a"))
    cache.set_pod(make_pod("p", node="a", requests={"cpu": "2"}))
    assert cpu(cache, "a") == 2000


def test_a_pod_made_again_under_its_name_is_another_one(cache: Cache) -> None:
    cache.set_pod(make_pod("p", uid="first", node="a"))
    cache.set_pod(make_pod("p", uid="second", node="a"))
    assert cpu(cache, "a") == 200
    cache.remove_pod("first")
    assert cpu(cache, "a") == 100
    assert cache.counts() == {"nodes": 2, "pods": 1, "assumed_pods": 0}


def test_bc_08_a_node_made_again_keeps_its_pods(cache: Cache) -> None:
    cache.set_pod(make_pod("p", node="a", requests={"cpu": "3"}))
    cache.remove_node(make_node("a"))
    row = cache.table.row_of["a"]
    assert not cache.table.alive[row]
    cache.set_node(make_node("a"))
    assert cache.table.alive[row]
    assert cpu(cache, "a") == 3000


def test_pods_may_come_before_their_node(cache: Cache) -> None:
    cache.set_pod(make_pod("p", node="later"))
    assert cache.counts()["nodes"] == 2
    cache.set_node(make_node("later"))
    assert cpu(cache, "later") == 100


def test_removing_the_unknown_is_nothing(cache: Cache) -> None:
    cache.remove_pod("nobody")
    cache.remove_node(make_node("nowhere"))
    cache.forget("nobody")
    assert cache.counts() == {"nodes": 2, "pods": 0, "assumed_pods": 0}
