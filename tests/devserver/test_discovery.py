"""What the server says about itself."""

from __future__ import annotations

from tests.devserver.api import Api

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


async def test_versions_and_health(api: Api) -> None:
    version = (await api.get("/version")).body
    assert (version["major"], version["minor"], version["gitVersion"]) == ("1", "36", "v1.36.0")
    for path in ("/healthz", "/livez", "/readyz"):
        assert (await api.get(path)).body == b"ok"
    assert "/apis/apps/v1" in (await api.get("/")).body["paths"]


async def test_groups_and_resources(api: Api) -> None:
    assert (await api.get("/api")).body["versions"] == ["v1"]
    groups = {group["name"]: group for group in (await api.get("/apis")).body["groups"]}
    assert groups["apps"]["preferredVersion"] == {"groupVersion": "apps/v1", "version": "v1"}
    assert groups["scheduling.k8s.io"]["preferredVersion"]["version"] == "v1"
    assert (await api.get("/apis/apps")).body["kind"] == "APIGroup"
    core = (await api.get("/api/v1")).body
    assert core["groupVersion"] == "v1"
    by_name = {resource["name"]: resource for resource in core["resources"]}
    assert by_name["pods"]["shortNames"] == ["po"]
    assert by_name["pods/eviction"] == {
        "name": "pods/eviction",
        "singularName": "",
        "namespaced": True,
        "kind": "Eviction",
        "verbs": ["create"],
        "group": "policy",
        "version": "v1",
    }
    assert by_name["nodes"]["namespaced"] is False
    assert "deletecollection" not in by_name["namespaces"]["verbs"]
    assert (await api.get("/api/v2")).status == 404
    assert (await api.get("/apis/nothing")).status == 404


async def test_aggregated_discovery(api: Api) -> None:
    answer = await api.call("GET", "/apis", headers={"Accept": AGGREGATED})
    assert answer.headers["Content-Type"] == "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    assert answer.body["kind"] == "APIGroupDiscoveryList"
    groups = {item["metadata"]["name"]: item["versions"] for item in answer.body["items"]}
    [apps] = groups["apps"]
    by_name = {resource["resource"]: resource for resource in apps["resources"]}
    assert by_name["deployments"]["scope"] == "Namespaced"
    scale = next(s for s in by_name["deployments"]["subresources"] if s["subresource"] == "scale")
    assert scale["responseKind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    [core] = (await api.call("GET", "/api", headers={"Accept": AGGREGATED})).body["items"]
    assert core["versions"][0]["version"] == "v1"


async def test_openapi_documents(api: Api) -> None:
    index = (await api.get("/openapi/v3")).body["paths"]
    path, _, query = index["apis/apps/v1"]["serverRelativeURL"].partition("?")
    assert query.startswith("hash=")
    document = (await api.get(path)).body
    schemas = document["components"]["schemas"]
    spec = schemas["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]
    assert spec["template"] == {"$ref": "#/components/schemas/io.k8s.api.core.v1.PodTemplateSpec"}
    assert "io.k8s.api.core.v1.PodSpec" in schemas
    patch = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert "fieldValidation" in [parameter["name"] for parameter in patch["parameters"]]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert (await api.get("/openapi/v3/apis/nothing/v1")).status == 404
    second = (await api.get("/openapi/v2")).body
    assert second["swagger"] == "2.0"
    assert "io.k8s.api.core.v1.Pod" in second["definitions"]
