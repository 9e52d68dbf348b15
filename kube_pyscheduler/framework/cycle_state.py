"""What plugins keep for the length of one attempt."""

from __future__ import annotations

from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")


class StateKey(Generic[T]):
    """A typed place in a CycleState; compared by identity. ``name`` is for messages."""

    def __init__(self, name: str) -> None:
        self.name = name


class CycleState:
    """Values by StateKey, from PreFilter to PostBind of one pod."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[StateKey[Any], Any] = {}

    def write(self, key: StateKey[T], value: T) -> None:
        self._values[key] = value

    def read(self, key: StateKey[T]) -> T | None:
        """The value, or None where nothing was written."""
        return cast("T | None", self._values.get(key))
