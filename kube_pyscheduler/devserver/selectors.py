"""Label and field selectors of a query, parsed once into predicates.

Source: staging/src/k8s.io/apimachinery/pkg/{labels,fields}/selector.go; the supported fields of each kind are
those of its registry strategy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from kube_pyscheduler.devserver.errors import bad_request
from kube_pyscheduler.devserver.resources import Resource

Object = dict[str, Any]
Predicate = Callable[[Object], bool]
Labels = Mapping[str, str]

_TERM = re.compile(
    r"""\s*(?:
        (?P<not>!)\s*(?P<absent>[^\s,=!<>()]+)
      | (?P<key>[^\s,=!<>()]+)\s*(?:
            (?P<set>\b(?:in|notin))\s*\((?P<values>[^()]*)\)
          | (?P<op>==|=|!=|>|<)\s*(?P<value>[^\s,=!<>()]*)
        )?
    )\s*(?:,|$)""",
    re.VERBOSE,
)


def _label_test(term: re.Match[str]) -> Callable[[Labels], bool]:
    if absent := term["absent"]:
        return lambda labels: absent not in labels
    key = term["key"]
    if term["set"]:
        values = frozenset(value.strip() for value in term["values"].split(","))
        if term["set"] == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if not term["op"]:
        return lambda labels: key in labels
    value = term["value"]
    match term["op"]:
        case "!=":
            return lambda labels: labels.get(key) != value
        case ">" | "<" as op:
            try:
                bound = int(value)
            except ValueError:
                raise bad_request(f"values: Invalid value: {value!r}: for 'Gt', 'Lt' must be an integer") from None
            return lambda labels: _compare(labels.get(key), bound, op)
        case _:
            return lambda labels: labels.get(key) == value


def _compare(value: str | None, bound: int, op: str) -> bool:
    try:
        number = int(value) if value is not None else None
    except ValueError:
        return False
    return number is not None and (number > bound if op == ">" else number < bound)


def parse_labels(text: str) -> Callable[[Labels], bool] | None:
    """A test of a label map; None for an empty selector, which matches everything. 400 when malformed."""
    if not text.strip():
        return None
    tests: list[Callable[[Labels], bool]] = []
    position = 0
    while position < len(text):
        term = _TERM.match(text, position)
        if term is None:
            raise bad_request(f"unable to parse requirement: {text[position:]!r} in selector {text!r}")
        tests.append(_label_test(term))
        position = term.end()
    return lambda labels: all(test(labels) for test in tests)


def matches_label_selector(selector: Mapping[str, Any] | None, labels: Labels) -> bool:
    """Whether a metav1.LabelSelector object matches; null matches nothing, an empty one everything."""
    if selector is None:
        return False
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    for expression in selector.get("matchExpressions") or ():
        key, values = expression.get("key", ""), expression.get("values") or ()
        match expression.get("operator"):
            case "In":
                ok = labels.get(key) in values
            case "NotIn":
                ok = labels.get(key) not in values
            case "Exists":
                ok = key in labels
            case "DoesNotExist":
                ok = key not in labels
            case _:
                ok = False
        if not ok:
            return False
    return True


def selector_text(selector: Mapping[str, Any] | None) -> str:
    """A metav1.LabelSelector, or the plain map of a ReplicationController, as a query would say it."""
    if not selector:
        return ""
    if "matchLabels" not in selector and "matchExpressions" not in selector:
        selector = {"matchLabels": selector}
    terms = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for expression in selector.get("matchExpressions") or ():
        key, values = expression["key"], ",".join(sorted(expression.get("values") or ()))
        match expression["operator"]:
            case "In":
                terms.append(f"{key} in ({values})")
            case "NotIn":
                terms.append(f"{key} notin ({values})")
            case "Exists":
                terms.append(key)
            case _:
                terms.append(f"!{key}")
    return ",".join(terms)


def _path(path: str, default: str = "") -> Callable[[Object], str]:
    keys = path.split(".")

    def read(obj: Object) -> str:
        value: Any = obj
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
            if value is None:
                return default
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value)

    return read


def _event_source(obj: Object) -> str:
    return _component(obj) or _reporter(obj)


_component = _path("source.component")
_reporter = _path("reportingComponent")
_REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_METADATA = {"metadata.name": _path("metadata.name"), "metadata.namespace": _path("metadata.namespace")}
_FIELDS: dict[str, dict[str, Callable[[Object], str]]] = {
    "pods": {
        "spec.nodeName": _path("spec.nodeName"),
        "spec.restartPolicy": _path("spec.restartPolicy"),
        "spec.schedulerName": _path("spec.schedulerName"),
        "spec.serviceAccountName": _path("spec.serviceAccountName"),
        "spec.hostNetwork": _path("spec.hostNetwork", "false"),
        "status.phase": _path("status.phase"),
        "status.podIP": _path("status.podIP"),
        "status.nominatedNodeName": _path("status.nominatedNodeName"),
    },
    "nodes": {"spec.unschedulable": _path("spec.unschedulable", "false")},
    "namespaces": {"status.phase": _path("status.phase")},
    "secrets": {"type": _path("type")},
    "events": {
        **{f"involvedObject.{key}": _path(f"involvedObject.{key}") for key in _REFERENCE},
        "reason": _path("reason"),
        "reportingComponent": _event_source,
        "source": _event_source,
        "type": _path("type"),
    },
    "events.events.k8s.io": {
        **{f"regarding.{key}": _path(f"involvedObject.{key}") for key in _REFERENCE},
        "reason": _path("reason"),
        "reportingController": _event_source,
        "type": _path("type"),
    },
    "replicasets.apps": {"status.replicas": _path("status.replicas", "0")},
    "replicationcontrollers": {"status.replicas": _path("status.replicas", "0")},
    "jobs.batch": {"status.successful": _path("status.succeeded", "0")},
    "resourceslices.resource.k8s.io": {
        "spec.nodeName": _path("spec.nodeName"),
        "spec.driver": _path("spec.driver"),
    },
}


def parse_fields(text: str, resource: Resource) -> Predicate | None:
    """A test of a stored object; None for an empty selector. 400 when malformed or the field isn't selectable."""
    readers = {**_METADATA, **_FIELDS.get(resource.key, {})}
    tests: list[Predicate] = []
    for term in filter(None, text.split(",")):
        for op in ("!=", "==", "="):
            key, found, value = term.partition(op)
            if found:
                break
        else:
            raise bad_request(f"invalid selector: {text!r}; can't understand {term!r}")
        reader = readers.get(key)
        if reader is None:
            raise bad_request(f"field label not supported: {key}")
        tests.append(_field_test(reader, value, negate=op == "!="))
    if not tests:
        return None
    if len(tests) == 1:
        return tests[0]
    return lambda obj: all(test(obj) for test in tests)


def _field_test(reader: Callable[[Object], str], value: str, *, negate: bool) -> Predicate:
    if negate:
        return lambda obj: reader(obj) != value
    return lambda obj: reader(obj) == value


def parse_selectors(labels: str, fields: str, resource: Resource) -> Predicate | None:
    """Both selectors of a query as one test of a stored object; None when everything matches."""
    by_label = parse_labels(labels)
    by_field = parse_fields(fields, resource)
    if by_label is None:
        return by_field
    if by_field is None:
        return lambda obj: by_label(_labels_of(obj))
    return lambda obj: by_field(obj) and by_label(_labels_of(obj))


def _labels_of(obj: Object) -> Labels:
    """The labels of an object; none when they are no map, as in one put straight into the store."""
    labels = obj["metadata"].get("labels")
    return labels if isinstance(labels, dict) else {}
