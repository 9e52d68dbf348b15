"""Resource names as rows of the resource axis."""

from __future__ import annotations

from kube_pyscheduler.columns.vocabulary import Vocabulary
from kube_pyscheduler.objects.pod_requests import Amounts
from kube_pyscheduler.objects.quantity import to_milli, to_units

CPU, MEMORY, EPHEMERAL_STORAGE = 0, 1, 2
"""Rows that always exist: milli-CPU, bytes, bytes."""


def new_resource_vocabulary() -> Vocabulary[str]:
    """Resource names to rows of the resource axis."""
    vocabulary: Vocabulary[str] = Vocabulary()
    for name in ("cpu", "memory", "ephemeral-storage"):
        vocabulary.intern(name)
    return vocabulary


def is_scalar_resource(name: str) -> bool:
    """Whether the scheduler counts a resource besides the three that always exist.

    Extended resources, huge pages, prefixed native ones and attachable volumes.
    Source: IsScalarResourceName in pkg/scheduler/util/utils.go.
    """
    if "/" in name:
        return "kubernetes.io/" in name or is_extended_resource(name)
    return name.startswith(("hugepages-", "attachable-volumes-"))


def is_extended_resource(name: str) -> bool:
    """Whether the name is a qualified one outside kubernetes.io. Source: IsExtendedResourceName."""
    prefix, slash, rest = name.partition("/")
    return (
        slash == "/"
        and "kubernetes.io/" not in name
        and not name.startswith("requests.")
        and 0 < len(prefix) <= 253 - len("requests.")
        and 0 < len(rest) <= 63
        and "/" not in rest
    )


def column_amounts(amounts: Amounts, resources: Vocabulary[str]) -> dict[int, int]:
    """Milli-unit amounts as resource row → column value (milli for CPU, else whole units), unknown names dropped."""
    columns: dict[int, int] = {}
    for name, amount in amounts.items():
        if name == "cpu":
            columns[CPU] = to_milli(amount)
        elif name in ("memory", "ephemeral-storage") or is_scalar_resource(name):
            columns[resources.intern(name)] = to_units(amount)
    return columns
