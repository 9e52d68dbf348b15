"""Times as text."""

from __future__ import annotations

from datetime import UTC, datetime


def rfc3339_micro(wall: float) -> str:
    """RFC 3339 in UTC with six digits after the second: ``2026-01-31T12:00:00.000000Z``. ``wall`` is in seconds since
    the epoch."""
    return datetime.fromtimestamp(wall, UTC).isoformat(timespec="microseconds")[:-6] + "Z"
