"""Times as the API writes them."""

from __future__ import annotations

from datetime import UTC, datetime


def timestamp(seconds: float) -> str:
    """metav1.Time of seconds since the epoch: UTC, whole seconds."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_timestamp(seconds: float) -> str:
    """metav1.MicroTime of seconds since the epoch."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_time(text: str) -> float:
    """Seconds since the epoch of an RFC 3339 time. ValueError when it is none."""
    return datetime.fromisoformat(text).timestamp()
