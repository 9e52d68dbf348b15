"""Regular expressions in RE2's syntax and in linear time.

The checker's library brings RE2; expressions of its own ask it. Source: apiserver/pkg/cel/library/regex.go.
"""

from __future__ import annotations

from kube_pyscheduler.cel.checker import RE2
from kube_pyscheduler.cel.errors import EvaluationError
from kube_pyscheduler.cel.values import no_such_overload


def matches(text: object, pattern: object) -> bool:
    """Whether the pattern is found anywhere in the text."""
    if not isinstance(text, str) or not isinstance(pattern, str):
        raise no_such_overload()
    return RE2.matches(text, pattern)


def find(text: str, pattern: str) -> str:
    """The first match, or ""."""
    found = find_all(text, pattern, 1)
    return found[0] if found else ""


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """The matches from left to right, ``limit`` of them at most where that is not negative."""
    problem = RE2.problem(pattern)
    if problem:
        raise EvaluationError(f"Illegal regex: {problem}")
    found = RE2.find_all(text, without_groups(pattern))
    return found if limit < 0 else found[:limit]


def without_groups(pattern: str) -> str:
    """The pattern with groups that capture nothing: a match is then the whole of what matched."""
    plain = []
    position, in_class = 0, False
    while position < len(pattern):
        char = pattern[position]
        if char == "\\":
            plain.append(pattern[position : position + 2])
            position += 2
            continue
        if in_class:
            in_class = char != "]" or plain[-1] in ("[", "[^")
        elif char == "[":
            in_class = True
            if pattern.startswith("[^", position):
                plain.append("[^")
                position += 2
                continue
        elif char == "(":
            named = pattern.startswith(("(?P<", "(?<"), position)
            if named or not pattern.startswith("(?", position):
                plain.append("(?:")
                position = pattern.index(">", position) + 1 if named else position + 1
                continue
        plain.append(char)
        position += 1
    return "".join(plain)
