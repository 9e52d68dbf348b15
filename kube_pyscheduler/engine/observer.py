"""How the engine can be watched without reading a clock."""

from __future__ import annotations

from typing import Protocol

from kube_pyscheduler.framework.status import Code


class EngineObserver(Protocol):
    """Told when an extension point begins and ends; whoever listens takes the time."""

    def enter(self, point: str) -> None:
        """``point`` is PreFilter, Filter, PostFilter, PreScore or Score."""

    def leave(self, point: str, code: Code) -> None:
        """The point that was entered last is done."""


class Unobserved:
    """Nobody listens."""

    def enter(self, point: str) -> None:
        return None

    def leave(self, point: str, code: Code) -> None:
        return None
