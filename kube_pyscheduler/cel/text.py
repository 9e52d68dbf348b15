"""Functions of strings. Source: ext/strings.go of cel-go, and apiserver/pkg/cel/library/regex.go for ``find``."""

from __future__ import annotations

from typing import Any

from kube_pyscheduler.cel.errors import EvaluationError


def _in_range(position: int, length: int) -> None:
    if not 0 <= position <= length:
        raise EvaluationError(f"index out of range: {position}")


def char_at(text: str, position: int) -> str:
    _in_range(position, len(text))
    return text[position : position + 1]


def index_of(text: str, part: str, start: int = 0) -> int:
    if not part:
        return start
    if start < 0:
        raise EvaluationError(f"index out of range: {start}")
    return text.find(part, start)


def last_index_of(text: str, part: str, start: int | None = None) -> int:
    if start is None:
        return text.rfind(part)
    if not part:
        return start
    if start < 0:
        raise EvaluationError(f"index out of range: {start}")
    return text.rfind(part, 0, start + len(part)) if start < len(text) else -1


_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_UPPER = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")


def lower_ascii(text: str) -> str:
    return text.translate(_LOWER)


def upper_ascii(text: str) -> str:
    return text.translate(_UPPER)


def replace(text: str, old: str, new: str, count: int = -1) -> str:
    return text.replace(old, new, count)


def split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if not separator:
        # Into its characters, the rest in the last one.
        cut = len(text) if limit < 0 else min(limit - 1, len(text))
        return [*text[:cut], *([text[cut:]] if cut < len(text) else [])]
    return text.split(separator, limit - 1 if limit > 0 else -1)


def substring(text: str, start: int, end: int | None = None) -> str:
    if end is not None:
        if start > end:
            raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
        _in_range(start, len(text))
        _in_range(end, len(text))
        return text[start:end]
    _in_range(start, len(text))
    return text[start:]


def trim(text: str) -> str:
    return text.strip(
        " \t\n\v\f\r\u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
        "\u2028\u2029\u202f\u205f\u3000"
    )


def join(parts: Any, separator: str = "") -> str:
    for part in parts:
        if not isinstance(part, str):
            raise EvaluationError(f"join: invalid input: {part}")
    return separator.join(parts)


_ESCAPES = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)


def quote(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'
