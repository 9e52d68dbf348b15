"""Durations as Go writes them: ``15s``, ``1m30s``, ``0.5h``."""

from __future__ import annotations

import re

_UNITS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,  # U+00B5, the micro sign
    "μs": 1e-6,  # U+03BC, the Greek letter
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")


def parse_duration(text: str) -> float:
    """Seconds. Raises ValueError where Go's time.ParseDuration refuses."""
    body = text[1:] if text[:1] in ("+", "-") else text
    if body == "0":
        return 0.0
    seconds = 0.0
    position = 0
    while position < len(body):
        part = _PART.match(body, position)
        if part is None:
            break
        seconds += float(part[1]) * _UNITS[part[2]]
        position = part.end()
    if not body or position < len(body):
        raise ValueError(f'invalid duration "{text}"')
    return -seconds if text[0] == "-" else seconds


def format_duration(seconds: float) -> str:
    """The text Go's Duration.String gives, to the microsecond: ``1h0m0s``, ``1m30s``, ``1.5s``, ``250ms``, ``0s``."""
    sign = "-" if seconds < 0 else ""
    micros = round(abs(seconds) * 1e6)
    if micros == 0:
        return "0s"
    if micros < 1000:
        return f"{sign}{micros}µs"
    if micros < 1_000_000:
        return f"{sign}{_decimal(micros, 1000)}ms"
    minutes, rest = divmod(micros, 60_000_000)
    text = f"{_decimal(rest, 1_000_000)}s"
    if minutes:
        hours, minutes = divmod(minutes, 60)
        text = f"{hours}h{minutes}m{text}" if hours else f"{minutes}m{text}"
    return sign + text


def _decimal(value: int, unit: int) -> str:
    whole, fraction = divmod(value, unit)
    digits = f"{fraction:0{len(str(unit)) - 1}d}".rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)
