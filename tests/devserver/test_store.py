"""The store by itself: revisions, history, snapshots, order of delivery."""

from __future__ import annotations

import pytest

from kube_pyscheduler.devserver.errors import StatusError
from kube_pyscheduler.devserver.resources import NODES, PODS
from kube_pyscheduler.devserver.store import ADDED, DELETED, MODIFIED, Change, Object, Store


def pod(name: str, namespace: str = "default", **more: object) -> Object:
    return {"metadata": {"name": name, "namespace": namespace}, **more}


def test_every_write_takes_the_next_revision() -> None:
    store = Store()
    first = store.create(PODS, pod("a")).obj
    second = store.create(NODES, {"metadata": {"name": "n"}}).obj
    changed = store.update(PODS, {**first, "spec": {}}).obj
    versions = [int(obj["metadata"]["resourceVersion"]) for obj in (first, second, changed)]
    assert versions == [2, 3, 4]
    assert store.delete(PODS, "default", "a").obj["metadata"]["resourceVersion"] == "5"
    assert store.revision == 5


def test_kind_and_api_version_come_first_and_are_the_resources_own() -> None:
    stored = Store().create(PODS, {**pod("a"), "spec": {}, "kind": "Wrong"})
    assert list(stored.obj) == ["kind", "apiVersion", "metadata", "spec"]
    assert stored.obj["kind"] == "Pod"
    assert stored.body.startswith(b'"metadata":{')


def test_an_equal_object_is_not_written_again() -> None:
    store = Store()
    first = store.create(PODS, pod("a", spec={"x": 1})).obj
    assert store.update(PODS, pod("a", spec={"x": 1})).obj is first
    assert store.revision == 2


def test_a_stale_update_is_refused() -> None:
    store = Store()
    first = store.create(PODS, pod("a")).obj
    store.update(PODS, {**first, "spec": {"x": 1}})
    with pytest.raises(StatusError) as refused:
        store.update(PODS, {**first, "spec": {"x": 2}})
    assert (refused.value.code, refused.value.reason) == (409, "Conflict")


def test_existence_is_checked() -> None:
    store = Store()
    store.create(PODS, pod("a"))
    with pytest.raises(StatusError, match="already exists"):
        store.create(PODS, pod("a"))
    with pytest.raises(StatusError, match="not found"):
        store.update(PODS, pod("b"))
    with pytest.raises(StatusError, match="not found"):
        store.delete(PODS, "default", "b")


def test_a_snapshot_shows_the_past() -> None:
    store = Store()
    first = store.create(PODS, pod("b", spec={"x": 1})).obj
    store.create(PODS, pod("a"))
    then = store.revision
    store.update(PODS, {**first, "spec": {"x": 2}})
    store.delete(PODS, "default", "a")
    store.create(PODS, pod("c"))
    past = list(store.snapshot(PODS, then))
    assert [(stored.key[1], stored.obj.get("spec")) for stored in past] == [("a", None), ("b", {"x": 1})]
    now = [stored.key[1] for stored in store.snapshot(PODS, store.revision)]
    assert now == ["b", "c"]
    after = [stored.key[1] for stored in store.snapshot(PODS, then, after=("default", "a"))]
    assert after == ["b"]


def test_changes_since_a_revision() -> None:
    store = Store()
    store.create(PODS, pod("a"))
    then = store.revision
    store.create(PODS, pod("b"))
    store.delete(PODS, "default", "a")
    assert [(change.kind, change.new.key[1]) for change in store.changes_since(PODS, then)] == [
        (ADDED, "b"),
        (DELETED, "a"),
    ]
    assert store.changes_since(PODS, store.revision) == []


def test_what_the_history_no_longer_holds_is_gone() -> None:
    store = Store(history_limit=2)
    for name in "abcd":
        store.create(PODS, pod(name))
    assert [change.new.key[1] for change in store.changes_since(PODS, 3)] == ["c", "d"]
    for attempt in (lambda: store.changes_since(PODS, 2), lambda: store.snapshot(PODS, 2)):
        with pytest.raises(StatusError) as refused:
            attempt()
        assert (refused.value.code, refused.value.reason) == (410, "Expired")


def test_compaction_forgets_history_of_all_resources_even_unused_ones() -> None:
    store = Store()
    store.create(PODS, pod("a"))
    store.compact()
    store.create(PODS, pod("b"))
    with pytest.raises(StatusError):
        store.changes_since(PODS, 1)
    with pytest.raises(StatusError):
        store.changes_since(NODES, 1)
    assert [change.new.key[1] for change in store.changes_since(PODS, 2)] == ["b"]


def test_subscribers_see_changes_in_the_order_of_revisions_even_when_they_write() -> None:
    store = Store()
    seen: list[tuple[str, str, int]] = []

    def react(change: Change) -> None:
        if change.kind == ADDED and change.new.key[1] == "a":
            store.update(PODS, {**change.new.obj, "spec": {"x": 1}})
            store.create(PODS, pod("b"))

    store.subscribe(PODS, react)
    store.subscribe(PODS, lambda change: seen.append((change.kind, change.new.key[1], change.revision)))
    store.create(PODS, pod("a"))
    assert seen == [(ADDED, "a", 2), (MODIFIED, "a", 3), (ADDED, "b", 4)]


def test_subscriptions_end_and_cover_one_or_all_resources() -> None:
    store = Store()
    of_pods: list[str] = []
    of_all: list[str] = []
    stop = store.subscribe(PODS, lambda change: of_pods.append(change.new.key[1]))
    store.subscribe(None, lambda change: of_all.append(change.new.key[1]))
    store.create(NODES, {"metadata": {"name": "n"}})
    store.create(PODS, pod("a"))
    stop()
    store.create(PODS, pod("b"))
    assert of_pods == ["a"]
    assert of_all == ["n", "a", "b"]


def test_a_deletion_carries_the_last_state_and_the_one_before() -> None:
    store = Store()
    changes: list[Change] = []
    store.create(PODS, pod("a", spec={"x": 1}))
    store.subscribe(PODS, changes.append)
    store.delete(PODS, "default", "a")
    [change] = changes
    assert change.kind == DELETED
    assert change.new.obj["spec"] == {"x": 1}
    assert change.new.obj["metadata"]["resourceVersion"] == "3"
    assert change.old is not None
    assert change.old.obj["metadata"]["resourceVersion"] == "2"
