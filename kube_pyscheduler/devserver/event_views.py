"""Events are one set of objects with two faces: core/v1, as stored, and events.k8s.io/v1.

Source: pkg/apis/events/v1/conversion.go.
"""

from __future__ import annotations

from kube_pyscheduler.devserver.admission.events import check_new_style, check_new_style_update
from kube_pyscheduler.devserver.errors import invalid
from kube_pyscheduler.devserver.problems import Problems
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


def to_view(resource: Resource, obj: Object) -> Object:
    """A stored object as ``resource`` shows it."""
    if resource is not EVENTS_V1:
        return obj
    renamed = {_TO_VIEW.get(key, key): value for key, value in obj.items()}
    return {**renamed, "kind": "Event", "apiVersion": EVENTS_V1.api_version}


def to_stored(resource: Resource, obj: Object) -> Object:
    """An object given for ``resource`` as it is stored."""
    if resource is not EVENTS_V1:
        return obj
    renamed = {_TO_CORE.get(key, key): value for key, value in obj.items()}
    return {**renamed, "kind": "Event", "apiVersion": "v1"}


def check_write(resource: Resource, new: Object, old: Object | None) -> None:
    """Events written through events.k8s.io/v1 must be of the new style; takes the stored form. 422."""
    if resource is not EVENTS_V1:
        return
    problems = Problems()
    if old is None:
        check_new_style(new, problems)
    else:
        check_new_style_update(new, old, problems)
    if problems:
        raise invalid("Event", EVENTS_V1.group, (old or new)["metadata"].get("name", ""), problems.causes)
