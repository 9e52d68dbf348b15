"""Tokens, TLS, RBAC, impersonation, and the reviews that ask about them."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from kube_pyscheduler.devserver.access.tokens import TokenFileError, read_token_file
from kube_pyscheduler.devserver.access.users import AUTHENTICATED, User
from kube_pyscheduler.devserver.app import DevServer, serve
from kube_pyscheduler.kit.clock import FakeClock
from tests.devserver.api import NODES, PODS, Api, Object, make_pod

RBAC = "/apis/rbac.authorization.k8s.io/v1"
AUTHENTICATION = "/apis/authentication.k8s.io/v1"
AUTHORIZATION = "/apis/authorization.k8s.io/v1"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


@pytest.fixture
async def strict() -> AsyncIterator[DevServer]:
    users = {"t-jane": User("jane", ("devs", AUTHENTICATED), "1"), "t-bob": User("bob", (AUTHENTICATED,))}
    server = await serve(tokens=users, rbac=True, tls=True, clock=FakeClock(1_750_000_000))
    yield server
    await server.stop()


@pytest.fixture
async def secure(strict: DevServer) -> AsyncIterator[Api]:
    trust = ssl.create_default_context(cadata=strict.authority.decode())
    trust.verify_flags |= ssl.VERIFY_X509_STRICT
    connector = aiohttp.TCPConnector(ssl=trust)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=10)) as session:
        yield Api(strict, session)


async def grant(api: Api, name: str, *rules: Object, subject: Object, namespace: str = "") -> None:
    place = f"{RBAC}/namespaces/{namespace}" if namespace else RBAC
    kind = "Role" if namespace else "ClusterRole"
    roles, bindings = ("roles", "rolebindings") if namespace else ("clusterroles", "clusterrolebindings")
    await api.created(f"{place}/{roles}", {"metadata": {"name": name}, "rules": list(rules)})
    reference = {"kind": kind, "name": name, "apiGroup": "rbac.authorization.k8s.io"}
    body = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
    await api.created(f"{place}/{bindings}", body)


def rule(verbs: str, resources: str, group: str = "", **more: list[str]) -> Object:
    return {"verbs": verbs.split(","), "apiGroups": [group], "resources": resources.split(","), **more}


JANE = {"kind": "User", "name": "jane"}


async def test_a_token_is_needed_but_for_health_and_version(secure: Api) -> None:
    nobody = secure.as_("")
    for path in ("/healthz", "/livez", "/readyz", "/version"):
        assert (await nobody.get(path)).status == 200
    for path in ("/api", NODES):
        answer = await nobody.get(path)
        assert (answer.status, answer.body["reason"]) == (401, "Unauthorized")
    assert (await secure.as_("wrong").get("/healthz")).status == 401
    assert (await secure.get(NODES)).status == 200


async def test_a_local_plain_socket_trusts_clients_without_a_token(api: Api) -> None:
    assert (await api.as_("").get(NODES)).status == 200
    assert (await api.as_("wrong").get(NODES)).status == 401


async def test_without_rules_a_user_may_only_look_around(secure: Api) -> None:
    jane = secure.as_("t-jane")
    assert (await jane.get("/api")).status == 200
    answer = await jane.get(PODS)
    assert (answer.status, answer.body["reason"]) == (403, "Forbidden")
    assert answer.body["message"] == (
        'pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "default"'
    )
    named = await jane.get(f"{NODES}/n")
    assert named.body["message"] == (
        'nodes "n" is forbidden: User "jane" cannot get resource "nodes" in API group "" at the cluster scope'
    )
    path = await jane.get("/metrics")
    assert path.body["message"] == 'forbidden: User "jane" cannot get path "/metrics"'


async def test_roles_count_in_their_namespace_and_cluster_roles_everywhere(secure: Api) -> None:
    await grant(secure, "pods", rule("list,create", "pods"), subject=JANE, namespace="default")
    group = {"kind": "Group", "name": "devs", "apiGroup": "rbac.authorization.k8s.io"}
    await grant(secure, "nodes", rule("get", "nodes"), subject=group)
    jane = secure.as_("t-jane")
    assert (await jane.get(PODS)).status == 200
    assert (await jane.post(PODS, make_pod())).status == 201
    assert (await jane.get("/api/v1/pods")).status == 403
    assert (await jane.get("/api/v1/namespaces/kube-system/pods")).status == 403
    assert (await jane.get(f"{NODES}/n")).status == 404
    assert (await jane.get(NODES)).status == 403
    assert (await secure.as_("t-bob").get(PODS)).status == 403


async def test_subresources_and_names_are_rights_of_their_own(secure: Api) -> None:
    await secure.created(PODS, make_pod())
    await grant(
        secure,
        "some",
        rule("patch", "pods/status"),
        rule("get,watch,list", "leases", "coordination.k8s.io", resourceNames=["mine"]),
        {"verbs": ["get"], "nonResourceURLs": ["/metrics", "/debug/*"]},
        subject=JANE,
    )
    jane = secure.as_("t-jane")
    assert (await jane.patch(f"{PODS}/a/status", {"status": {"phase": "Running"}})).status == 200
    assert (await jane.patch(f"{PODS}/a", {"metadata": {"labels": {"a": "b"}}})).status == 403
    assert (await jane.post(f"{PODS}/a/binding", {})).status == 403
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    assert (await jane.get(f"{leases}/mine")).status == 404
    assert (await jane.get(f"{leases}/other")).status == 403
    assert (await jane.get(leases)).status == 403
    assert (await jane.get(leases, fieldSelector="metadata.name=mine")).status == 200
    assert (await jane.get("/debug/x")).status == 404


async def test_cluster_roles_gather_others_by_label(secure: Api) -> None:
    part = {"metadata": {"name": "part", "labels": {"into": "whole"}}, "rules": [rule("list", "pods")]}
    await secure.created(f"{RBAC}/clusterroles", part)
    whole = {
        "metadata": {"name": "whole"},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"into": "whole"}}]},
    }
    await secure.created(f"{RBAC}/clusterroles", whole)
    binding = {"metadata": {"name": "w"}, "roleRef": {"kind": "ClusterRole", "name": "whole"}, "subjects": [JANE]}
    await secure.created(f"{RBAC}/clusterrolebindings", binding)
    assert (await secure.as_("t-jane").get(PODS)).status == 200
    change = await secure.patch(f"{RBAC}/clusterrolebindings/w", {"roleRef": {"name": "part"}})
    assert change.status == 422


async def token_of(api: Api, account: str, **spec: object) -> Object:
    answer = await api.post(f"{ACCOUNTS}/{account}/token", {"spec": spec})
    assert answer.status == 201, answer.body
    status: Object = answer.body["status"]
    return status


async def test_service_accounts_have_tokens_that_expire(secure: Api) -> None:
    await secure.created(ACCOUNTS, {"metadata": {"name": "robot"}})
    subject = {"kind": "ServiceAccount", "name": "robot", "namespace": "default"}
    await grant(secure, "list", rule("list", "pods"), subject=subject, namespace="default")
    issued = await token_of(secure, "robot", expirationSeconds=600)
    robot = secure.as_(issued["token"])
    assert (await robot.get(PODS)).status == 200
    clock = secure.server.registry.clock
    assert isinstance(clock, FakeClock)
    clock.advance(601)
    assert (await robot.get(PODS)).status == 401
    assert (await secure.post(f"{ACCOUNTS}/robot/token", {"spec": {"expirationSeconds": 5}})).status == 422
    assert (await secure.post(f"{ACCOUNTS}/nobody/token", {})).status == 404


async def test_a_token_dies_with_its_account(secure: Api) -> None:
    await secure.created(ACCOUNTS, {"metadata": {"name": "robot"}})
    token = (await token_of(secure, "robot"))["token"]
    assert (await secure.as_(token).get("/api")).status == 200
    assert (await secure.as_(token + "x").get("/api")).status == 401
    await secure.delete(f"{ACCOUNTS}/robot")
    await secure.created(ACCOUNTS, {"metadata": {"name": "robot"}})
    assert (await secure.as_(token).get("/api")).status == 401


async def review(api: Api, kind: str, spec: Object, group: str = AUTHORIZATION) -> Object:
    answer = await api.post(f"{group}/{kind}", {"spec": spec})
    assert answer.status == 201, answer.body
    status: Object = answer.body["status"]
    return status


async def test_token_reviews_tell_who_it_is(secure: Api) -> None:
    known = await review(secure, "tokenreviews", {"token": "t-jane"}, AUTHENTICATION)
    assert known["authenticated"] is True
    assert known["user"] == {"username": "jane", "groups": ["devs", AUTHENTICATED], "uid": "1"}
    unknown = await review(secure, "tokenreviews", {"token": "x"}, AUTHENTICATION)
    assert not unknown.get("authenticated")
    assert unknown["error"]
    elsewhere = (await token_of(secure, "default", audiences=["vault"]))["token"]
    assert not (await review(secure, "tokenreviews", {"token": elsewhere}, AUTHENTICATION)).get("authenticated")
    asked = {"token": elsewhere, "audiences": ["vault"]}
    assert (await review(secure, "tokenreviews", asked, AUTHENTICATION))["authenticated"] is True
    assert (await secure.post(f"{AUTHENTICATION}/tokenreviews", {"spec": {}})).status == 400
    own = await review(secure.as_("t-jane"), "selfsubjectreviews", {}, AUTHENTICATION)
    assert own["userInfo"]["username"] == "jane"


async def test_access_reviews_answer_from_the_rules(secure: Api) -> None:
    await grant(secure, "list", rule("list", "pods"), subject=JANE, namespace="default")
    attributes = {"verb": "list", "resource": "pods", "namespace": "default"}
    allowed = await review(secure, "subjectaccessreviews", {"user": "jane", "resourceAttributes": attributes})
    assert allowed["allowed"] is True
    assert allowed["reason"] == 'RBAC: allowed by RoleBinding "list/default" of Role "list" to User "jane"'
    other = {**attributes, "namespace": "kube-system"}
    assert not (await review(secure, "subjectaccessreviews", {"user": "jane", "resourceAttributes": other}))["allowed"]
    path = {
        "user": "jane",
        "groups": ["system:monitoring"],
        "nonResourceAttributes": {"verb": "get", "path": "/metrics"},
    }
    assert (await review(secure, "subjectaccessreviews", path))["allowed"] is True
    own = await review(secure.as_("t-jane"), "selfsubjectaccessreviews", {"resourceAttributes": attributes})
    assert own["allowed"] is True
    local = f"{AUTHORIZATION}/namespaces/default/localsubjectaccessreviews"
    body = {"spec": {"user": "jane", "resourceAttributes": attributes}}
    assert (await secure.post(local, body)).body["status"]["allowed"] is True
    assert (await secure.post(local, {"spec": {"user": "jane", "resourceAttributes": other}})).status == 400
    rules = await review(secure.as_("t-jane"), "selfsubjectrulesreviews", {"namespace": "default"})
    assert rule("list", "pods") in rules["resourceRules"]
    assert (await secure.post(f"{AUTHORIZATION}/subjectaccessreviews", {"spec": {"user": "x"}})).status == 422
    nobody = {"spec": {"resourceAttributes": attributes}}
    assert (await secure.post(f"{AUTHORIZATION}/subjectaccessreviews", nobody)).status == 422


async def test_impersonation_needs_the_right_to_it(secure: Api) -> None:
    await secure.created(ACCOUNTS, {"metadata": {"name": "robot"}})
    subject = {"kind": "ServiceAccount", "name": "robot", "namespace": "default"}
    await grant(secure, "list", rule("list", "pods"), subject=subject, namespace="default")
    as_robot = {"Impersonate-User": "system:serviceaccount:default:robot"}
    assert (await secure.call("GET", PODS, headers=as_robot)).status == 200
    assert (await secure.call("GET", NODES, headers=as_robot)).status == 403
    masters = {"Impersonate-User": "x", "Impersonate-Group": "system:masters"}
    assert (await secure.call("GET", NODES, headers=masters)).status == 200
    assert (await secure.as_("t-jane").call("GET", PODS, headers=as_robot)).status == 403
    assert (await secure.call("GET", PODS, headers={"Impersonate-Group": "x"})).status == 400


async def test_allocating_a_claim_is_a_right_of_its_own(secure: Api) -> None:
    claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
    await secure.created(claims, {"metadata": {"name": "c"}, "spec": {}})
    await grant(secure, "status", rule("patch", "resourceclaims/status", "resource.k8s.io"), subject=JANE)
    reserve = {"status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "1"}]}}
    refused = await secure.as_("t-jane").patch(f"{claims}/c/status", reserve)
    assert refused.status == 422
    assert 'requires resource="resourceclaims/binding"' in refused.body["message"]
    await grant(secure, "bind", rule("patch", "resourceclaims/binding", "resource.k8s.io"), subject=JANE)
    assert (await secure.as_("t-jane").patch(f"{claims}/c/status", reserve)).status == 200


async def test_without_rbac_every_known_user_may_do_everything(api: Api) -> None:
    token = (await token_of(api, "default"))["token"]
    assert (await api.as_(token).get(NODES)).status == 200
    asked = {"user": "anybody", "resourceAttributes": {"verb": "delete", "resource": "nodes"}}
    assert (await review(api, "subjectaccessreviews", asked))["allowed"] is True


def test_token_files(tmp_path: Path) -> None:
    file = tmp_path / "tokens.csv"
    file.write_text('# comment\nt1,jane,1,"a,b"\nt2,bob,2\n')
    users = read_token_file(file)
    assert users["t1"] == User("jane", ("a", "b", AUTHENTICATED), "1")
    assert users["t2"].groups == (AUTHENTICATED,)
    file.write_text("t1,jane\n")
    with pytest.raises(TokenFileError, match=r"tokens\.csv:1"):
        read_token_file(file)
