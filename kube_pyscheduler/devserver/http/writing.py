"""create, update, patch, delete and deletecollection, with their subresources."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from aiohttp import web

from kube_pyscheduler.devserver import errors
from kube_pyscheduler.devserver.access.users import User
from kube_pyscheduler.devserver.event_views import check_write, stored_as, to_stored, to_view
from kube_pyscheduler.devserver.eviction import evict
from kube_pyscheduler.devserver.http.access import authorize_claim_binding
from kube_pyscheduler.devserver.http.answers import deleted, object_answer, success, text_answer
from kube_pyscheduler.devserver.http.context import Context
from kube_pyscheduler.devserver.http.negotiation import YAML, accepted, decode_body
from kube_pyscheduler.devserver.http.representation import renderer
from kube_pyscheduler.devserver.http.request_info import RequestInfo
from kube_pyscheduler.devserver.options import (
    IGNORE,
    STRICT,
    WARN,
    DeleteOptions,
    WriteOptions,
    is_dry_run,
    read_delete_options,
)
from kube_pyscheduler.devserver.patching.json_patch import json_patch, merge_patch
from kube_pyscheduler.devserver.patching.strategic import strategic_merge
from kube_pyscheduler.devserver.resources import CREATE_ONLY, RESOURCE_CLAIMS, SUBRESOURCE_KINDS, Resource
from kube_pyscheduler.devserver.scale import scaled, to_scale
from kube_pyscheduler.devserver.schema.normalise import read_object
from kube_pyscheduler.devserver.schema.types import Type, builtin_type, type_of
from kube_pyscheduler.devserver.selectors import parse_selectors
from kube_pyscheduler.devserver.store import Object, Stored
from kube_pyscheduler.devserver.tables.render import tabulate

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"

_STATUS_ANSWERS = frozenset(
    {
        "configmaps",
        "csistoragecapacities",
        "endpoints",
        "events",
        "limitranges",
        "nodes",
        "replicationcontrollers",
        "secrets",
    }
)
"""Kinds whose deletion is answered with a Status though others of their group answer with the object.

