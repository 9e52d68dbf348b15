"""Checks of CustomResourceDefinitions: what it takes to serve the kind.

Source: staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go.
"""

from __future__ import annotations

from typing import Any

from kube_pyscheduler.devserver.problems import Problems

Object = dict[str, Any]

SCOPES = ("Cluster", "Namespaced")


def check_definition(definition: Object, problems: Problems) -> None:
    spec = definition.get("spec") or {}
    names = spec.get("names") or {}
    group, plural = spec.get("group", ""), names.get("plural", "")
    name = definition["metadata"].get("name", "")
    if name != f"{plural}.{group}":
        problems.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    _check_present(spec, ("group",), "spec", problems)
    _check_present(names, ("plural", "kind"), "spec.names", problems)
    problems.one_of("spec.scope", spec.get("scope"), SCOPES)
    versions = spec.get("versions") or []
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        _check_present(version, ("name",), path, problems)
        for place, column in enumerate(version.get("additionalPrinterColumns") or ()):
            _check_present(column, ("name", "type", "jsonPath"), f"{path}.additionalPrinterColumns[{place}]", problems)
    if sum(bool(version.get("storage")) for version in versions) != 1:
        problems.invalid("spec.versions", versions, "must have exactly one version marked as storage version")


def _check_present(fields: Object, keys: tuple[str, ...], path: str, problems: Problems) -> None:
    for key in keys:
        if not fields.get(key):
            problems.required(f"{path}.{key}")
