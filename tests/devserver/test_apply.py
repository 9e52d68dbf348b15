"""Server-side apply: who owns what, conflicts, and what a manager gives up."""

from __future__ import annotations

from typing import Any

from tests.devserver.api import APPLY, Answer, Api, Object

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
SERVICES = "/api/v1/namespaces/default/services"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
KINDS = {CONFIG_MAPS: ("v1", "ConfigMap"), SERVICES: ("v1", "Service"), DEPLOYMENTS: ("apps/v1", "Deployment")}


async def apply(api: Api, manager: str, body: Object, path: str = CONFIG_MAPS, **query: str) -> Answer:
    api_version, kind = KINDS[path]
    full = {"apiVersion": api_version, "kind": kind, **body}
    name = body["metadata"]["name"]
    return await api.patch(f"{path}/{name}", full, APPLY, fieldManager=manager, **query)


def data(**values: str) -> Object:
    return {"metadata": {"name": "c"}, "data": values}


def owners(obj: Object) -> dict[tuple[str, str], Any]:
    return {(entry["manager"], entry["operation"]): entry["fieldsV1"] for entry in obj["metadata"]["managedFields"]}


async def test_applying_creates_and_records_the_owner(api: Api) -> None:
    answer = await apply(api, "me", data(a="1"))
    assert answer.status == 201
    assert owners(answer.body) == {("me", "Apply"): {"f:data": {".": {}, "f:a": {}}}}
    again = await apply(api, "me", data(a="1"))
    assert again.status == 200
    assert again.body["metadata"]["resourceVersion"] == answer.body["metadata"]["resourceVersion"]


async def test_fields_that_a_manager_leaves_out_go_unless_shared(api: Api) -> None:
    await apply(api, "me", data(a="1", b="2"))
    await apply(api, "you", data(b="2", c="3"))
    answer = await apply(api, "me", data())
    assert answer.body["data"] == {"b": "2", "c": "3"}
    assert list(owners(answer.body)) == [("you", "Apply")]


async def test_a_conflict_names_owner_and_field(api: Api) -> None:
    await apply(api, "me", data(a="1", b="1"))
    answer = await apply(api, "you", data(a="2", b="1"))
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    assert answer.body["message"] == 'Apply failed with 1 conflict: conflict with "me": .data.a'
    assert answer.body["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "me"', "field": ".data.a"}
    ]
    forced = await apply(api, "you", data(a="2", b="1"), force="true")
    assert forced.body["data"] == {"a": "2", "b": "1"}
    assert owners(forced.body)["me", "Apply"] == {"f:data": {".": {}, "f:b": {}}}


async def test_ordinary_writes_take_ownership_of_what_they_change(api: Api) -> None:
    await apply(api, "me", data(a="1", b="1"))
    patched = await api.patch(f"{CONFIG_MAPS}/c", {"data": {"a": "2"}}, fieldManager="editor")
    assert owners(patched.body) == {
        ("me", "Apply"): {"f:data": {".": {}, "f:b": {}}},
        ("editor", "Update"): {"f:data": {"f:a": {}}},
    }
    answer = await apply(api, "me", data(a="1", b="1"))
    assert 'conflict with "editor"' in answer.body["message"]


async def test_what_was_there_before_belongs_to_nobody_in_particular(api: Api) -> None:
    await api.created(CONFIG_MAPS, data(a="1", b="1"))
    answer = await apply(api, "me", data(a="2"))
    assert 'conflict with "before-first-apply"' in answer.body["message"]
    answer = await apply(api, "me", data(a="1"))
    assert answer.status == 200
    assert ("before-first-apply", "Update") in owners(answer.body)


async def test_client_side_apply_hands_over_without_conflict(api: Api) -> None:
    last = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":"1"}}'
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": last}
    await api.created(CONFIG_MAPS, {"metadata": {"name": "c", "annotations": annotations}, "data": {"a": "1"}})
    for other in ("me", "kubectl-like"):
        assert (await apply(api, other, data(a="2"))).status == 409
    assert (await apply(api, "kubectl", data(a="2"))).body["data"] == {"a": "2"}
    assert (await apply(api, "me", data(a="3"))).body["message"] == (
        'Apply failed with 1 conflict: conflict with "kubectl": .data.a'
    )


