"""Creating, reading, changing and deleting over the socket, and the Status errors."""

from __future__ import annotations

import pytest

from tests.devserver.api import JSON_PATCH, MERGE, NODES, PODS, STRATEGIC, Api, make_pod

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
CONFIG_MAP = {"metadata": {"name": "c"}, "data": {"a": "1"}}


async def test_a_created_object_has_what_the_server_gives(api: Api) -> None:
    created = await api.created(CONFIG_MAPS, {"metadata": {"generateName": "c-", "uid": "mine", "generation": 7}})
    metadata = created["metadata"]
    assert created["kind"] == "ConfigMap"
    assert created["apiVersion"] == "v1"
    assert metadata["name"].startswith("c-")
    assert len(metadata["name"]) == 7
    assert metadata["uid"] != "mine"
    assert "generation" not in metadata
    assert metadata["creationTimestamp"].endswith("Z")
    read = await api.get(f"{CONFIG_MAPS}/{metadata['name']}")
    assert read.body == created


async def test_items_of_a_list_carry_no_type(api: Api) -> None:
    await api.created(CONFIG_MAPS, CONFIG_MAP)
    listed = (await api.get(CONFIG_MAPS)).body
    assert listed["kind"] == "ConfigMapList"
    [item] = listed["items"]
    assert "kind" not in item
    assert item["data"] == {"a": "1"}


async def test_an_existing_name_is_refused(api: Api) -> None:
    await api.created(CONFIG_MAPS, CONFIG_MAP)
    answer = await api.post(CONFIG_MAPS, CONFIG_MAP)
    assert answer.status == 409
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'configmaps "c" already exists',
        "reason": "AlreadyExists",
        "details": {"name": "c", "kind": "configmaps"},
        "code": 409,
    }


async def test_what_is_absent_is_not_found_with_group_and_kind(api: Api) -> None:
    answer = await api.get("/apis/apps/v1/namespaces/default/deployments/x")
    assert answer.status == 404
    assert answer.body["reason"] == "NotFound"
    assert answer.body["details"] == {"name": "x", "group": "apps", "kind": "deployments"}
    for call in (api.delete(f"{PODS}/x"), api.patch(f"{PODS}/x", {}), api.put(f"{PODS}/x", make_pod("x"))):
        assert (await call).status == 404


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/api/v1/podz", 404),
        ("GET", "/apis/nothing/v1/pods", 404),
        ("GET", "/apis/apps/v1beta1/deployments", 404),
        ("GET", f"{PODS}/a/nothing", 404),
        ("GET", "/api/v1/namespaces/default/nodes", 404),
        ("GET", "/api/v1/pods/a", 404),
        ("POST", f"{PODS}/a", 405),
        ("PUT", PODS, 405),
        ("POST", f"{PODS}/a/status", 405),
        ("GET", f"{PODS}/a/binding", 405),
        ("DELETE", f"{PODS}/a/status", 405),
        ("DELETE", "/api/v1/namespaces", 405),
        ("PUT", "/version", 405),
        ("GET", "/apis/authorization.k8s.io/v1/subjectaccessreviews", 405),
        ("GET", "/nothing", 404),
    ],
)
async def test_paths_and_methods_that_are_not_served(api: Api, method: str, path: str, code: int) -> None:
    answer = await api.call(method, path)
    assert answer.status == code
    assert answer.body["kind"] == "Status"


