"""How single values look in a table.

Source: staging/src/k8s.io/apimachinery/pkg/util/duration/duration.go and pkg/printers/internalversion.
"""

from __future__ import annotations

from typing import Any

from kube_pyscheduler.devserver.times import parse_time

Object = dict[str, Any]

NONE = "<none>"
UNKNOWN = "<unknown>"
UNSET = "<unset>"


def human_duration(seconds: float) -> str:
    """A duration in at most two units, coarser the longer it is: "45s", "3m20s", "5h", "12d"."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 0:
        return "0s"
    if whole < 120:
        return f"{whole}s"
    minutes = whole // 60
    if minutes < 10:
        return f"{minutes}m{whole % 60}s" if whole % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    hours = minutes // 60
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if hours < 192:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    if days < 730:
        return f"{days}d"
    years = days // 365
    if years < 8:
        return f"{years}y{days % 365}d" if days % 365 else f"{years}y"
    return f"{years}y"


def since(text: Any, now: float) -> str:
    """The time that has passed since an RFC 3339 time."""
    if not text:
        return UNKNOWN
    try:
        return human_duration(now - parse_time(text))
    except (ValueError, TypeError):
        return UNKNOWN


def age(obj: Object, now: float) -> str:
    return since(obj["metadata"].get("creationTimestamp"), now)


def path(obj: Any, *keys: str, default: Any = None) -> Any:
    """The value behind nested keys, or the default."""
    for key in keys:
        obj = obj.get(key) if isinstance(obj, dict) else None
        if obj is None:
            return default
    return obj


def pairs(labels: Any) -> str:
    """A map as "a=b,c=d"."""
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def containers(spec: Any) -> str:
    return ",".join(container.get("name", "") for container in path(spec, "containers") or ())


def images(spec: Any) -> str:
    return ",".join(container.get("image", "") for container in path(spec, "containers") or ())


_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def access_modes(modes: Any) -> str:
    return ",".join(_MODES.get(mode, mode) for mode in modes or ())
