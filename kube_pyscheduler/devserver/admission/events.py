"""Checks of Events: loose ones for core/v1, strict ones for what comes through events.k8s.io/v1.

Source: pkg/apis/core/validation/events.go.
"""

from __future__ import annotations

from typing import Any

from kube_pyscheduler.devserver.admission import names
from kube_pyscheduler.devserver.problems import Problems

Object = dict[str, Any]

INSTANCE_LIMIT = 128
ACTION_LIMIT = 128
REASON_LIMIT = 128
NOTE_LIMIT = 1024
"""Characters of the note of an event with an eventTime."""
_OLD_FIELDS = ("firstTimestamp", "lastTimestamp", "count", "source")
_FIXED = (
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "type",
    "eventTime",
    "action",
    "related",
    "reportingComponent",
    "reportingInstance",
)


def check_event(event: Object, problems: Problems) -> None:
    """Holds for every stored (core form) event."""
    namespace = event["metadata"].get("namespace", "")
    involved = (event.get("involvedObject") or {}).get("namespace", "")
    if not event.get("eventTime"):
        if involved != namespace and not (involved == "" and namespace == "default"):
            problems.invalid("involvedObject.namespace", involved, "does not match event.namespace")
        return
    if not involved and namespace not in ("default", "kube-system"):
        problems.invalid("involvedObject.namespace", involved, "does not match event.namespace")
    component = event.get("reportingComponent", "")
    if not component:
        problems.required("reportingController")
    elif why := names.qualified(component):
        problems.invalid("reportingController", component, why)
    for key, limit in (("reportingInstance", INSTANCE_LIMIT), ("action", ACTION_LIMIT), ("reason", REASON_LIMIT)):
        if not event.get(key):
            problems.required(key)
        elif len(event[key]) > limit:
            problems.invalid(key, "", f"can have at most {limit} characters")
    if len(event.get("message", "")) > NOTE_LIMIT:
        problems.invalid("message", "", f"can have at most {NOTE_LIMIT} characters")


def check_new_style(event: Object, problems: Problems) -> None:
    """Holds for an event created through events.k8s.io/v1, in its core form."""
    _check_series(event.get("series"), problems)
    if not event.get("eventTime"):
        problems.required("eventTime")
    if event.get("type") not in ("Normal", "Warning"):
        problems.invalid("type", "", f"has invalid value: {event.get('type', '')}")
    for key in _OLD_FIELDS:
        if event.get(key):
            problems.invalid(key, "", "needs to be unset")


def check_new_style_update(new: Object, old: Object, problems: Problems) -> None:
    """Through events.k8s.io/v1 only the series of an event may change."""
    if new.get("series") != old.get("series"):
        _check_series(new.get("series"), problems)
    for key in _FIXED:
        problems.immutable(key, new.get(key), old.get(key))


def _check_series(series: Any, problems: Problems) -> None:
    if not isinstance(series, dict) or not isinstance(series.get("count", 0), int):
        return  # No series, or one that cannot be read.
    if series.get("count", 0) < 2:
        problems.invalid("series.count", "", "should be at least 2")
    if not series.get("lastObservedTime"):
        problems.required("series.lastObservedTime")
