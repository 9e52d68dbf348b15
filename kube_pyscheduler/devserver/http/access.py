"""Who sends a request, and whether it may."""

from __future__ import annotations

from aiohttp import web

from kube_pyscheduler.devserver.access.rbac import Attributes
from kube_pyscheduler.devserver.access.users import ANONYMOUS, AUTHENTICATED, User, service_account
from kube_pyscheduler.devserver.errors import StatusError, bad_request, forbidden, invalid, unauthorized
from kube_pyscheduler.devserver.http.context import Context
from kube_pyscheduler.devserver.http.request_info import RequestInfo
from kube_pyscheduler.devserver.problems import Problems
from kube_pyscheduler.devserver.resources import RESOURCE_CLAIMS
from kube_pyscheduler.devserver.store import Object

PUBLIC_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/version"})
"""Answered without a token."""


def authenticate(context: Context, request: web.Request) -> User:
    """The user of the bearer token; 401 when it is unknown, or when nobody asks for more than the public paths."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if not token:
        if context.tokenless is ANONYMOUS and request.path.rstrip("/") not in PUBLIC_PATHS:
            raise unauthorized()
        return context.tokenless
    user = context.tokens.user_of(token.strip()) if scheme.lower() == "bearer" else None
    if user is None:
        raise unauthorized()
    return user


def impersonate(context: Context, user: User, request: web.Request) -> User:
    """The user that the Impersonate-* headers name, else the user itself; 403 when it may not.

    Source: staging/src/k8s.io/apiserver/pkg/endpoints/filters/impersonation.
    """
    name = request.headers.get("Impersonate-User")
    groups = request.headers.getall("Impersonate-Group", [])
    if name is None:
        if groups or "Impersonate-Uid" in request.headers:
            raise bad_request("requested groups or a uid without impersonating a user")
        return user
    for resource, target in (("users", name), *(("groups", group) for group in groups)):
        attributes = Attributes(verb="impersonate", resource=resource, name=target)
        if not context.authorizer.decide(user, attributes).allowed:
            raise _denied(user, attributes)
    account = name.removeprefix("system:serviceaccount:").split(":")
    if not groups and name.startswith("system:serviceaccount:") and len(account) == 2:
        return service_account(account[0], account[1], "")
    if name == ANONYMOUS.name:
        return ANONYMOUS
    return User(name, (*groups, *(() if AUTHENTICATED in groups else (AUTHENTICATED,))))


def authorize(context: Context, user: User, info: RequestInfo, request: web.Request) -> None:
    """403 when the user may not do what the request asks."""
    if not context.authorizer.enforce:
        return
    name = info.name or _selected_name(request)
    attributes = Attributes(
        verb=info.verb,
        group=info.resource.group,
        resource=info.resource.plural,
        subresource=info.subresource,
        namespace=info.namespace or (name if info.resource.plural == "namespaces" and not info.resource.group else ""),
        name=name,
    )
    if not context.authorizer.decide(user, attributes).allowed:
        raise _denied(user, attributes)


def authorize_path(context: Context, user: User, method: str, path: str) -> None:
    """403 when the user may not read a path that is no resource (discovery, health…)."""
    attributes = Attributes(verb=method.lower(), path=path)
    if context.authorizer.enforce and not context.authorizer.decide(user, attributes).allowed:
        raise forbidden(f'forbidden: User "{user.name}" cannot {attributes.verb} path "{path}"')


def authorize_claim_binding(context: Context, user: User, verb: str, new: Object, old: Object) -> None:
    """Whoever allocates or reserves a ResourceClaim needs the right on ``resourceclaims/binding``. 422 without it.

    Source: AuthorizedForBinding in pkg/registry/resource/utils.go.
    """
    after, before = new.get("status") or {}, old.get("status") or {}
    if all((after.get(key) or None) == (before.get(key) or None) for key in ("allocation", "reservedFor")):
        return
    attributes = Attributes(verb, RESOURCE_CLAIMS.group, RESOURCE_CLAIMS.plural, "binding")
    if context.authorizer.decide(user, attributes).allowed:
        return
    problems = Problems()
    problems.forbidden(
        "status.allocation",
        'changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", '
        f'verb="{verb}" permission: {_denied(user, attributes).message}',
    )
    raise invalid(RESOURCE_CLAIMS.kind, RESOURCE_CLAIMS.group, old["metadata"]["name"], problems.causes)


def _selected_name(request: web.Request) -> str:
    """A list or watch of one name counts as a request for that name."""
    for term in request.query.get("fieldSelector", "").split(","):
        key, _, value = term.partition("=")
        if key == "metadata.name":
            return value.lstrip("=")
    return ""


def _denied(user: User, attributes: Attributes) -> StatusError:
    resource = attributes.resource + (f"/{attributes.subresource}" if attributes.subresource else "")
    where = f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
    key = attributes.resource + (f".{attributes.group}" if attributes.group else "")
    subject = f'{key} "{attributes.name}"' if attributes.name else key
    return forbidden(
        f'{subject} is forbidden: User "{user.name}" cannot {attributes.verb} resource "{resource}" '
        f'in API group "{attributes.group}" {where}',
        resource=key,
        name=attributes.name,
    )
