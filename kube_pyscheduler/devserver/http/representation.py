"""Stored objects as response bytes: plain, Table, metadata only.

Items of a list carry no kind and apiVersion, as on the real server; the encoded text of a revision is reused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import yaml

from kube_pyscheduler.devserver.event_views import EVENTS_V1, to_view
from kube_pyscheduler.devserver.http.listing import Page
from kube_pyscheduler.devserver.http.negotiation import YAML, Accepted
from kube_pyscheduler.devserver.resources import Resource
from kube_pyscheduler.devserver.store import Object, Stored

encode = msgspec.json.encode
Render = Callable[[Stored], bytes]


def body_of(resource: Resource, stored: Stored) -> bytes:
    """The JSON text of a stored object without kind, apiVersion and the opening brace."""
    if resource is EVENTS_V1:
        viewed = to_view(resource, stored.obj)
        return encode({k: v for k, v in viewed.items() if k not in ("kind", "apiVersion")})[1:]
    return stored.body


def prefix_of(resource: Resource) -> bytes:
    """The opening of every object of a resource, to be followed by its body."""
    return f'{{"kind":"{resource.kind}","apiVersion":"{resource.api_version}",'.encode()


def partial_metadata(stored: Stored) -> Object:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": stored.obj["metadata"],
    }


def shown_kind(resource: Resource, form: Accepted) -> tuple[str, str]:
    """(kind, apiVersion) of a single object in the form asked for."""
    if form.form == "Table":
        return "Table", "meta.k8s.io/v1"
    if form.form:
        return "PartialObjectMetadata", "meta.k8s.io/v1"
    return resource.kind, resource.api_version


def renderer(resource: Resource, form: Accepted, table: Callable[[list[Stored]], Object]) -> Render:
    """How a single object looks in the form asked for, as whole JSON text."""
    if form.form == "Table":
        return lambda stored: encode(table([stored]))
    if form.form.startswith("PartialObjectMetadata"):
        return lambda stored: encode(partial_metadata(stored))
    prefix = prefix_of(resource)
    return lambda stored: prefix + body_of(resource, stored)


def _list_metadata(page: Page) -> dict[str, Any]:
    metadata: dict[str, Any] = {"resourceVersion": str(page.revision)}
    if page.continue_token:
        metadata["continue"] = page.continue_token
        if page.remaining is not None:
            metadata["remainingItemCount"] = page.remaining
    return metadata


def render_list(resource: Resource, page: Page, form: Accepted, table: Callable[[list[Stored]], Object]) -> bytes:
    """A page of a list in the form asked for, as JSON text."""
    metadata = _list_metadata(page)
    if form.form == "Table":
        return encode({**table(page.items), "metadata": metadata})
    if form.form.startswith("PartialObjectMetadata"):
        return encode(
            {
                "kind": "PartialObjectMetadataList",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": metadata,
                "items": [partial_metadata(stored) for stored in page.items],
            }
        )
    head = f'{{"kind":"{resource.list_kind}","apiVersion":"{resource.api_version}","metadata":'.encode()
    items = b",".join([b"{" + body_of(resource, stored) for stored in page.items])
    return b"".join((head, encode(metadata), b',"items":[', items, b"]}"))


def in_media_type(body: bytes, form: Accepted) -> bytes:
    """The JSON text, or the same document as YAML when that was asked for."""
    if form.media_type != YAML:
        return body
    return yaml.safe_dump(msgspec.json.decode(body), sort_keys=False).encode()
