"""The columns of every kind, as the real server prints them.

Source: pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kube_pyscheduler.devserver.resources import Resource
from kube_pyscheduler.devserver.tables.cells import age

Object = dict[str, Any]


class Column(NamedTuple):
    """``cell`` takes (object, now); columns of priority 1 show with ``-o wide`` only."""

    name: str
    cell: Callable[[Object, float], Any]
    type: str = "string"
    priority: int = 0


NAME = Column("Name", lambda obj, _: obj["metadata"]["name"])
AGE = Column("Age", age)


def columns_for(resource: Resource) -> tuple[Column, ...]:
    return (NAME, AGE)
