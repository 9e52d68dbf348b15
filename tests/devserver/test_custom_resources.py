"""Kinds that come and go with their definitions."""

from __future__ import annotations

from tests.devserver.api import APPLY, STRATEGIC, Api, Object

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "/apis/example.com"
WIDGETS = f"{GROUP}/v1/namespaces/default/widgets"


def definition() -> Object:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
    column = {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}
    first = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [column],
    }
    second = {"name": "v1beta1", "served": True, "storage": False, "schema": {"openAPIV3Schema": schema}}
    return {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [first, second],
        },
    }


async def test_a_definition_is_established_and_its_kind_served(api: Api) -> None:
    assert (await api.get(WIDGETS)).status == 404
    await api.created(DEFINITIONS, definition())
    established = (await api.get(f"{DEFINITIONS}/widgets.example.com")).body["status"]
    assert {c["type"]: c["status"] for c in established["conditions"]} == {
        "NamesAccepted": "True",
        "Established": "True",
    }
    assert established["storedVersions"] == ["v1"]
    [resource, status] = (await api.get(f"{GROUP}/v1")).body["resources"]
    assert (resource["kind"], resource["shortNames"], status["name"]) == ("Widget", ["wd"], "widgets/status")
    schemas = (await api.get("/openapi/v3/apis/example.com/v1")).body["components"]["schemas"]
    assert schemas["com.example.v1.Widget"]["properties"]["spec"]["properties"] == {"size": {"type": "integer"}}


async def test_custom_objects_behave_like_others(api: Api) -> None:
    await api.created(DEFINITIONS, definition())
    created = await api.created(WIDGETS, {"metadata": {"name": "w"}, "spec": {"size": 1}, "anything": {"else": None}})
    assert (created["kind"], created["apiVersion"], created["anything"]) == ("Widget", "example.com/v1", {"else": None})
    assert created["metadata"]["generation"] == 1
    async with api.watch(WIDGETS) as watch:
        assert await watch.names(1) == [("ADDED", "w")]
        changed = await api.patch(f"{WIDGETS}/w", {"spec": {"size": 2}, "status": {"ignored": True}})
        assert changed.body["metadata"]["generation"] == 2
        assert "status" not in changed.body
        reported = await api.patch(f"{WIDGETS}/w/status", {"status": {"up": True}, "spec": {"size": 9}})
        assert (reported.body["spec"], reported.body["status"]) == ({"size": 2}, {"up": True})
        assert reported.body["metadata"]["generation"] == 2
        assert await watch.names(2) == [("MODIFIED", "w")] * 2
    assert (await api.post(WIDGETS, {"metadata": {"name": "x", "labels": ["y"]}})).status == 400
    unversioned = await api.put(f"{WIDGETS}/w", {"metadata": {"name": "w"}, "spec": {}})
    assert unversioned.status == 422
    assert (await api.patch(f"{WIDGETS}/w", {}, STRATEGIC)).status == 415
    other = (await api.get(WIDGETS.replace("v1", "v1beta1") + "/w")).body
    assert (other["apiVersion"], other["spec"]) == ("example.com/v1beta1", {"size": 2})
    table = await api.call("GET", WIDGETS, headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"})
    assert table.body["rows"][0]["cells"] == ["w", 2]


async def test_custom_objects_can_be_applied(api: Api) -> None:
    await api.created(DEFINITIONS, definition())
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}
    assert (await api.patch(f"{WIDGETS}/w", body, APPLY, fieldManager="me")).status == 201
    other = {**body, "spec": {"size": 2}}
    refused = await api.patch(f"{WIDGETS}/w", other, APPLY, fieldManager="you")
    assert refused.body["details"]["causes"][0]["field"] == ".spec.size"


async def test_objects_go_with_their_definition(api: Api) -> None:
    await api.created(DEFINITIONS, definition())
    await api.created(WIDGETS, {"metadata": {"name": "w"}})
    await api.delete(f"{DEFINITIONS}/widgets.example.com")
    assert (await api.get(WIDGETS)).status == 404
    await api.created(DEFINITIONS, definition())
    assert (await api.get(WIDGETS)).body["items"] == []


async def test_a_definition_that_cannot_be_served_is_refused_and_not_kept(api: Api) -> None:
    wrong = definition()
    wrong["spec"].update(group="", scope="Everywhere", names={"plural": "widgets"})
    wrong["spec"]["versions"][0].update(storage=False, additionalPrinterColumns=[{"name": "Size"}])
    answer = await api.post(DEFINITIONS, wrong)
    assert answer.status == 422
    assert [cause["field"] for cause in answer.body["details"]["causes"]] == [
        "metadata.name",
        "spec.group",
        "spec.names.kind",
        "spec.scope",
        "spec.versions[0].additionalPrinterColumns[0].type",
        "spec.versions[0].additionalPrinterColumns[0].jsonPath",
        "spec.versions",
    ]
    assert (await api.post(DEFINITIONS, {"metadata": {"name": "a.b"}, "spec": {}})).status == 422
    assert (await api.get(DEFINITIONS)).body["items"] == []
