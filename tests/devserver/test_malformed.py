"""Objects that were put straight into the store, past all checks, are served as they are."""

from __future__ import annotations

from typing import Any

import pytest

from tests.devserver.api import NODES, PODS, Api

WRONG: tuple[Any, ...] = (5, "x", [], [5], {"a": 5}, None)


@pytest.mark.parametrize("wrong", WRONG)
async def test_wrong_types_anywhere_break_nothing_else(api: Api, wrong: Any) -> None:
    store, table = api.server.store, api.server.context.table
    pods, nodes = table.by_path("", "v1", "pods"), table.by_path("", "v1", "nodes")
    assert pods is not None
    assert nodes is not None
    async with api.watch(PODS, labelSelector="x!=1", fieldSelector="status.phase!=Failed,spec.nodeName!=n") as watch:
        metadata = {"name": "a", "namespace": "default", "labels": wrong, "ownerReferences": wrong}
        store.create(pods, {"metadata": metadata, "spec": wrong, "status": wrong})
        store.create(nodes, {"metadata": {"name": "n", "annotations": wrong}, "spec": wrong, "status": wrong})
        event = await watch.next()
        assert (event["type"], event["object"]["spec"]) == ("ADDED", wrong)
        [item] = (await api.get(PODS, labelSelector="!x", fieldSelector="status.phase!=Failed")).body["items"]
        assert item["status"] == wrong
        assert (await api.get(NODES, fieldSelector="spec.unschedulable=false")).status == 200
        form = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
        for path in (PODS, NODES):
            table_answer = await api.call("GET", path, headers=form)
            assert table_answer.body["rows"][0]["cells"][0] in ("a", "n")
        store.delete(pods, "default", "a")
        assert (await watch.next())["type"] == "DELETED"
