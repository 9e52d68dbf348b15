from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_pyscheduler.informers.store import Change, Identity, Writer
from kube_pyscheduler.objects.meta import ObjectMeta, is_older
from kube_pyscheduler.objects.pod import Pod


def make(name: str, version: int | str = 1, uid: str = "u") -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace="ns", uid=uid, resource_version=str(version)))


def gone(name: str, version: int | str, uid: str = "u") -> Identity:
    return Identity(f"ns/{name}", uid, str(version))


def holding(*pods: Pod) -> Writer[Pod]:
    writer: Writer[Pod] = Writer()
    for pod in pods:
        writer.apply(pod)
    return writer


def test_add_modify_delete() -> None:
    writer: Writer[Pod] = Writer()
    first, second = make("a", 1), make("a", 2)
    assert writer.apply(first) == [Change(None, first)]
    assert writer.apply(second) == [Change(first, second)]
    assert writer.store.get("ns/a") is second
    assert writer.remove(gone("a", 3)) == [Change(second, None)]
    assert len(writer.store) == 0
    assert writer.remove(gone("a", 3)) == []


@pytest.mark.parametrize("version", [5, 4, "5"])
def test_a_duplicate_or_older_version_changes_nothing(version: int | str) -> None:
    held = make("a", 5)
    writer = holding(held)
    assert writer.apply(make("a", version)) == []
    assert writer.store.get("ns/a") is held


def test_versions_compare_as_numbers_not_as_text() -> None:
    writer = holding(make("a", 9))
    assert len(writer.apply(make("a", 10))) == 1


def test_opaque_versions_are_taken_in_the_order_they_come() -> None:
    writer = holding(make("a", "z9"))
    assert len(writer.apply(make("a", "a1"))) == 1


def test_recreated_under_its_name_is_a_deletion_and_an_addition() -> None:
    old, new = make("a", 5, "u1"), make("a", 6, "u2")
    writer = holding(old)
    assert writer.apply(new) == [Change(old, None), Change(None, new)]


def test_a_late_deletion_of_the_predecessor_changes_nothing() -> None:
    writer = holding(make("a", 7, "u2"))
    assert writer.remove(gone("a", 6, "u1")) == []
    assert len(writer.store) == 1


def test_a_deletion_is_final_whatever_its_version() -> None:
    writer = holding(make("a", 7, "u"))
    assert len(writer.remove(gone("a", 6, "u"))) == 1


def test_a_list_replaces_and_says_only_what_changed() -> None:
    same, old, lost = make("same", 1), make("old", 1), make("lost", 1)
    writer = holding(same, old, lost)
    newer, extra = make("old", 2), make("extra", 3)
    listed = {pod.key: pod for pod in (make("same", 1), newer, extra)}
    assert writer.replace(listed) == [Change(lost, None), Change(old, newer), Change(None, extra)]
    assert writer.store.get("ns/same") is same
    assert set(writer.store.keys()) == {"ns/same", "ns/old", "ns/extra"}


def test_a_list_is_the_truth_even_where_it_is_older() -> None:
    held, restored = make("a", 9), make("a", 3)
    writer = holding(held)
    assert writer.replace({"ns/a": restored}) == [Change(held, restored)]


def test_a_list_sees_through_an_equal_version_of_another_object() -> None:
    old, new = make("a", 5, "u1"), make("a", 5, "u2")
    writer = holding(old)
    assert writer.replace({"ns/a": new}) == [Change(old, None), Change(None, new)]


def test_kept_keys_stay() -> None:
    held = make("a", 5)
    writer = holding(held)
    assert writer.replace({}, keep={"ns/a", "ns/unknown"}) == []
    assert writer.store.get("ns/a") is held


@pytest.mark.parametrize(
    ("version", "than", "older"),
    [("9", "10", True), ("10", "9", False), ("9", "9", False), ("", "9", False), ("a", "9", False), ("9", "b", False)],
)
def test_only_numbers_are_comparable(version: str, than: str, older: bool) -> None:
    assert is_older(version, than) is older


_OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("apply"), st.sampled_from("abc"), st.integers(1, 6), st.sampled_from("uv")),
        st.tuples(st.just("remove"), st.sampled_from("abc"), st.integers(1, 6), st.sampled_from("uv")),
        st.tuples(st.just("replace"), st.sampled_from(["", "a", "ab", "bc"]), st.integers(1, 6), st.sampled_from("uv")),
    )
)


@given(_OPERATIONS)
def test_whoever_follows_the_changes_knows_the_store(operations: list[tuple[Any, ...]]) -> None:
    writer: Writer[Pod] = Writer()
    followed: dict[str, Pod] = {}
    for what, names, version, uid in operations:
        if what == "apply":
            changes = writer.apply(make(names, version, uid))
        elif what == "remove":
            changes = writer.remove(gone(names, version, uid))
        else:
            changes = writer.replace({f"ns/{name}": make(name, version, uid) for name in names})
        for old, new in changes:
            if old is not None:
                assert followed.pop(old.key) is old
                assert new is None or new.metadata.uid == old.metadata.uid
            if new is not None:
                assert new.key not in followed
                followed[new.key] = new
        assert followed == {pod.key: pod for pod in writer.store}