async def test_what_others_changed_since_is_not_handed_over(api: Api) -> None:
    last = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":"1","b":"1"}}'
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": last}
    live = {"metadata": {"name": "c", "annotations": annotations}, "data": {"a": "9", "b": "8"}}
    await api.created(CONFIG_MAPS, live)
    answer = await apply(api, "kubectl", data(a="2", b="2"))
    assert answer.body["message"] == (
        'Apply failed with 2 conflicts: conflicts with "before-first-apply" using v1:\n- .data.a\n- .data.b'
    )


async def test_a_conflict_names_the_subresource_through_which_a_field_was_set(api: Api) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    deployment = {"metadata": {"name": "d"}, "spec": spec}
    assert (await apply(api, "me", deployment, DEPLOYMENTS)).status == 201
    await api.patch(f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 2}}, fieldManager="scaler")
    answer = await apply(api, "me", deployment, DEPLOYMENTS)
    assert 'conflict with "scaler" with subresource "scale" using apps/v1: .spec.replicas' in answer.body["message"]


async def test_items_of_keyed_lists_have_owners_of_their_own(api: Api) -> None:
    def ports(*numbers: int) -> Object:
        listed = [{"port": number, "name": f"p{number}"} for number in numbers]
        return {"metadata": {"name": "s"}, "spec": {"ports": listed}}

    first = await apply(api, "me", ports(80), SERVICES)
    key = 'k:{"port":80,"protocol":"TCP"}'
    assert owners(first.body)["me", "Apply"]["f:spec"]["f:ports"][key] == {".": {}, "f:name": {}, "f:port": {}}
    second = await apply(api, "you", ports(443), SERVICES)
    assert [port["port"] for port in second.body["spec"]["ports"]] == [80, 443]
    third = await apply(api, "me", ports(81), SERVICES)
    assert third.status == 200, third.body
    assert [port["port"] for port in third.body["spec"]["ports"]] == [443, 81]
    assert third.body["spec"]["clusterIP"] == first.body["spec"]["clusterIP"]


async def test_managed_fields_can_be_reset_but_not_applied(api: Api) -> None:
    await apply(api, "me", data(a="1"))
    reset = await api.patch(f"{CONFIG_MAPS}/c", {"metadata": {"managedFields": [{}]}})
    assert "managedFields" not in reset.body["metadata"]
    body = {"metadata": {"name": "c", "managedFields": [{"manager": "x", "operation": "Apply"}]}}
    assert (await apply(api, "me", body)).status == 400


async def test_an_apply_must_say_what_and_who(api: Api) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", **data(a="1")}
    assert (await api.patch(f"{CONFIG_MAPS}/c", body, APPLY)).status == 422
    assert (await api.patch(f"{CONFIG_MAPS}/c", data(a="1"), APPLY, fieldManager="me")).status == 400
    unknown = {**body, "dato": {}}
    answer = await api.patch(f"{CONFIG_MAPS}/c", unknown, APPLY, fieldManager="me", fieldValidation="Strict")
    assert answer.status == 400
    yaml = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: '1'}\n"
    assert (await api.patch(f"{CONFIG_MAPS}/c", yaml, APPLY, fieldManager="me")).status == 201
    stale = {**body, "metadata": {"name": "c", "resourceVersion": "1"}}
    assert (await api.patch(f"{CONFIG_MAPS}/c", stale, APPLY, fieldManager="me")).status == 409
    status = await api.patch(f"{CONFIG_MAPS}/absent/status", body, APPLY, fieldManager="me")
    assert status.status == 404


async def test_status_is_applied_apart(api: Api) -> None:
    path = "/api/v1/nodes"
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    await api.created(path, {"metadata": {"name": "n"}})
    condition = {"type": "Fine", "status": "True"}
    body = {**node, "status": {"conditions": [condition]}}
    answer = await api.patch(f"{path}/n/status", body, APPLY, fieldManager="agent")
    assert answer.body["status"]["conditions"] == [condition]
    [entry] = [entry for entry in answer.body["metadata"]["managedFields"] if entry["manager"] == "agent"]
    assert entry["subresource"] == "status"
    assert list(entry["fieldsV1"]) == ["f:status"]
    await api.patch(f"{path}/n/status", node, APPLY, fieldManager="agent")
    assert "conditions" not in (await api.get(f"{path}/n")).body["status"]
