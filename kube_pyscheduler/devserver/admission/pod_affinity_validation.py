"""Checks of affinity rules and label selectors.

Source: pkg/apis/core/validation/validation.go and apimachinery/pkg/apis/meta/v1/validation/validation.go.
"""

from __future__ import annotations

from typing import Any

from kube_pyscheduler.devserver.admission import names
from kube_pyscheduler.devserver.admission.metadata import check_labels
from kube_pyscheduler.devserver.problems import Problems

Object = dict[str, Any]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def check_affinity(affinity: Object, path: str, problems: Problems) -> None:
    node = affinity.get("nodeAffinity") or {}
    where = f"{path}.nodeAffinity"
    required = node.get(_REQUIRED)
    if required is not None:
        check_node_selector(required, f"{where}.{_REQUIRED}", problems)
    for index, preferred in enumerate(node.get(_PREFERRED) or ()):
        term = f"{where}.{_PREFERRED}[{index}]"
        _check_weight(preferred, term, problems)
        _check_node_term(preferred.get("preference") or {}, f"{term}.preference", problems)
    for side in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(side) or {}
        for index, term in enumerate(rules.get(_REQUIRED) or ()):
            _check_pod_term(term, f"{path}.{side}.{_REQUIRED}[{index}]", problems)
        for index, weighted in enumerate(rules.get(_PREFERRED) or ()):
            place = f"{path}.{side}.{_PREFERRED}[{index}]"
            _check_weight(weighted, place, problems)
            _check_pod_term(weighted.get("podAffinityTerm") or {}, f"{place}.podAffinityTerm", problems)


def check_node_selector(selector: Object, path: str, problems: Problems) -> None:
    terms = selector.get("nodeSelectorTerms") or ()
    if not terms:
        problems.required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
    for index, term in enumerate(terms):
        _check_node_term(term, f"{path}.nodeSelectorTerms[{index}]", problems)


def _check_weight(weighted: Object, path: str, problems: Problems) -> None:
    if not 1 <= weighted.get("weight", 0) <= 100:
        problems.invalid(f"{path}.weight", weighted.get("weight", 0), "must be in the range 1-100")


def _check_node_term(term: Object, path: str, problems: Problems) -> None:
    for index, requirement in enumerate(term.get("matchExpressions") or ()):
        where = f"{path}.matchExpressions[{index}]"
        operator, values = requirement.get("operator"), requirement.get("values") or ()
        if operator in ("Gt", "Lt"):
            if len(values) != 1:
                problems.required(f"{where}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
        else:
            _check_operator(operator, values, where, ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"), problems)
        _check_key(requirement, where, problems)
    for index, requirement in enumerate(term.get("matchFields") or ()):
        where = f"{path}.matchFields[{index}]"
        if requirement.get("operator") not in ("In", "NotIn"):
            problems.invalid(f"{where}.operator", requirement.get("operator"), "not a valid selector operator")
        elif len(requirement.get("values") or ()) != 1:
            problems.required(
                f"{where}.values", "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            )
        if requirement.get("key") != "metadata.name":
            problems.invalid(f"{where}.key", requirement.get("key"), "not a valid field selector key")


def _check_pod_term(term: Object, path: str, problems: Problems) -> None:
    key = term.get("topologyKey", "")
    if not key:
        problems.required(f"{path}.topologyKey", "can not be empty")
    elif why := names.qualified(key):
        problems.invalid(f"{path}.topologyKey", key, why)
    for selector in ("labelSelector", "namespaceSelector"):
        check_selector(term.get(selector) or {}, f"{path}.{selector}", problems)
    for index, namespace in enumerate(term.get("namespaces") or ()):
        if why := names.label_name(namespace):
            problems.invalid(f"{path}.namespaces[{index}]", namespace, why)
    if term.get("labelSelector") is None:
        for label_keys in ("matchLabelKeys", "mismatchLabelKeys"):
            if term.get(label_keys):
                problems.forbidden(f"{path}.{label_keys}", "must not be specified when labelSelector is not set")


def check_selector(selector: Object, path: str, problems: Problems) -> None:
    """A metav1.LabelSelector."""
    check_labels(selector.get("matchLabels") or {}, f"{path}.matchLabels", problems)
    for index, requirement in enumerate(selector.get("matchExpressions") or ()):
        where = f"{path}.matchExpressions[{index}]"
        operators = ("In", "NotIn", "Exists", "DoesNotExist")
        _check_operator(requirement.get("operator"), requirement.get("values") or (), where, operators, problems)
        _check_key(requirement, where, problems)


def _check_key(requirement: Object, path: str, problems: Problems) -> None:
    key = requirement.get("key", "")
    if why := names.qualified(key):
        problems.invalid(f"{path}.key", key, why)


def _check_operator(operator: Any, values: Any, path: str, allowed: tuple[str, ...], problems: Problems) -> None:
    if operator in ("In", "NotIn"):
        if not values:
            problems.required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            problems.forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    elif operator not in allowed:
        problems.invalid(f"{path}.operator", operator, "not a valid selector operator")