Source: ReturnDeletedObject in pkg/registry.
"""
_OBJECT_GROUPS = frozenset({"", "resource.k8s.io", "storage.k8s.io"})


class Writing:
    """Answers requests that change objects."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._registry = context.registry

    # -- create ------------------------------------------------------------------------------------------------

    async def create(self, request: web.Request, info: RequestInfo, user: User) -> web.Response:
        body = await _read(request)
        resource, options = info.resource, _write_options(request)
        if info.subresource or resource.verbs == CREATE_ONLY:
            body = _typed(info, body)
        match info.subresource:
            case "binding":
                _check_named(body, info)
                self._registry.bind(info.namespace, info.name, body, dry_run=options.dry_run)
                return success(201)
            case "eviction":
                _check_named(body, info)
                delete_options = read_delete_options(body.get("deleteOptions") or {}, {})
                delete_options.dry_run = delete_options.dry_run or options.dry_run
                evict(self._registry, info.namespace, info.name, delete_options)
                return success(201)
            case "token":
                return object_answer(self._context.reviews.token_request(info.namespace, info.name, body), 201)
        if resource.plural == "bindings":
            self._registry.bind(info.namespace, _name_of(body), body, dry_run=options.dry_run)
            return success(201)
        if resource.verbs == CREATE_ONLY:
            review = {**body, "kind": resource.kind, "apiVersion": resource.api_version}
            return object_answer(self._context.reviews.answer(resource.kind, review, user, info.namespace), 201)
        stored_resource = stored_as(resource)
        obj = to_stored(resource, _placed(info, body))
        check_write(resource, obj, None)
        created = self._registry.create(stored_resource, obj, options)
        return self._answer(request, info, created, options, 201)

    # -- update and patch --------------------------------------------------------------------------------------

    async def update(self, request: web.Request, info: RequestInfo, user: User) -> web.Response:
        body = await _read(request)
        options = _write_options(request)
        if info.subresource == "scale":
            return self._change_scale(info, lambda _: body, options)
        obj = to_stored(info.resource, _placed(info, body))
        self._check_change(info, user, obj)
        resource = stored_as(info.resource)
        if info.subresource:
            updated = self._registry.update(resource, obj, subresource=info.subresource, options=options)
            return self._answer(request, info, updated, options)
        updated, created = self._registry.put(resource, obj, options)
        return self._answer(request, info, updated, options, 201 if created else 200)

    async def patch(self, request: web.Request, info: RequestInfo, user: User) -> web.Response:
        options = _write_options(request)
        if request.content_type == APPLY:
            return await self._apply(request, info, options)
        change = _patch_of(info.resource, request.content_type, await request.read())
        if info.subresource == "scale":
            return self._change_scale(info, change, options)

        def changed(current: Object) -> Object:
            new = to_stored(info.resource, change(to_view(info.resource, current)))
            self._check_change(info, user, new)
            return new

        updated = self._registry.modify(
            stored_as(info.resource),
            info.namespace,
            info.name,
            changed,
            subresource=info.subresource,
            options=options,
        )
        return self._answer(request, info, updated, options)

    async def _apply(self, request: web.Request, info: RequestInfo, options: WriteOptions) -> web.Response:
        if not request.query.get("fieldManager"):
            cause = errors.Cause("FieldValueRequired", "Required value: is required for apply patch", "fieldManager")
            raise errors.invalid("PatchOptions", "meta.k8s.io", "", [cause])
        body = decode_body(YAML, await request.read())
        if not body.get("kind") or not body.get("apiVersion"):
            raise errors.bad_request("invalid object type: kind and apiVersion must be set")
        if (body.get("metadata") or {}).get("managedFields"):
            raise errors.bad_request("metadata.managedFields must be nil")
        obj, created = self._registry.apply(
            stored_as(info.resource),
            info.namespace,
            info.name,
            to_stored(info.resource, _placed(info, body)),
            force=request.query.get("force") in ("true", "1"),
            subresource=info.subresource,
            options=options,
        )
        return self._answer(request, info, obj, options, 201 if created else 200)

    def _change_scale(
        self, info: RequestInfo, change: Callable[[Object], Object], options: WriteOptions
    ) -> web.Response:
        updated = self._registry.modify(
            info.resource,
            info.namespace,
            info.name,
            lambda current: scaled(current, _typed(info, change(to_scale(current)))),
            subresource=info.subresource,
            options=options,
        )
        return object_answer(to_scale(updated))

    def _check_change(self, info: RequestInfo, user: User, new: Object) -> None:
        """What depends on the face of the object or on who changes it."""
        old = self._store.get(stored_as(info.resource), info.namespace, info.name)
        if old is not None:
            check_write(info.resource, new, old)
            if info.resource is RESOURCE_CLAIMS and info.subresource == "status":
                authorize_claim_binding(self._context, user, info.verb, new, old)

    # -- delete ------------------------------------------------------------------------------------------------

    async def delete(self, request: web.Request, info: RequestInfo) -> web.Response:
        options = await _delete_options(request)
        resource = stored_as(info.resource)
        obj, gone = self._registry.delete(resource, info.namespace, info.name, options)
        by_status = resource.plural in _STATUS_ANSWERS or resource.group not in _OBJECT_GROUPS
        if gone and by_status:
            return deleted(info.resource, obj)
        return self._answer(request, info, obj, WriteOptions())

    async def delete_collection(self, request: web.Request, info: RequestInfo) -> web.Response:
        options = await _delete_options(request)
        query = request.query
        predicate = parse_selectors(query.get("labelSelector", ""), query.get("fieldSelector", ""), info.resource)
        resource = stored_as(info.resource)
        items: list[Object] = []
        for obj in self._store.list_objects(resource, info.namespace):
            place = resource, obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
            # One that was deleted before may have taken this one along.
            if (predicate is None or predicate(obj)) and self._store.get(*place) is not None:
                items.append(to_view(info.resource, self._registry.delete(*place, options)[0]))
        return object_answer(
            {
                "kind": info.resource.list_kind,
                "apiVersion": info.resource.api_version,
                "metadata": {"resourceVersion": str(self._store.revision)},
                "items": items,
            }
        )

    def _answer(
        self, request: web.Request, info: RequestInfo, obj: Object, options: WriteOptions, status: int = 200
    ) -> web.Response:
        form = accepted(request.headers.get("Accept"))
        now = self._registry.clock.now()

        def table(items: list[Stored]) -> Object:
            return tabulate(info.resource, [stored.obj for stored in items], include="Metadata", now=now)

        answer = text_answer(renderer(info.resource, form, table)(Stored(("", ""), obj, 0)), form, status)
        for message in options.warnings:
            quoted = message.replace("\\", "\\\\").replace('"', '\\"')
            answer.headers.add("Warning", f'299 - "{quoted}"')
        return answer


