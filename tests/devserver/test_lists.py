"""Pages, snapshots, resourceVersion rules and selectors of lists."""

from __future__ import annotations

import pytest

from tests.devserver.api import PODS, Api, Object, make_pod


async def fill(api: Api, names: str = "abcde") -> None:
    for name in names:
        await api.created(PODS, make_pod(name))


def names(page: Object) -> list[str]:
    return [item["metadata"]["name"] for item in page["items"]]


async def test_pages_show_one_snapshot(api: Api) -> None:
    await fill(api)
    first = (await api.get(PODS, limit="2")).body
    assert names(first) == ["a", "b"]
    assert first["metadata"]["remainingItemCount"] == 3
    await api.delete(f"{PODS}/c")
    await api.created(PODS, make_pod("bb"))
    await api.patch(f"{PODS}/d", {"metadata": {"labels": {"new": "1"}}})
    second = (await api.get(PODS, limit="2", **{"continue": first["metadata"]["continue"]})).body
    assert names(second) == ["c", "d"]
    assert "labels" not in second["items"][1]["metadata"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    third = (await api.get(PODS, limit="2", **{"continue": second["metadata"]["continue"]})).body
    assert names(third) == ["e"]
    assert "continue" not in third["metadata"]
    assert "remainingItemCount" not in third["metadata"]


async def test_an_expired_token_gives_410_and_a_way_to_go_on(api: Api) -> None:
    await fill(api)
    first = (await api.get(PODS, limit="2")).body
    await api.created(PODS, make_pod("bb"))
    api.server.store.compact()
    await api.created(PODS, make_pod("f"))
    expired = await api.get(PODS, limit="2", **{"continue": first["metadata"]["continue"]})
    assert (expired.status, expired.body["reason"]) == (410, "Expired")
    rest = (await api.get(PODS, **{"continue": expired.body["metadata"]["continue"]})).body
    assert names(rest) == ["bb", "c", "d", "e", "f"]
    assert int(rest["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])


async def test_with_a_selector_the_rest_is_not_counted(api: Api) -> None:
    await fill(api)
    page = (await api.get(PODS, limit="2", fieldSelector="metadata.name!=a")).body
    assert names(page) == ["b", "c"]
    assert "remainingItemCount" not in page["metadata"]
    rest = (await api.get(PODS, fieldSelector="metadata.name!=a", **{"continue": page["metadata"]["continue"]})).body
    assert names(rest) == ["d", "e"]


async def test_an_exact_version_shows_the_past(api: Api) -> None:
    await fill(api, "ab")
    then = (await api.get(PODS)).body["metadata"]["resourceVersion"]
    await fill(api, "c")
    past = (await api.get(PODS, resourceVersion=then, resourceVersionMatch="Exact")).body
    assert names(past) == ["a", "b"]
    assert past["metadata"]["resourceVersion"] == then
    limited = (await api.get(PODS, resourceVersion=then, limit="5")).body
    assert names(limited) == ["a", "b"]
    newer = (await api.get(PODS, resourceVersion=then, resourceVersionMatch="NotOlderThan")).body
    assert names(newer) == ["a", "b", "c"]
    assert names((await api.get(PODS, resourceVersion="0", limit="1")).body) == ["a", "b", "c"]
    api.server.store.compact()
    gone = await api.get(PODS, resourceVersion=then, resourceVersionMatch="Exact")
    assert (gone.status, gone.body["reason"]) == (410, "Expired")


async def test_a_version_of_the_future_times_out(api: Api) -> None:
    answer = await api.get(PODS, resourceVersion="99999")
    assert (answer.status, answer.body["reason"]) == (504, "Timeout")
    assert answer.body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"limit": "x"}, 400),
        ({"resourceVersion": "x"}, 400),
        ({"continue": "x"}, 400),
        ({"resourceVersionMatch": "Exact"}, 422),
        ({"resourceVersion": "0", "resourceVersionMatch": "Exact"}, 422),
        ({"resourceVersion": "1", "resourceVersionMatch": "Almost"}, 422),
        ({"sendInitialEvents": "true"}, 422),
        ({"labelSelector": "a in b"}, 400),
        ({"fieldSelector": "spec.nothing=x"}, 400),
    ],
)
async def test_options_that_make_no_sense(api: Api, query: dict[str, str], code: int) -> None:
    assert (await api.get(PODS, **query)).status == code


async def test_lists_cover_one_namespace_or_all(api: Api) -> None:
    await fill(api, "b")
    await api.created("/api/v1/namespaces/kube-system/pods", make_pod("a"))
    assert names((await api.get("/api/v1/pods")).body) == ["b", "a"]
    assert names((await api.get(PODS)).body) == ["b"]
    selected = (await api.get("/api/v1/pods", fieldSelector="metadata.namespace=kube-system")).body
    assert names(selected) == ["a"]


async def test_metadata_only_and_tables(api: Api) -> None:
    await fill(api, "a")
    form = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
    partial = (await api.call("GET", PODS, headers={"Accept": form})).body
    assert partial["kind"] == "PartialObjectMetadataList"
    assert partial["items"][0].keys() == {"kind", "apiVersion", "metadata"}
    form = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
    table = (await api.call("GET", PODS, headers={"Accept": form})).body
    assert table["kind"] == "Table"
    assert [column["name"] for column in table["columnDefinitions"]][:5] == [
        "Name",
        "Ready",
        "Status",
        "Restarts",
        "Age",
    ]
    assert table["rows"][0]["cells"][:4] == ["a", "0/1", "Pending", "0"]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    single = (await api.call("GET", f"{PODS}/a", headers={"Accept": form}, query={"includeObject": "Object"})).body
    assert single["rows"][0]["object"]["spec"]["containers"]
