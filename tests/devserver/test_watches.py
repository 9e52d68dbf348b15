"""Watches: where they start, what they deliver, how they end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest

from kube_pyscheduler.devserver.app import serve
from tests.devserver.api import PODS, Api, binding, make_pod

END = "k8s.io/initial-events-end"


async def test_without_a_version_the_present_comes_first(api: Api) -> None:
    await api.created(PODS, make_pod("a"))
    async with api.watch(PODS) as watch:
        assert await watch.names(1) == [("ADDED", "a")]
        await api.created(PODS, make_pod("b"))
        await api.patch(f"{PODS}/b", {"metadata": {"labels": {"x": "1"}}})
        await api.delete(f"{PODS}/a")
        assert await watch.names(3) == [("ADDED", "b"), ("MODIFIED", "b"), ("DELETED", "a")]


async def test_from_a_version_only_what_came_after(api: Api) -> None:
    first = await api.created(PODS, make_pod("a"))
    await api.created(PODS, make_pod("b"))
    async with api.watch(PODS, resourceVersion=first["metadata"]["resourceVersion"]) as watch:
        event = await watch.next()
        assert event["type"] == "ADDED"
        assert event["object"] == (await api.get(f"{PODS}/b")).body


async def test_the_last_state_of_a_deleted_object_has_the_version_of_its_deletion(api: Api) -> None:
    created = await api.created(PODS, make_pod("a"))
    version = created["metadata"]["resourceVersion"]
    await api.delete(f"{PODS}/a")
    async with api.watch(PODS, resourceVersion=version) as watch:
        event = await watch.next()
        assert event["type"] == "DELETED"
        assert event["object"]["spec"] == created["spec"]
        assert int(event["object"]["metadata"]["resourceVersion"]) > int(version)


async def test_initial_events_end_with_a_bookmark(api: Api) -> None:
    await api.created(PODS, make_pod("a"))
    options = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    async with api.watch(PODS, **options) as watch:
        assert await watch.names(1) == [("ADDED", "a")]
        bookmark = await watch.next()
        assert bookmark["type"] == "BOOKMARK"
        assert bookmark["object"]["kind"] == "Pod"
        assert bookmark["object"]["metadata"]["annotations"] == {END: "true"}
        assert bookmark["object"]["metadata"]["resourceVersion"] == str(api.server.store.revision)
        await api.created(PODS, make_pod("b"))
        assert await watch.names(1) == [("ADDED", "b")]


async def test_no_initial_events_on_request(api: Api) -> None:
    await api.created(PODS, make_pod("a"))
    async with api.watch(PODS, sendInitialEvents="false", resourceVersionMatch="NotOlderThan") as watch:
        await api.created(PODS, make_pod("b"))
        assert await watch.names(1) == [("ADDED", "b")]


async def test_a_forgotten_version_is_told_in_the_stream(api: Api) -> None:
    created = await api.created(PODS, make_pod("a"))
    await api.created(PODS, make_pod("b"))
    api.server.store.compact()
    async with api.watch(PODS, resourceVersion=created["metadata"]["resourceVersion"]) as watch:
        [event] = await watch.rest()
    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
    assert event["object"]["message"].startswith("too old resource version")


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"resourceVersion": "x"}, 400),
        ({"timeoutSeconds": "x"}, 400),
        ({"sendInitialEvents": "true"}, 422),
        ({"resourceVersion": "1", "resourceVersionMatch": "NotOlderThan"}, 422),
        ({"fieldSelector": "spec.nothing=x"}, 400),
    ],
)
async def test_options_that_make_no_sense(api: Api, query: dict[str, str], code: int) -> None:
    assert (await api.get(PODS, watch="true", **query)).status == code


async def test_objects_enter_and_leave_a_selection(api: Api) -> None:
    selector = "status.phase!=Succeeded,status.phase!=Failed"
    await api.created(PODS, make_pod("a"))
    async with api.watch(PODS, fieldSelector=selector, labelSelector="x!=0") as watch:
        assert await watch.names(1) == [("ADDED", "a")]
        await api.patch(f"{PODS}/a", {"metadata": {"labels": {"x": "1"}}})
        await api.patch(f"{PODS}/a/status", {"status": {"phase": "Succeeded"}})
        assert (await watch.next())["type"] == "MODIFIED"
        gone = await watch.next()
        assert gone["type"] == "DELETED"
        assert gone["object"]["status"]["phase"] == "Pending"
        assert gone["object"]["metadata"]["resourceVersion"] == str(api.server.store.revision)
        await api.patch(f"{PODS}/a", {"metadata": {"labels": {"x": "2"}}})
        await api.patch(f"{PODS}/a/status", {"status": {"phase": "Running"}})
        assert await watch.names(1) == [("ADDED", "a")]
        await api.patch(f"{PODS}/a", {"metadata": {"labels": {"x": "0"}}})
        assert await watch.names(1) == [("DELETED", "a")]
        await api.delete(f"{PODS}/a", gracePeriodSeconds="0")
        await api.created(PODS, make_pod("b"))
        assert await watch.names(1) == [("ADDED", "b")]


async def test_the_unassigned_pods_of_one_scheduler(api: Api) -> None:
    selector = "spec.nodeName=,spec.schedulerName=mine"
    async with api.watch("/api/v1/pods", fieldSelector=selector) as watch:
        await api.created(PODS, make_pod("other"))
        await api.created(PODS, make_pod("a", schedulerName="mine"))
        assert await watch.names(1) == [("ADDED", "a")]
        await api.post(f"{PODS}/a/binding", binding("a", "n"))
        assert await watch.names(1) == [("DELETED", "a")]


async def test_a_watch_covers_its_namespace(api: Api) -> None:
    async with api.watch("/api/v1/namespaces/kube-system/pods") as watch:
        await api.created(PODS, make_pod("a"))
        await api.created("/api/v1/namespaces/kube-system/pods", make_pod("b"))
        assert await watch.names(1) == [("ADDED", "b")]


async def test_a_watch_ends_at_its_timeout_after_a_last_bookmark(api: Api) -> None:
    created = await api.created(PODS, make_pod("a"))
    version = created["metadata"]["resourceVersion"]
    async with api.watch(PODS, resourceVersion=version, allowWatchBookmarks="true", timeoutSeconds="1") as watch:
        [bookmark] = await watch.rest()
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["metadata"]["resourceVersion"] == version
    async with api.watch(PODS, resourceVersion=version, timeoutSeconds="1") as watch:
        assert await watch.rest() == []


@pytest.fixture
async def hasty(session: aiohttp.ClientSession) -> AsyncIterator[Api]:
    server = await serve(bookmark_seconds=0.02)
    yield Api(server, session)
    await server.stop()


async def test_bookmarks_come_now_and_then(hasty: Api) -> None:
    async with hasty.watch(PODS, allowWatchBookmarks="true") as watch:
        first, second = await watch.next(), await watch.next()
        assert [first["type"], second["type"]] == ["BOOKMARK", "BOOKMARK"]
        created = await hasty.created("/api/v1/namespaces", {"metadata": {"name": "other"}})
        version = int(created["metadata"]["resourceVersion"])
        while int((await watch.next())["object"]["metadata"]["resourceVersion"]) < version:
            pass  # Bookmarks follow the writes of other resources too.


async def test_watches_in_other_forms(api: Api) -> None:
    created = await api.created(PODS, make_pod("a"))
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    async with api.watch(PODS, accept=table) as watch:
        event = await watch.next()
        assert event["object"]["kind"] == "Table"
        assert event["object"]["rows"][0]["cells"][0] == "a"
    partial = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
    options = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    async with api.watch(PODS, accept=partial, **options) as watch:
        event, bookmark = await watch.next(), await watch.next()
        assert event["object"]["metadata"]["uid"] == created["metadata"]["uid"]
        assert "spec" not in event["object"]
        assert bookmark["object"]["kind"] == "PartialObjectMetadata"


async def test_a_stopping_server_ends_its_watches(session: aiohttp.ClientSession) -> None:
    server = await serve()
    async with Api(server, session).watch(PODS, resourceVersion="1") as watch:
        rest = asyncio.create_task(watch.rest())
        await server.stop()
        assert await rest == []


async def test_a_client_that_leaves_is_forgotten(api: Api) -> None:
    async with api.watch(PODS, resourceVersion="1"):
        assert len(api.server.context.watches) == 1
    while api.server.context.watches:
        await api.get("/healthz")
