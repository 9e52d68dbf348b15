import json
from typing import Any

from kube_pyscheduler.transport import requests
from kube_pyscheduler.transport.errors import NotFound
from tests.contract.cluster import Cluster, eventually

RBAC = "/apis/rbac.authorization.k8s.io/v1"


async def service_account(cluster: Cluster) -> str:
    """A new service account's token."""
    path = f"/api/v1/namespaces/{cluster.namespace}/serviceaccounts"
    await cluster.create(path, {"apiVersion": "v1", "kind": "ServiceAccount"}, "scraper")
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}

    async def token() -> str | None:
        try:
            answer = await cluster.call("POST", f"{path}/scraper/token", request)
        except NotFound:
            return None
        return str(answer["status"]["token"])

    return await eventually(token)


async def review(cluster: Cluster, token: str) -> dict[str, Any]:
    status: dict[str, Any] = json.loads(await cluster.client.send(requests.token_review(token)))["status"]
    return status


async def may_scrape(cluster: Cluster, user: dict[str, Any]) -> bool:
    request = requests.subject_access_review(
        user=user["username"],
        uid=user.get("uid", ""),
        groups=user.get("groups", []),
        extra=user.get("extra", {}),
        path="/metrics",
        verb="get",
    )
    return bool(json.loads(await cluster.client.send(request))["status"]["allowed"])


async def test_a_token_tells_whose_it_is(cluster: Cluster) -> None:
    status = await review(cluster, await service_account(cluster))
    assert status["authenticated"] is True
    assert status["user"]["username"] == f"system:serviceaccount:{cluster.namespace}:scraper"
    assert f"system:serviceaccounts:{cluster.namespace}" in status["user"]["groups"]


async def test_a_token_that_nobody_gave(cluster: Cluster) -> None:
    assert not (await review(cluster, "nonsense")).get("authenticated", False)


async def test_access_is_as_the_roles_say(cluster: Cluster) -> None:
    user = (await review(cluster, await service_account(cluster)))["user"]
    assert not await may_scrape(cluster, user)
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
    }
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": cluster.namespace},
        "subjects": [{"kind": "ServiceAccount", "name": "scraper", "namespace": cluster.namespace}],
    }
    await cluster.create(f"{RBAC}/clusterroles", role, cluster.namespace)
    await cluster.create(f"{RBAC}/clusterrolebindings", binding, cluster.namespace)

    async def allowed() -> bool | None:
        return await may_scrape(cluster, user) or None

    assert await eventually(allowed)
