from __future__ import annotations

import pytest

from kube_pyscheduler.framework import listers
from kube_pyscheduler.framework.listers import AssumingLister, Lister, WrittenLister
from kube_pyscheduler.objects.meta import ObjectMeta
from kube_pyscheduler.objects.storage import PersistentVolumeClaim


def claim(name: str, version: str = "1", **annotations: str) -> PersistentVolumeClaim:
    return PersistentVolumeClaim(
        metadata=ObjectMeta(name=name, namespace="default", resource_version=version, annotations=annotations)
    )


def test_a_lister_tells_what_changed_since() -> None:
    lister: Lister[PersistentVolumeClaim] = Lister()
    lister.put(claim("a"))
    seen = lister.generation
    assert lister.changed_since(seen) == set()
    lister.put(claim("b"))
    lister.remove(claim("a"))
    lister.remove(claim("never there"))
    assert lister.changed_since(seen) == {"default/a", "default/b"}
    assert lister.changed_since(0) == {"default/a", "default/b"}


def test_a_reader_far_behind_is_told_to_look_at_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listers, "KEEP", 4)
    lister: Lister[PersistentVolumeClaim] = Lister()
    for number in range(9):
        lister.put(claim(str(number)))
    assert lister.changed_since(0) is None
    assert lister.changed_since(lister.generation - 4) == {f"default/{number}" for number in range(5, 9)}


def test_an_assumed_object_counts_until_a_newer_one_is_told() -> None:
    lister: AssumingLister[PersistentVolumeClaim] = AssumingLister()
    told = claim("a")
    lister.put(told)
    assumed = claim("a", node="n1")
    lister.assume(assumed)
    assert lister.latest("default/a") is assumed
    assert lister.get("default/a") is told
    lister.put(claim("a"))
    assert lister.latest("default/a") is assumed
    newer = claim("a", "2")
    lister.put(newer)
    assert lister.latest("default/a") is newer


def test_a_restored_object_is_what_the_watch_told() -> None:
    lister: AssumingLister[PersistentVolumeClaim] = AssumingLister()
    told = claim("a")
    lister.put(told)
    assumed = claim("a", node="n1")
    lister.assume(assumed)
    lister.restore(claim("a", "2"))
    assert lister.latest("default/a") is assumed
    before = lister.generation
    lister.restore(assumed)
    assert lister.latest("default/a") is told
    assert lister.changed_since(before) == {"default/a"}


def test_a_removed_object_is_not_assumed_any_more() -> None:
    lister: AssumingLister[PersistentVolumeClaim] = AssumingLister()
    lister.put(claim("a"))
    lister.assume(claim("a", node="n1"))
    lister.remove(claim("a"))
    assert lister.latest("default/a") is None
    lister.put(claim("a"))
    latest = lister.latest("default/a")
    assert latest is not None
    assert latest.metadata.annotations == {}


@pytest.mark.parametrize(
    ("item", "problem"), [(claim("b"), "not found"), (claim("a", "2"), r"out of sync \(stored: 1, assume: 2\)")]
)
def test_only_what_the_watch_knows_can_be_assumed(item: PersistentVolumeClaim, problem: str) -> None:
    lister: AssumingLister[PersistentVolumeClaim] = AssumingLister()
    lister.put(claim("a"))
    with pytest.raises(LookupError, match=problem):
        lister.assume(item)


def test_a_written_object_counts_until_the_watch_has_caught_up() -> None:
    lister: WrittenLister[PersistentVolumeClaim] = WrittenLister()
    lister.put(claim("a", "5"))
    before = lister.generation
    written = claim("a", "8")
    lister.assume(written)
    assert lister.changed_since(before) == {"default/a"}
    assert lister.latest("default/a") is written
    lister.put(claim("a", "7"))
    assert lister.latest("default/a") is written
    told = claim("a", "8")
    lister.put(told)
    assert lister.latest("default/a") is told


def test_a_written_object_does_not_outlive_its_deletion() -> None:
    lister: WrittenLister[PersistentVolumeClaim] = WrittenLister()
    lister.put(claim("a", "5"))
    lister.assume(claim("a", "8"))
    another = PersistentVolumeClaim(
        metadata=ObjectMeta(name="a", namespace="default", uid="another", resource_version="6")
    )
    lister.put(another)
    assert lister.latest("default/a") is another
    lister.assume(claim("a", "8"))
    lister.remove(another)
    assert lister.latest("default/a") is None


@pytest.mark.parametrize(("item", "problem"), [(claim("b", "9"), "not found"), (claim("a", "4"), "out of sync")])
def test_only_what_is_no_older_than_the_watch_counts_as_written(item: PersistentVolumeClaim, problem: str) -> None:
    lister: WrittenLister[PersistentVolumeClaim] = WrittenLister()
    lister.put(claim("a", "5"))
    with pytest.raises(LookupError, match=problem):
        lister.assume(item)
