"""Requests as values: what to ask of an API server, built without sending anything.

Names and namespaces are quoted, bodies are encoded; nothing here knows a server's address or waits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec

from kube_pyscheduler.objects.kinds import Kind
from kube_pyscheduler.objects.meta import Object

JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"

LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"

_encode = msgspec.json.Encoder().encode


class Request(msgspec.Struct, frozen=True, gc=False):
    """One HTTP request.

    ``path`` begins with "/" and is quoted; ``query`` is encoded, without its "?". ``idempotent``: doing it twice has
    the effect of doing it once, so it may be sent again after a failure that leaves its fate open.
    """

    method: str
    path: str
    query: str = ""
    body: bytes | None = None
    content_type: str = JSON
    idempotent: bool = True


def _object(kind: Kind[Any], namespace: str, name: str) -> str:
    if not kind.namespaced:
        return f"{kind.path}/{quote(name, safe='')}"
    root, _, plural = kind.path.rpartition("/")
    return f"{root}/namespaces/{quote(namespace, safe='')}/{plural}/{quote(name, safe='')}"


def _pod(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}"


def _events(namespace: str) -> str:
    return f"/apis/events.k8s.io/v1/namespaces/{quote(namespace, safe='')}/events"


# -- any kind --------------------------------------------------------------------------------------------------------


def list_page(kind: Kind[Any], *, limit: int = 0, continue_token: str = "", field_selector: str = "") -> Request:
    """One page of all objects of a kind, as of now; ``limit`` 0 asks for everything at once."""
    query: dict[str, str] = {}
    if limit:
        query["limit"] = str(limit)
    if continue_token:
        query["continue"] = continue_token
    if field_selector:
        query["fieldSelector"] = field_selector
    return Request("GET", kind.path, urlencode(query))


def watch(kind: Kind[Any], *, version: str, timeout: int, field_selector: str = "") -> Request:
    """The changes of a kind after ``version``, with bookmarks; the server ends it after ``timeout`` seconds."""
    query = {
        "watch": "1",
        "allowWatchBookmarks": "true",
        "resourceVersion": version,
        "timeoutSeconds": str(timeout),
    }
    if field_selector:
        query["fieldSelector"] = field_selector
    return Request("GET", kind.path, urlencode(query))


def get(kind: Kind[Any], namespace: str, name: str) -> Request:
    """One object; ``namespace`` is not looked at for kinds without."""
    return Request("GET", _object(kind, namespace, name))


def create(kind: Kind[Any], namespace: str, body: Mapping[str, Any]) -> Request:
    """Make an object; ``namespace`` is not looked at for kinds without."""
    path = _object(kind, namespace, "").removesuffix("/")
    return Request("POST", path, body=_encode(body), idempotent=False)


def delete(kind: Kind[Any], namespace: str, name: str, uid: str) -> Request:
    """Delete the object with this uid; 409 where it is another one, 404 where it is gone."""
    body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
    return Request("DELETE", _object(kind, namespace, name), body=_encode(body))


def patch(
    kind: Kind[Any],
    obj: Object,
    body: Mapping[str, Any],
    *,
    subresource: str = "",
    content_type: str = MERGE_PATCH,
) -> Request:
    """A patch of ``obj``. Name its uid and resourceVersion in ``body`` to have it refused when it is another one."""
    path = _object(kind, obj.namespace, obj.name)
    if subresource:
        path = f"{path}/{subresource}"
    return Request("PATCH", path, body=_encode(body), content_type=content_type)


# -- pods ------------------------------------------------------------------------------------------------------------


def get_pod(namespace: str, name: str) -> Request:
    return Request("GET", _pod(namespace, name))


def bind_pod(namespace: str, name: str, uid: str, node: str) -> Request:
    """Put the pod on ``node``; refused with 409 where its uid is another one, or it has a node already."""
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "namespace": namespace, "uid": uid},
        "target": {"kind": "Node", "name": node},
    }
    return Request("POST", f"{_pod(namespace, name)}/binding", body=_encode(body), idempotent=False)


def patch_pod_status(namespace: str, name: str, uid: str, status: Mapping[str, Any]) -> Request:
    """Change what ``status`` names; its conditions are merged by type. Conflict where the pod's uid is another one."""
    return Request(
        "PATCH",
        f"{_pod(namespace, name)}/status",
        body=_encode({"metadata": {"uid": uid}, "status": status}),
        content_type=STRATEGIC_PATCH,
    )


def delete_pod(namespace: str, name: str, uid: str) -> Request:
    """Ask for the graceful deletion of the pod with this uid; 409 where it is another one, 404 where it is gone."""
    body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
    return Request("DELETE", _pod(namespace, name), body=_encode(body))


# -- events, leases, reviews -----------------------------------------------------------------------------------------


def create_event(namespace: str, body: bytes) -> Request:
    """``body`` is an encoded events.k8s.io/v1 Event. Its name makes a second one fail with 409, hence idempotent."""
    return Request("POST", _events(namespace), body=body)


def patch_event(namespace: str, name: str, body: bytes) -> Request:
    return Request("PATCH", f"{_events(namespace)}/{quote(name, safe='')}", body=body, content_type=MERGE_PATCH)


def get_lease(namespace: str, name: str) -> Request:
    return Request("GET", f"{LEASES.format(quote(namespace, safe=''))}/{quote(name, safe='')}")


def create_lease(namespace: str, lease: Mapping[str, Any]) -> Request:
    return Request("POST", LEASES.format(quote(namespace, safe="")), body=_encode(lease), idempotent=False)


def update_lease(namespace: str, name: str, lease: Mapping[str, Any]) -> Request:
    """Replace the lease; refused with 409 when its resourceVersion is not the current one."""
    path = f"{LEASES.format(quote(namespace, safe=''))}/{quote(name, safe='')}"
    return Request("PUT", path, body=_encode(lease), idempotent=False)


def token_review(token: str) -> Request:
    """Whose token is it?"""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    return Request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", body=_encode(body))


def subject_access_review(
    *, user: str, uid: str, groups: Sequence[str], extra: Mapping[str, Sequence[str]], path: str, verb: str
) -> Request:
    """May this user do ``verb`` on the non-resource ``path``?"""
    spec = {
        "user": user,
        "uid": uid,
        "groups": groups,
        "extra": extra,
        "nonResourceAttributes": {"path": path, "verb": verb},
    }
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    return Request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body=_encode(body))
