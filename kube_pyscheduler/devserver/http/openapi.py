"""OpenAPI documents: what kubectl needs to validate, explain and patch; types only, without descriptions.

Source: the shape of api/openapi-spec; kubectl looks for the schemas by their group-version-kind extension, and for
the parameter fieldValidation of PATCH to know that the server validates.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from aiohttp import web

from kube_pyscheduler.devserver import errors
from kube_pyscheduler.devserver.http.negotiation import JSON
from kube_pyscheduler.devserver.resources import Resource, ResourceTable
from kube_pyscheduler.devserver.schema.types import KIND_EXTENSION, definition_name, definitions

Object = dict[str, Any]
_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_V2_PROTOBUF_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_V2_PROTOBUF = b"\n\x032.0\x12\x15\n\nKubernetes\x12\x07v1.36.0\x42\x00\x4a\x00"
"""A document without definitions: kubectl asks for this form only about kinds that the v3 documents can't vouch for,
and leaves the validation of such to the server."""
_V2 = "#/definitions/"
_V3 = "#/components/schemas/"


class OpenAPI:
    """Answers the paths below /openapi."""

    def __init__(self, table: ResourceTable) -> None:
        self._table = table

    def answer(self, request: web.Request, segments: list[str]) -> web.Response:
        match segments:
            case ["openapi", "v2"]:
                if "proto-openapi" in request.headers.get("Accept", ""):
                    return web.Response(body=_V2_PROTOBUF, headers={"Content-Type": _V2_PROTOBUF_TYPE})
                body = msgspec.json.encode(self._v2())
            case ["openapi", "v3"]:
                body = msgspec.json.encode({"paths": self._index()})
            case ["openapi", "v3", *path]:
                body = self._document("/".join(path))
            case _:
                raise errors.no_such_path()
        return web.Response(body=body, content_type=JSON)

    def _groups(self) -> dict[str, list[Resource]]:
        """Path of a group's version ("api/v1", "apis/apps/v1") → its resources."""
        groups: dict[str, list[Resource]] = {}
        for resource in self._table:
            root = "apis" if resource.group else "api"
            groups.setdefault(f"{root}/{resource.api_version}", []).append(resource)
        return groups

    def _index(self) -> Object:
        return {
            path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={hashlib.sha256(self._document(path)).hexdigest()}"}
            for path in self._groups()
        }

    def _document(self, path: str) -> bytes:
        resources = self._groups().get(path)
        if resources is None:
            raise errors.no_such_path()
        document = {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": "v1.36.0"},
            "paths": {route: operations for r in resources for route, operations in _paths(r, _body_v3)},
            "components": {"schemas": self._schemas(resources)},
        }
        # The prefix only ever stands in references.
        return msgspec.json.encode(document).replace(_V2.encode(), _V3.encode())

    def _v2(self) -> Object:
        return {
            "swagger": "2.0",
            "info": {"title": "Kubernetes", "version": "v1.36.0"},
            "paths": {route: operations for r in self._table for route, operations in _paths(r, _body_v2)},
            "definitions": self._schemas(self._table),
        }

    def _schemas(self, resources: Iterable[Resource]) -> Object:
        everything = definitions()
        schemas: Object = {}
        pending: list[str] = [_OBJECT_META]
        for resource in resources:
            name = definition_name(resource.group, resource.version, resource.kind)
            if name is not None:
                pending.append(name)
            else:
                schemas[_custom_name(resource)] = _custom_schema(resource)
        while pending:
            name = pending.pop()
            if name not in schemas:
                schemas[name] = everything[name]
                pending.extend(_references(everything[name]))
        return schemas


def _references(node: Any) -> Iterable[str]:
    if isinstance(node, dict):
        reference = node.get("$ref")
        if isinstance(reference, str):
            yield reference.removeprefix(_V2)
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)


def _gvk(resource: Resource) -> Object:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _custom_schema(resource: Resource) -> Object:
    """The schema of a custom resource, completed with what every object has."""
    given = resource.schema or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    properties = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, **(given.get("properties") or {})}
    properties["metadata"] = {"$ref": _V2 + _OBJECT_META}
    return {**given, "properties": properties, KIND_EXTENSION: [_gvk(resource)]}


def _custom_name(resource: Resource) -> str:
    return ".".join((*reversed(resource.group.split(".")), resource.version, resource.kind))


def _body_v2(reference: Object) -> Object:
    return {"parameters": [{"name": "body", "in": "body", "required": True, "schema": reference}]}


def _body_v3(reference: Object) -> Object:
    return {"requestBody": {"content": {"*/*": {"schema": reference}}}}


def _paths(resource: Resource, body: Callable[[Object], Object]) -> Iterable[tuple[str, Object]]:
    """The collection and the object of a resource with their operations."""
    root = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    place = f"{root}/namespaces/{{namespace}}" if resource.namespaced else root
    name = definition_name(resource.group, resource.version, resource.kind) or _custom_name(resource)
    reference: Object = {"$ref": _V2 + name}

    def operation(action: str, parameters: tuple[str, ...], *, with_body: bool) -> Object:
        given = body(reference) if with_body else {}
        queries = [
            {"name": parameter, "in": "query", "schema": {"type": "string"}, "type": "string"}
            for parameter in parameters
        ]
        return {
            "x-kubernetes-action": action,
            KIND_EXTENSION: _gvk(resource),
            "responses": {"200": {"description": "OK"}},
            **given,
            "parameters": [*given.get("parameters", ()), *queries],
        }

    write = ("dryRun", "fieldManager", "fieldValidation")
    collection: Object = {}
    single: Object = {}
    if "create" in resource.verbs:
        collection["post"] = operation("post", write, with_body=True)
    if "list" in resource.verbs:
        collection["get"] = operation("list", (), with_body=False)
    if "get" in resource.verbs:
        single["get"] = operation("get", (), with_body=False)
        single["put"] = operation("put", write, with_body=True)
        single["patch"] = operation("patch", (*write, "force"), with_body=True)
        single["delete"] = operation("delete", ("dryRun",), with_body=False)
    yield f"{place}/{resource.plural}", collection
    if single:
        yield f"{place}/{resource.plural}/{{name}}", single
