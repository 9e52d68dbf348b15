"""The four kinds of patch as pure functions."""

from __future__ import annotations

from typing import Any

import pytest

from kube_pyscheduler.devserver.errors import StatusError
from kube_pyscheduler.devserver.patching.json_patch import json_patch, merge_patch
from kube_pyscheduler.devserver.patching.strategic import strategic_merge
from kube_pyscheduler.devserver.schema.types import Type, type_of


def kind(name: str, group: str = "", version: str = "v1") -> Type:
    found = type_of(group, version, name)
    assert found is not None
    return found


POD = kind("Pod")
DEPLOYMENT = kind("Deployment", "apps")


def test_merge_patch_merges_objects_removes_nulls_and_replaces_the_rest() -> None:
    target = {"a": {"b": 1, "c": 2}, "l": [1, 2]}
    patched = merge_patch(target, {"a": {"b": None, "d": 3}, "l": [3], "n": {"x": None}})
    assert patched == {"a": {"c": 2, "d": 3}, "l": [3], "n": {}}
    assert target == {"a": {"b": 1, "c": 2}, "l": [1, 2]}


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ({"op": "add", "path": "/a/x", "value": 1}, {"a": {"b": [1, 2], "x": 1}}),
        ({"op": "add", "path": "/a/b/0", "value": 0}, {"a": {"b": [0, 1, 2]}}),
        ({"op": "add", "path": "/a/b/-", "value": 3}, {"a": {"b": [1, 2, 3]}}),
        ({"op": "add", "path": "/a~1b~0", "value": 1}, {"a": {"b": [1, 2]}, "a/b~": 1}),
        ({"op": "remove", "path": "/a/b/0"}, {"a": {"b": [2]}}),
        ({"op": "replace", "path": "/a/b", "value": {}}, {"a": {"b": {}}}),
        ({"op": "move", "from": "/a/b", "path": "/c"}, {"a": {}, "c": [1, 2]}),
        ({"op": "copy", "from": "/a/b", "path": "/c"}, {"a": {"b": [1, 2]}, "c": [1, 2]}),
        ({"op": "test", "path": "/a/b/1", "value": 2}, {"a": {"b": [1, 2]}}),
    ],
)
def test_json_patch_operations(operation: dict[str, Any], expected: dict[str, Any]) -> None:
    target = {"a": {"b": [1, 2]}}
    assert json_patch(target, [operation]) == expected
    assert target == {"a": {"b": [1, 2]}}


@pytest.mark.parametrize(
    ("operations", "code"),
    [
        ([{"op": "remove", "path": "/x"}], 422),
        ([{"op": "replace", "path": "/a/b/5", "value": 1}], 422),
        ([{"op": "test", "path": "/a/b/1", "value": 3}], 422),
        ([{"op": "add", "path": "/a/b/x", "value": 3}], 422),
        ([{"op": "jump", "path": "/a"}], 400),
        ({"op": "remove"}, 400),
    ],
)
def test_json_patches_that_cannot_be_done(operations: Any, code: int) -> None:
    with pytest.raises(StatusError) as refused:
        json_patch({"a": {"b": [1, 2]}}, operations)
    assert refused.value.code == code


def containers(*names: str) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": name, "image": "x"} for name in names]}}


def test_lists_of_objects_merge_by_their_key() -> None:
    patch = {"spec": {"containers": [{"name": "b", "image": "y"}, {"name": "c"}]}}
    patched = strategic_merge(containers("a", "b"), patch, POD)
    assert patched["spec"]["containers"] == [
        {"name": "a", "image": "x"},
        {"name": "b", "image": "y"},
        {"name": "c"},
    ]


def test_the_order_of_a_list_follows_the_directive() -> None:
    order = [{"name": "c"}, {"name": "b"}]
    patch = {"spec": {"$setElementOrder/containers": order, "containers": [{"name": "c"}]}}
    patched = strategic_merge(containers("a", "b"), patch, POD)
    assert [c["name"] for c in patched["spec"]["containers"]] == ["c", "a", "b"]
    only_order = {"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}}
    patched = strategic_merge(containers("a", "b"), only_order, POD)
    assert [c["name"] for c in patched["spec"]["containers"]] == ["b", "a"]


def test_items_are_deleted_and_lists_replaced_by_directive() -> None:
    delete = {"spec": {"containers": [{"name": "a", "$patch": "delete"}]}}
    assert strategic_merge(containers("a", "b"), delete, POD) == containers("b")
    replace = {"spec": {"containers": [{"name": "z"}, {"$patch": "replace"}]}}
    assert strategic_merge(containers("a"), replace, POD)["spec"]["containers"] == [{"name": "z"}]


def test_maps_can_be_replaced_and_retained_keys_chosen() -> None:
    target = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert strategic_merge(target, patch, DEPLOYMENT) == {"spec": {"strategy": {"type": "Recreate"}}}
    labels = {"metadata": {"labels": {"a": "1"}}}
    replaced = strategic_merge(labels, {"metadata": {"labels": {"$patch": "replace", "b": "2"}}}, POD)
    assert replaced == {"metadata": {"labels": {"b": "2"}}}


def test_lists_of_scalars_merge_and_lose_items() -> None:
    target = {"metadata": {"finalizers": ["a", "b"]}}
    assert strategic_merge(target, {"metadata": {"finalizers": ["c"]}}, POD)["metadata"]["finalizers"] == [
        "a",
        "b",
        "c",
    ]
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}
    assert strategic_merge(target, patch, POD)["metadata"]["finalizers"] == ["b"]


def test_atomic_lists_are_replaced() -> None:
    target = {"spec": {"tolerations": [{"key": "a"}]}}
    patched = strategic_merge(target, {"spec": {"tolerations": [{"key": "b"}]}}, POD)
    assert patched["spec"]["tolerations"] == [{"key": "b"}]


def test_conditions_merge_by_type_and_nulls_remove() -> None:
    target = {"status": {"conditions": [{"type": "A", "status": "True", "reason": "x"}], "nominatedNodeName": "n"}}
    patch = {"status": {"conditions": [{"type": "A", "status": "False", "reason": None}], "nominatedNodeName": None}}
    assert strategic_merge(target, patch, POD) == {"status": {"conditions": [{"type": "A", "status": "False"}]}}


def test_an_item_without_its_merge_key_is_refused() -> None:
    with pytest.raises(StatusError) as refused:
        strategic_merge(containers("a"), {"spec": {"containers": [{"image": "y"}]}}, POD)
    assert refused.value.code == 400
    with pytest.raises(StatusError):
        strategic_merge({}, {"$patch": "upend"}, POD)
