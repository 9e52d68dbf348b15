"""What the queue tells whoever measures it."""

from __future__ import annotations

from typing import Protocol


class QueueObserver(Protocol):
    """Durations are seconds. Called on the hot path: must be cheap."""

    def queue_incoming(self, queue: str, event: str, count: int = 1) -> None:
        """Pods entered ``active``, ``backoff`` or ``unschedulable`` because of ``event``."""

    def hint(self, plugin: str, event: str, hint: str, seconds: float) -> None:
        """A QueueingHint was asked; ``hint`` is Queue, QueueSkip or Error."""

    def extension_point(self, profile: str, point: str, status: str, seconds: float) -> None:
        """All PreEnqueue plugins were asked about one pod."""


class Unobserved:
    """Nobody measures."""

    def queue_incoming(self, queue: str, event: str, count: int = 1) -> None:
        return None

    def hint(self, plugin: str, event: str, hint: str, seconds: float) -> None:
        return None

    def extension_point(self, profile: str, point: str, status: str, seconds: float) -> None:
        return None
