"""CustomResourceDefinitions: serving their kinds from creation to deletion.

Objects of custom kinds are stored as they come: schemas serve ``kubectl explain`` but are not enforced. All served
versions show the same object (conversion None).
Source: staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver.
"""

from __future__ import annotations

from typing import Any

from kube_pyscheduler.devserver.registry import Registry
from kube_pyscheduler.devserver.resources import CUSTOM_RESOURCE_DEFINITIONS, PrinterColumn, Resource
from kube_pyscheduler.devserver.store import DELETED, Change, Object


class CustomResources:
    """Keeps a registry's table in step with its CustomResourceDefinitions, from construction on."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._served: dict[str, list[Resource]] = {}
        registry.store.subscribe(CUSTOM_RESOURCE_DEFINITIONS, self._follow)

    def _follow(self, change: Change) -> None:
        definition = change.new.obj
        name = definition["metadata"]["name"]
        for resource in self._served.pop(name, ()):
            self._registry.table.remove(resource)
        if change.kind == DELETED:
            self._drop_objects(definition)
            return
        resources = self._served[name] = resources_of(definition)
        for resource in resources:
            self._registry.table.add(resource)
        if not _established(definition):
            self._establish(definition)

    def _establish(self, definition: Object) -> None:
        now = self._registry.now()
        conditions = [
            {"type": kind, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message}
            for kind, reason, message in (
                ("NamesAccepted", "NoConflicts", "no conflicts found"),
                ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
            )
        ]
        spec = definition["spec"]
        status = {
            "conditions": conditions,
            "acceptedNames": _names(spec),
            "storedVersions": [version["name"] for version in spec["versions"] if version.get("storage")],
        }
        self._registry.update(CUSTOM_RESOURCE_DEFINITIONS, {**definition, "status": status}, subresource="status")

    def _drop_objects(self, definition: Object) -> None:
        for resource in resources_of(definition)[:1]:
            for obj in self._registry.store.list_objects(resource):
                metadata = obj["metadata"]
                self._registry.store.delete(resource, metadata.get("namespace", ""), metadata["name"])


def _established(definition: Object) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def _names(spec: dict[str, Any]) -> dict[str, Any]:
    names = spec["names"]
    kind = names["kind"]
    return {"listKind": f"{kind}List", "singular": kind.lower(), **names}


def resources_of(definition: Object) -> list[Resource]:
    """The resources that a definition serves, one a version."""
    spec = definition["spec"]
    names = _names(spec)
    return [
        Resource(
            group=spec["group"],
            version=version["name"],
            plural=names["plural"],
            singular=names["singular"],
            kind=names["kind"],
            namespaced=spec.get("scope") != "Cluster",
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            subresources=_subresources(version),
            printer_columns=tuple(_printer_columns(version)),
            schema=(version.get("schema") or {}).get("openAPIV3Schema"),
        )
        for version in spec["versions"]
        if version.get("served")
    ]


def _subresources(version: dict[str, Any]) -> tuple[str, ...]:
    """status, and scale when the replicas are where a Deployment has them."""
    given = version.get("subresources") or {}
    found = ["status"] if "status" in given else []
    if (given.get("scale") or {}).get("specReplicasPath") == ".spec.replicas":
        found.insert(0, "scale")
    return tuple(found)


def _printer_columns(version: dict[str, Any]) -> list[PrinterColumn]:
    return [
        PrinterColumn(
            column["name"],
            column.get("type", "string"),
            tuple(column["jsonPath"].strip(".").split(".")),
            column.get("priority", 0),
        )
        for column in version.get("additionalPrinterColumns") or ()
    ]
