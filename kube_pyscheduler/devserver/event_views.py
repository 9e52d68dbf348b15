"""Events are one set of objects with two faces: core/v1, as stored, and events.k8s.io/v1.

Source: pkg/apis/events/v1/conversion.go.
"""

from __future__ import annotations

from kube_pyscheduler.devserver.resources import EVENTS, Resource, builtin
from kube_pyscheduler.devserver.store import Object

EVENTS_V1 = builtin("events.events.k8s.io")

_TO_VIEW = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_TO_CORE = {view: core for core, view in _TO_VIEW.items()}


def stored_as(resource: Resource) -> Resource:
    """The resource under which the objects of ``resource`` are kept."""
    return EVENTS if resource is EVENTS_V1 else resource


def to_view(event: Object) -> Object:
    """A stored core event as events.k8s.io/v1."""
    renamed = {_TO_VIEW.get(key, key): value for key, value in event.items()}
    return {**renamed, "kind": "Event", "apiVersion": EVENTS_V1.api_version}


def to_core(event: Object) -> Object:
    """An events.k8s.io/v1 event as it is stored."""
    renamed = {_TO_CORE.get(key, key): value for key, value in event.items()}
    return {**renamed, "kind": "Event", "apiVersion": "v1"}
