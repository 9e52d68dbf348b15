"""Events: one set of objects, two faces."""

from __future__ import annotations

from typing import Any

import pytest

from tests.devserver.api import Api, Object

CORE = "/api/v1/namespaces/default/events"
NEW = "/apis/events.k8s.io/v1/namespaces/default/events"


def event(name: str = "e", **changes: object) -> Object:
    return {
        "metadata": {"name": name},
        "eventTime": "2026-01-02T03:04:05.000006Z",
        "reportingController": "kube-pyscheduler",
        "reportingInstance": "kube-pyscheduler-0",
        "action": "Binding",
        "reason": "Scheduled",
        "type": "Normal",
        "note": "Successfully assigned default/p to n",
        "regarding": {"kind": "Pod", "namespace": "default", "name": "p", "uid": "1"},
        **changes,
    }


async def test_an_event_is_seen_from_both_sides(api: Api) -> None:
    created = await api.created(NEW, event())
    assert (created["apiVersion"], created["note"]) == ("events.k8s.io/v1", "Successfully assigned default/p to n")
    core = (await api.get(f"{CORE}/e")).body
    assert core["apiVersion"] == "v1"
    assert core["message"] == created["note"]
    assert core["involvedObject"] == created["regarding"]
    assert core["reportingComponent"] == "kube-pyscheduler"
    assert core["metadata"] == created["metadata"]
    old_style = {
        "metadata": {"name": "f"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "q"},
        "message": "hello",
        "source": {"component": "kubelet"},
        "firstTimestamp": "2026-01-02T03:04:05Z",
        "count": 3,
    }
    await api.created(CORE, old_style)
    new = (await api.get(f"{NEW}/f")).body
    assert (new["note"], new["deprecatedCount"], new["deprecatedSource"]) == ("hello", 3, {"component": "kubelet"})


async def test_lists_and_watches_of_both_sides(api: Api) -> None:
    await api.created(NEW, event())
    listed = (await api.get(NEW, fieldSelector="regarding.name=p,reportingController=kube-pyscheduler")).body
    assert listed["kind"] == "EventList"
    assert listed["items"][0]["note"]
    listed = (await api.get(CORE, fieldSelector="involvedObject.uid=1,type=Normal")).body
    assert listed["items"][0]["message"]
    assert (await api.get(CORE, fieldSelector="regarding.name=p")).status == 400
    async with api.watch(NEW) as new, api.watch(CORE, fieldSelector="involvedObject.name=p") as core:
        assert (await new.next())["object"]["note"]
        seen = (await core.next())["object"]
        assert (seen["kind"], seen["apiVersion"], bool(seen["message"])) == ("Event", "v1", True)


async def test_a_series_is_patched_and_nothing_else(api: Api) -> None:
    await api.created(NEW, event())
    series = {"count": 2, "lastObservedTime": "2026-01-02T03:05:05.000006Z"}
    patched = await api.patch(f"{NEW}/e", {"series": series})
    assert patched.body["series"] == series
    assert (await api.patch(f"{NEW}/e", {"series": {"count": 1}})).status == 422
    assert (await api.patch(f"{NEW}/e", {"note": "other"})).status == 422
    assert (await api.patch(f"{CORE}/e", {"message": "other"})).status == 200
    put = await api.put(f"{NEW}/e", {**event(note="other"), "series": {**series, "count": 3}})
    assert put.body["series"]["count"] == 3


@pytest.mark.parametrize(
    "changes",
    [
        {"eventTime": None},
        {"reportingController": ""},
        {"reportingInstance": ""},
        {"action": ""},
        {"reason": ""},
        {"type": "Strange"},
        {"note": "x" * 1025},
        {"action": "x" * 129},
        {"deprecatedCount": 1},
        {"series": {"count": 1, "lastObservedTime": "2026-01-02T03:05:05.000006Z"}},
    ],
)
async def test_new_events_are_checked_strictly(api: Api, changes: Object) -> None:
    answer = await api.post(NEW, event(**changes))
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")


@pytest.mark.parametrize("series", ["x", 5, [1], {"count": "two"}, {"count": {}}])
async def test_a_series_that_cannot_be_read_is_refused(api: Api, series: Any) -> None:
    await api.created(NEW, event())
    assert (await api.post(NEW, event("other", series=series))).status == 400
    assert (await api.patch(f"{NEW}/e", {"series": series})).status == 400


async def test_an_event_lives_where_its_object_does(api: Api) -> None:
    elsewhere = {"involvedObject": {"namespace": "kube-system", "name": "p"}, "metadata": {"name": "e"}}
    assert (await api.post(CORE, elsewhere)).status == 422
    about_a_node = event(regarding={"kind": "Node", "name": "n"})
    assert (await api.post(NEW, about_a_node)).status == 201
    other = NEW.replace("default", "kube-public")
    assert (await api.post(other, about_a_node)).status == 422


async def test_leader_changes_are_told_on_the_lease(api: Api) -> None:
    body = event(regarding={"kind": "Lease", "namespace": "kube-system", "name": "x"}, reason="LeaderElection")
    assert (await api.post(NEW.replace("default", "kube-system"), body)).status == 201