async def test_bodies_that_cannot_be_read(api: Api) -> None:
    assert (await api.post(CONFIG_MAPS, b"{")).status == 400
    assert (await api.post(CONFIG_MAPS, b"[]")).status == 400
    wrong = await api.call("POST", CONFIG_MAPS, b"x", headers={"Content-Type": "application/cbor"})
    assert (wrong.status, wrong.body["reason"]) == (415, "UnsupportedMediaType")
    big = await api.post(CONFIG_MAPS, {**CONFIG_MAP, "data": {"a": "x" * 3_200_000}})
    assert (big.status, big.body["reason"]) == (413, "RequestEntityTooLarge")
    for body in ({"metadata": "x"}, {"metadata": {"name": 5}}, {"metadata": {"labels": ["x"]}}):
        assert (await api.post(CONFIG_MAPS, body)).status == 400
    await api.created(PODS, make_pod())
    assert (await api.post(f"{PODS}/a/binding", {"metadata": {"name": "a"}, "target": "n"})).status == 400
    assert (await api.post(f"{PODS}/a/eviction", {"metadata": {"name": "a"}, "deleteOptions": []})).status == 400
    assert (await api.delete(f"{PODS}/a", {"preconditions": "x"})).status == 400
    assert (await api.delete(f"{PODS}/a", {"gracePeriodSeconds": "soon"})).status == 400
    reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    assert (await api.post(reviews, {"spec": {"user": 5}})).status == 400
    for patch in ({"metadata": "x"}, {"metadata": {"labels": "x"}}, {"spec": {"containers": "x"}}):
        for kind in (MERGE, STRATEGIC):
            assert (await api.patch(f"{PODS}/a", patch, kind)).status == 400, (patch, kind)
    assert (await api.patch(f"{PODS}/a", {"spec": {"containers": ["x"]}}, STRATEGIC)).status == 400
    yaml = b"metadata: {name: y, annotations: {at: 2026-01-01T00:00:00Z}}\ndata: {a: '1'}\n"
    created = await api.call("POST", CONFIG_MAPS, yaml, headers={"Content-Type": "application/yaml"})
    assert created.body["metadata"]["annotations"] == {"at": "2026-01-01T00:00:00Z"}


async def test_only_json_and_yaml_are_written(api: Api) -> None:
    protobuf = "application/vnd.kubernetes.protobuf"
    refused = await api.call("GET", CONFIG_MAPS, headers={"Accept": protobuf})
    assert (refused.status, refused.body["reason"]) == (406, "NotAcceptable")
    served = await api.call("GET", CONFIG_MAPS, headers={"Accept": f"{protobuf},application/json"})
    assert served.body["kind"] == "ConfigMapList"
    text = await api.call("GET", CONFIG_MAPS, headers={"Accept": "application/yaml"})
    assert text.body.startswith(b"kind: ConfigMapList")


async def test_the_path_decides_namespace_and_name(api: Api) -> None:
    other = {"metadata": {"name": "c", "namespace": "kube-system"}}
    assert (await api.post(CONFIG_MAPS, other)).status == 400
    await api.created(CONFIG_MAPS, CONFIG_MAP)
    assert (await api.put(f"{CONFIG_MAPS}/c", {"metadata": {"name": "d"}})).status == 400
    assert (await api.put(f"{CONFIG_MAPS}/c", {"kind": "Secret", "metadata": {"name": "c"}})).status == 400
    assert (await api.post("/api/v1/namespaces/nowhere/configmaps", CONFIG_MAP)).status == 404
    assert (await api.patch(f"{CONFIG_MAPS}/c", {"metadata": {"name": "d"}})).status == 400


async def test_a_stale_update_conflicts_and_an_unconditional_one_wins(api: Api) -> None:
    created = await api.created(CONFIG_MAPS, CONFIG_MAP)
    updated = await api.put(f"{CONFIG_MAPS}/c", {**created, "data": {"a": "2"}})
    assert updated.status == 200
    stale = await api.put(f"{CONFIG_MAPS}/c", {**created, "data": {"a": "3"}})
    assert (stale.status, stale.body["reason"]) == (409, "Conflict")
    assert "the object has been modified" in stale.body["message"]
    stale = await api.patch(f"{CONFIG_MAPS}/c", {"metadata": {"resourceVersion": "1"}})
    assert stale.status == 409
    other = await api.put(f"{CONFIG_MAPS}/c", {"metadata": {"name": "c", "uid": "other"}})
    assert other.status == 409
    unconditional = await api.put(f"{CONFIG_MAPS}/c", CONFIG_MAP)
    assert unconditional.body["data"] == {"a": "1"}
    assert unconditional.body["metadata"]["uid"] == created["metadata"]["uid"]


