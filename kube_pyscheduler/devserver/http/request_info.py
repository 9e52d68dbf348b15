"""What a request asks for, read from its method and path.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/request/requestinfo.go.
"""

from __future__ import annotations

from dataclasses import dataclass

from kube_pyscheduler.devserver import errors
from kube_pyscheduler.devserver.resources import STATUS_VERBS, SUBRESOURCE_VERBS, Resource, ResourceTable

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get", "HEAD": "get"}


@dataclass(frozen=True, slots=True)
class RequestInfo:
    """A request for a resource: ``name`` is "" for collections, ``namespace`` "" for all or cluster-scoped."""

    verb: str
    resource: Resource
    namespace: str
    name: str
    subresource: str


def parse(method: str, segments: list[str], table: ResourceTable, *, watch: bool) -> RequestInfo:
    """Read a path below /api or /apis, for example ["api", "v1", "namespaces", "default", "pods"].

    404 for an unknown resource, 405 for a verb that the resource does not have.
    """
    if segments[0] == "api":
        group, version, rest = "", segments[1], segments[2:]
    else:
        group, version, rest = segments[1], segments[2], segments[3:]
    namespace = ""
    in_namespace = len(rest) >= 3 and rest[0] == "namespaces" and rest[2] not in ("status", "finalize")
    if in_namespace:
        namespace, rest = rest[1], rest[2:]
    resource = table.by_path(group, version, rest[0]) if rest else None
    if resource is None or len(rest) > 3 or (in_namespace and not resource.namespaced):
        raise errors.no_such_path()
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if subresource and subresource not in resource.subresources:
        raise errors.no_such_path()
    if resource.namespaced and name and not namespace:
        raise errors.no_such_path()
    verb = _VERBS.get(method, "")
    if not name:
        verb = {"get": "watch" if watch else "list", "delete": "deletecollection", "create": "create"}.get(verb, "")
    elif not subresource and verb == "create":
        verb = ""
    allowed = SUBRESOURCE_VERBS.get(subresource, STATUS_VERBS) if subresource else resource.verbs
    if verb not in allowed:
        raise errors.method_not_allowed()
    return RequestInfo(verb, resource, namespace, name, subresource)
