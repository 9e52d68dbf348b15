"""Event objects of events.k8s.io/v1 as values."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from kube_pyscheduler.kit.timestamps import rfc3339_micro

NOTE_LIMIT: Final = 1024
"""Bytes. Source: pkg/apis/core/validation/events.go, NoteLengthLimit."""

_CUT: Final = " ..."
_NAME_LIMIT: Final = 253
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


class Reference(NamedTuple):
    """The object an Event is about. ``namespace`` is "" where it has none; ``version`` is its resourceVersion."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    version: str = ""

    def wire(self) -> dict[str, str]:
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
            "resourceVersion": self.version,
        }


class Content(NamedTuple):
    """What is said. ``type`` is Normal or Warning; ``controller`` and ``instance`` say who says it."""

    regarding: Reference
    type: str
    reason: str
    action: str
    note: str
    controller: str
    instance: str
    related: Reference | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """``count`` equal events, the last one at ``observed`` (seconds since the epoch)."""

    count: int
    observed: float

    def wire(self) -> dict[str, Any]:
        return {"count": self.count, "lastObservedTime": rfc3339_micro(self.observed)}


def namespace_of(content: Content) -> str:
    """Where the Event lives: with its object, or in "default" for objects without namespace."""
    return content.regarding.namespace or "default"


def event_object(content: Content, name: str, wall: float, series: Series | None = None) -> dict[str, Any]:
    """The object to create. Source: client-go/tools/events/event_recorder.go."""
    event: dict[str, Any] = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace_of(content)},
        "eventTime": rfc3339_micro(wall),
        "reportingController": content.controller,
        "reportingInstance": content.instance,
        "action": content.action,
        "reason": content.reason,
        "regarding": content.regarding.wire(),
        "note": cut(content.note),
        "type": content.type,
    }
    if content.related is not None:
        event["related"] = content.related.wire()
    if series is not None:
        event["series"] = series.wire()
    return event


def event_name(object_name: str, nanoseconds: int) -> str:
    """``<object>.<time in hex>``, or a UUID where that is no valid name."""
    name = f"{object_name}.{nanoseconds:x}"
    return name if len(name) <= _NAME_LIMIT and _SUBDOMAIN.fullmatch(name) else str(uuid.uuid4())


def cut(note: str) -> str:
    """At most 1024 bytes of UTF-8, ending in " ..." where something is missing, never amid a character."""
    if len(note) <= NOTE_LIMIT // 4:
        return note
    encoded = note.encode()
    if len(encoded) <= NOTE_LIMIT:
        return note
    return encoded[: NOTE_LIMIT - len(_CUT)].decode(errors="ignore") + _CUT