async def test_leases_need_the_version_they_were_read_at(api: Api) -> None:
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}}
    created = await api.created(leases, lease)
    unversioned = await api.put(f"{leases}/l", lease)
    assert unversioned.status == 422
    assert unversioned.body["details"]["causes"][0]["field"] == "metadata.resourceVersion"
    taken = {**created, "spec": {**created["spec"], "holderIdentity": "b"}}
    assert (await api.put(f"{leases}/l", taken)).status == 200
    assert (await api.put(f"{leases}/l", taken)).status == 409
    assert (await api.put(f"{leases}/absent", {"metadata": {"name": "absent", "uid": "1"}})).status == 409
    assert (await api.put(f"{leases}/absent", {"metadata": {"name": "absent"}})).status == 201
    invalid = await api.post(leases, {"metadata": {"name": "m"}, "spec": {"leaseDurationSeconds": 0}})
    assert invalid.status == 422


async def test_the_four_patches(api: Api) -> None:
    await api.created(PODS, make_pod(tolerations=[{"key": "a", "operator": "Exists"}]))
    path = f"{PODS}/a"
    merged = await api.patch(path, {"metadata": {"labels": {"x": "1", "y": None}}}, MERGE)
    assert merged.body["metadata"]["labels"] == {"x": "1"}
    strategic = await api.patch(path, {"spec": {"containers": [{"name": "c", "image": "nginx:2"}]}}, STRATEGIC)
    assert strategic.body["spec"]["containers"][0]["image"] == "nginx:2"
    added = await api.patch(path, [{"op": "add", "path": "/metadata/labels/z", "value": "2"}], JSON_PATCH)
    assert added.body["metadata"]["labels"] == {"x": "1", "z": "2"}
    impossible = await api.patch(path, [{"op": "remove", "path": "/metadata/labels/q"}], JSON_PATCH)
    assert (impossible.status, impossible.body["reason"]) == (422, "Invalid")
    assert (await api.patch(path, {}, "text/plain")).status == 415
    assert (await api.patch(path, [], MERGE)).status == 400
    unchanged = await api.patch(path, {"metadata": {"labels": {"x": "1"}}}, MERGE)
    assert unchanged.body["metadata"]["resourceVersion"] == added.body["metadata"]["resourceVersion"]


