"""What makes two verdicts equal."""

from __future__ import annotations

from typing import Any

INFORMATIVE = frozenset({"prefilter_skip", "score_skip"})
"""Keys of ``expected`` that are not compared."""

BROKEN = "error"
"""The only key of a verdict that could not be found."""


def _normal(value: Any) -> Any:
    """Reasons are multisets; everything else is compared as it is."""
    if isinstance(value, dict):
        return {
            key: sorted(item) if key == "reasons" and isinstance(item, list) else _normal(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_normal(item) for item in value]
    return value


def _same_preemption(expected: dict[str, Any] | None, got: dict[str, Any] | None) -> bool:
    if expected is None or got is None:
        return expected is got
    among = expected.get("nominated_any")
    if among is not None:
        return got.get("nominated") in among
    keys = ("nominated", "victims", "pdb_violations")
    return all(expected.get(key) == got.get(key) for key in keys)


def differences(expected: dict[str, Any], got: dict[str, Any]) -> list[str]:
    """The keys of ``expected`` whose value is not ours: all of them where ``got`` is nothing but an error."""
    if BROKEN in got:
        return [key for key in expected if key not in INFORMATIVE]
    wrong = []
    for key, value in expected.items():
        if key in INFORMATIVE:
            continue
        ours = got.get(key)
        if key == "best":
            same = set(value) == set(ours or ())
        elif key == "preemption":
            same = _same_preemption(value, ours)
        else:
            same = _normal(value) == _normal(ours)
        if not same:
            wrong.append(key)
    return wrong


FILTER_KEYS = frozenset({"preenqueue", "prefilter", "prefilter_nodes", "filter", "feasible"})
"""What decides which nodes are feasible."""
