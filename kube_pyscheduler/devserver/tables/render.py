"""Objects as a meta.k8s.io/v1 Table."""

from __future__ import annotations

from typing import Any

from kube_pyscheduler.devserver.resources import Resource
from kube_pyscheduler.devserver.tables.column import Column
from kube_pyscheduler.devserver.tables.columns import columns_for

Object = dict[str, Any]


def tabulate(resource: Resource, objects: list[Object], *, include: str, now: float) -> Object:
    """A Table of the objects; ``include`` is what each row carries: "None", "Metadata" or "Object"."""
    columns = columns_for(resource)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": [_definition(column) for column in columns],
        "rows": [
            {"cells": [_cell(column, obj, now) for column in columns], **_carried(resource, obj, include)}
            for obj in objects
        ],
    }


def _cell(column: Column, obj: Object, now: float) -> Any:
    try:
        return column.cell(obj, now)
    except (TypeError, AttributeError, KeyError, ValueError, IndexError):
        return "<invalid>"  # Objects that bypassed validation must not break the list.


def _definition(column: Column) -> Object:
    return {
        "name": column.name,
        "type": column.type,
        "format": "name" if column.name == "Name" else "",
        "description": "",
        "priority": column.priority,
    }


def _carried(resource: Resource, obj: Object, include: str) -> Object:
    if include == "None":
        return {}
    if include == "Object":
        return {"object": {**obj, "kind": resource.kind, "apiVersion": resource.api_version}}
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return {"object": {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}}