async def _read(request: web.Request) -> Object:
    return decode_body(request.headers.get("Content-Type", ""), await request.read())


def _typed(info: RequestInfo, body: Object) -> Object:
    """A body that is not stored itself, in the shape of its kind."""
    own = (info.resource.group, info.resource.version, info.resource.kind)
    group, version, kind = SUBRESOURCE_KINDS.get(info.subresource, own) if info.subresource else own
    return read_object(body, builtin_type(group, version, kind), kind, version, strict=False)[0]


def _name_of(body: Object) -> str:
    return str((body.get("metadata") or {}).get("name") or "")


def _check_named(body: Object, info: RequestInfo) -> None:
    kind = body.get("kind") or info.subresource.capitalize()
    if _name_of(body) != info.name:
        raise errors.bad_request(f"name in URL does not match name in {kind} object")


def _placed(info: RequestInfo, body: Object) -> Object:
    """The body with the namespace and name of the path; 400 when it says otherwise."""
    resource = info.resource
    for key, wanted in (("kind", resource.kind), ("apiVersion", resource.api_version)):
        if body.get(key) not in (None, "", wanted):
            raise errors.bad_request(
                f"the {key} in the data ({body[key]}) does not match the expected {key} ({wanted})"
            )
    metadata = dict(body.get("metadata") or {})
    if resource.namespaced:
        if not info.namespace:
            raise errors.method_not_allowed()
        if metadata.get("namespace") not in (None, "", info.namespace):
            raise errors.bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        metadata["namespace"] = info.namespace
    if info.name:
        given = metadata.get("name") or info.name
        if given != info.name:
            raise errors.bad_request(
                f"the name of the object ({given}) does not match the name on the URL ({info.name})"
            )
        metadata["name"] = info.name
    return {**body, "metadata": metadata}


def _write_options(request: web.Request) -> WriteOptions:
    query = request.query
    validation = query.get("fieldValidation") or WARN
    if validation not in (IGNORE, WARN, STRICT):
        raise errors.bad_request(f'fieldValidation: Unsupported value: "{validation}"')
    return WriteOptions(
        dry_run=is_dry_run(query.getall("dryRun", [])),
        field_validation=validation,
        field_manager=query.get("fieldManager") or request.headers.get("User-Agent", "").partition("/")[0] or "unknown",
    )


async def _delete_options(request: web.Request) -> DeleteOptions:
    text = await request.read()
    body = decode_body(request.headers.get("Content-Type", ""), text) if text else {}
    kind = builtin_type("", "v1", "DeleteOptions")
    body, _ = read_object(body, kind, "DeleteOptions", "v1", strict=False)
    return read_delete_options(body, dict(request.query))


def _patch_of(resource: Resource, content_type: str, body: bytes) -> Callable[[Object], Object]:
    try:
        patch: Any = msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise errors.bad_request(f"error decoding patch: {error}") from None
    if content_type == JSON_PATCH:
        return lambda current: json_patch(current, patch)
    kind = type_of(resource.group, resource.version, resource.kind)
    if content_type not in (MERGE, STRATEGIC) or (content_type == STRATEGIC and kind is None):
        raise errors.unsupported_media_type((JSON_PATCH, MERGE, *((STRATEGIC,) if kind else ()), APPLY))
    if not isinstance(patch, dict):
        raise errors.bad_request("the patch must be an object")
    if content_type == STRATEGIC and kind is not None:
        return lambda current: _merged(current, patch, kind)
    return lambda current: merge_patch(current, patch)


def _merged(current: Object, patch: Object, kind: Type) -> Object:
    try:
        return strategic_merge(current, patch, kind)
    except (AttributeError, TypeError) as error:
        raise errors.bad_request(f"the patch does not fit the object: {error}") from error