async def test_the_status_has_a_door_of_its_own(api: Api) -> None:
    node = await api.created(NODES, {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4"}}})
    assert node["status"]["allocatable"] == {"cpu": "4"}
    by_status = await api.patch(
        f"{NODES}/n/status", {"spec": {"unschedulable": True}, "status": {"allocatable": {"cpu": "3"}}}
    )
    assert by_status.body["status"]["allocatable"] == {"cpu": "3"}
    assert "unschedulable" not in by_status.body["spec"]
    by_spec = await api.patch(f"{NODES}/n", {"spec": {"unschedulable": True}, "status": {"allocatable": {"cpu": "2"}}})
    assert by_spec.body["spec"]["unschedulable"] is True
    assert by_spec.body["status"]["allocatable"] == {"cpu": "3"}
    assert (await api.get(f"{NODES}/n/status")).body == by_spec.body


async def test_the_generation_counts_changes_of_the_desired_state(api: Api) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": make_pod()["spec"]}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    created = await api.created(path, {"metadata": {"name": "d"}, "spec": spec})
    assert created["metadata"]["generation"] == 1
    assert created["spec"]["replicas"] == 1
    labelled = await api.patch(f"{path}/d", {"metadata": {"labels": {"x": "y"}}})
    assert labelled.body["metadata"]["generation"] == 1
    reported = await api.patch(f"{path}/d/status", {"status": {"replicas": 1}})
    assert reported.body["metadata"]["generation"] == 1
    scaled = await api.patch(f"{path}/d", {"spec": {"replicas": 3}})
    assert scaled.body["metadata"]["generation"] == 2


async def test_the_scale_of_a_workload(api: Api) -> None:
    path = "/apis/apps/v1/namespaces/default/replicasets"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": make_pod()["spec"]}
    spec = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    await api.created(path, {"metadata": {"name": "r"}, "spec": spec})
    scale = (await api.get(f"{path}/r/scale")).body
    assert (scale["kind"], scale["spec"], scale["status"]["selector"]) == ("Scale", {"replicas": 2}, "a=b")
    put = await api.put(f"{path}/r/scale", {**scale, "spec": {"replicas": 5}})
    assert put.body["spec"] == {"replicas": 5}
    assert (await api.put(f"{path}/r/scale", {**scale, "spec": {"replicas": 6}})).status == 409
    patched = await api.patch(f"{path}/r/scale", {"spec": {"replicas": 1}})
    assert patched.body["spec"] == {"replicas": 1}
    assert (await api.get(f"{path}/r")).body["spec"]["replicas"] == 1
    assert (await api.patch(f"{path}/r/scale", {"spec": {"replicas": -1}})).status == 422


async def test_a_dry_run_changes_nothing(api: Api) -> None:
    assert (await api.post(CONFIG_MAPS, CONFIG_MAP, dryRun="All")).status == 201
    assert (await api.get(f"{CONFIG_MAPS}/c")).status == 404
    await api.created(CONFIG_MAPS, CONFIG_MAP)
    assert (await api.post(CONFIG_MAPS, CONFIG_MAP, dryRun="All")).status == 409
    patched = await api.patch(f"{CONFIG_MAPS}/c", {"data": {"a": "2"}}, dryRun="All")
    assert patched.body["data"] == {"a": "2"}
    assert (await api.delete(f"{CONFIG_MAPS}/c", dryRun="All")).status == 200
    assert (await api.get(f"{CONFIG_MAPS}/c")).body["data"] == {"a": "1"}
    assert (await api.post(CONFIG_MAPS, CONFIG_MAP, dryRun="Some")).status == 422


async def test_unknown_fields_are_warned_of_refused_or_ignored(api: Api) -> None:
    body = {"metadata": {"name": "w"}, "datum": {"a": "1"}}
    warned = await api.post(CONFIG_MAPS, body)
    assert warned.status == 201
    assert warned.headers["Warning"] == '299 - "unknown field \\"datum\\""'
    assert "datum" not in warned.body
    refused = await api.post(CONFIG_MAPS, {**body, "metadata": {"name": "s"}}, fieldValidation="Strict")
    assert refused.status == 400
    ignored = await api.post(CONFIG_MAPS, {**body, "metadata": {"name": "i"}}, fieldValidation="Ignore")
    assert "Warning" not in ignored.headers


async def test_invalid_objects_are_refused_with_a_cause_for_each_field(api: Api) -> None:
    answer = await api.post(CONFIG_MAPS, {"metadata": {"name": "Bad_Name", "labels": {"a b": "c"}}})
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert answer.body["details"]["kind"] == "ConfigMap"
    assert [(cause["field"], cause["reason"]) for cause in answer.body["details"]["causes"]] == [
        ("metadata.name", "FieldValueInvalid"),
        ("metadata.labels", "FieldValueInvalid"),
    ]
    assert answer.body["message"].startswith(
        'ConfigMap "Bad_Name" is invalid: [metadata.name: Invalid value: "Bad_Name"'
    )
    nameless = await api.post(CONFIG_MAPS, {"metadata": {}})
    assert nameless.status == 422


async def test_secrets_take_plain_text(api: Api) -> None:
    body = {"metadata": {"name": "s"}, "data": {"a": "MQ=="}, "stringData": {"b": "2"}}
    created = await api.created("/api/v1/namespaces/default/secrets", body)
    assert (created["data"], created["type"]) == ({"a": "MQ==", "b": "Mg=="}, "Opaque")
    assert "stringData" not in created


async def test_selectors_of_workloads_cannot_change(api: Api) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": make_pod()["spec"]}
    mismatch = {"selector": {"matchLabels": {"a": "c"}}, "template": template}
    assert (await api.post(path, {"metadata": {"name": "d"}, "spec": mismatch})).status == 422
    await api.created(path, {"metadata": {"name": "d"}, "spec": {**mismatch, "selector": {"matchLabels": {"a": "b"}}}})
    change = await api.patch(f"{path}/d", {"spec": {"selector": {"matchLabels": {"x": "y"}}}})
    assert change.status == 422
