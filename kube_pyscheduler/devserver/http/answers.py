"""Responses with a JSON (or YAML) body."""

from __future__ import annotations

from typing import Any

import msgspec
from aiohttp import web

from kube_pyscheduler.devserver.errors import StatusError
from kube_pyscheduler.devserver.http.negotiation import JSON, Accepted
from kube_pyscheduler.devserver.http.representation import in_media_type
from kube_pyscheduler.devserver.resources import Resource
from kube_pyscheduler.devserver.store import Object


def text_answer(body: bytes, form: Accepted, status: int = 200) -> web.Response:
    """A rendered JSON text in the media type asked for."""
    return web.Response(body=in_media_type(body, form), status=status, content_type=form.media_type)


def object_answer(obj: Any, status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(obj), status=status, content_type=JSON)


def success(status: int = 200, details: Object | None = None) -> web.Response:
    """A metav1.Status of success; ``code`` is only told for creations, as on the real server."""
    body: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details:
        body["details"] = details
    if status == 201:
        body["code"] = status
    return object_answer(body, status)


def deleted(resource: Resource, obj: Object) -> web.Response:
    """The answer to a deletion of a kind that does not answer with the object."""
    details: Object = {"name": obj["metadata"]["name"]}
    if resource.group:
        details["group"] = resource.group
    return success(details={**details, "kind": resource.plural, "uid": obj["metadata"]["uid"]})


def refusal(error: StatusError) -> web.Response:
    headers = {"Retry-After": str(error.retry_after)} if error.retry_after else {}
    body = msgspec.json.encode(error.status())
    return web.Response(body=body, status=error.code, content_type=JSON, headers=headers)
