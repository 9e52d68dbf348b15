"""One column of a table, and the two that most kinds share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kube_pyscheduler.devserver.tables.cells import age, path

Object = dict[str, Any]


class Column(NamedTuple):
    """``cell`` takes (object, now); columns of priority 1 show with ``-o wide`` only."""

    name: str
    cell: Callable[[Object, float], Any]
    type: str = "string"
    priority: int = 0


Columns = tuple[Column, ...]

NAME = Column("Name", lambda obj, _: obj["metadata"]["name"])
AGE = Column("Age", age)


def field(name: str, *keys: str, default: Any = "", type: str = "string", priority: int = 0) -> Column:
    """A column that shows a field as it is."""
    return Column(name, lambda obj, _: path(obj, *keys, default=default), type, priority)


def wide(name: str, cell: Callable[[Object, float], Any]) -> Column:
    return Column(name, cell, priority=1)
