"""Which representation a client wants: plain JSON, a Table, or metadata only; and what it sends.

Protobuf is read but never written: a client that accepts JSON as well gets JSON, one that insists gets 406.
Source: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/negotiation.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import yaml

from kube_pyscheduler.devserver import errors
from kube_pyscheduler.devserver.schema import protobuf
from kube_pyscheduler.devserver.yaml_text import load_yaml

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"


class Accepted(NamedTuple):
    """``form`` is "", "Table", "PartialObjectMetadata", "PartialObjectMetadataList" or "APIGroupDiscoveryList"."""

    form: str
    version: str
    media_type: str


_PLAIN = Accepted("", "", JSON)
_FORMS = frozenset({"Table", "PartialObjectMetadata", "PartialObjectMetadataList", "APIGroupDiscoveryList"})


def accepted(header: str | None, forms: frozenset[str] = _FORMS) -> Accepted:
    """The first representation of the Accept header that can be served; 406 when there is none."""
    if not header or header in (JSON, "*/*"):
        return _PLAIN
    for clause in header.split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        if media not in (JSON, YAML, "*/*", "application/*", "text/plain"):
            continue
        values = dict(parameter.partition("=")[::2] for parameter in parameters)
        form = values.get("as", "")
        if form and form not in forms:
            continue
        stream = values.get("stream", "")
        if stream and stream != "watch":
            continue
        return Accepted(form, values.get("v", ""), YAML if media == YAML else JSON)
    raise errors.not_acceptable((JSON, YAML))


def decode_body(content_type: str, body: bytes) -> dict[str, Any]:
    """The object in a request's body; 400 when it can't be read, 415 for an unknown type."""
    media = content_type.partition(";")[0].strip() or JSON
    if media not in (JSON, YAML, PROTOBUF, "*/*"):
        raise errors.unsupported_media_type((JSON, YAML, PROTOBUF))
    try:
        if media == PROTOBUF:
            return protobuf.decode(body)
        decoded = load_yaml(body) if media == YAML else msgspec.json.decode(body)
    except (msgspec.DecodeError, yaml.YAMLError, UnicodeDecodeError, protobuf.ProtobufError) as error:
        raise errors.bad_request(f"couldn't read the body: {error}") from None
    if not isinstance(decoded, dict) or not isinstance(decoded.get("metadata") or {}, dict):
        raise errors.bad_request("the body and its metadata must be objects")
    return decoded
