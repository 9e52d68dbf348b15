"""Expected refusals as values: a code, the reasons, the plugin that spoke."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum


class Code(IntEnum):
    """What a plugin answers. Names on the wire and in metrics are ``label``.

    Source: Code in kube-scheduler/framework/interface.go.
    """

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    PENDING = 6

    @property
    def label(self) -> str:
        return _LABELS[self]


_LABELS = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.WAIT: "Wait",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}

_REJECTED = frozenset((Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING))


@dataclass(frozen=True, slots=True)
class Status:
    """One answer. ``plugin`` is filled in by the engine."""

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def is_success(self) -> bool:
        return self.code == Code.SUCCESS

    @property
    def is_rejected(self) -> bool:
        """The pod was refused, which is no error."""
        return self.code in _REJECTED

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> Status:
        """The same answer, given by ``plugin``."""
        return replace(self, plugin=plugin)


_GRAVITY = {Code.UNSCHEDULABLE_AND_UNRESOLVABLE: 1, Code.ERROR: 2}


def combined(statuses: Sequence[Status]) -> Status:
    """Several answers about one node as one: all reasons, under the gravest code and the plugin that gave it first.

    Source: PluginToStatus.Merge in pkg/scheduler/framework/interface.go of 1.22.
    """
    gravest = max(statuses, key=lambda status: _GRAVITY.get(status.code, 0))
    return replace(gravest, reasons=tuple([reason for status in statuses for reason in status.reasons]))


SUCCESS = Status(Code.SUCCESS)
SKIP = Status(Code.SKIP)
"""PreFilter or PreScore: the plugin does not concern this pod. PreBind: there is nothing to do."""


def unschedulable(*reasons: str) -> Status:
    """A refusal that preemption or another pod's end may lift."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """A refusal that removing pods cannot lift."""
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)


def error(*reasons: str) -> Status:
    """Something unexpected; the attempt fails as a whole."""
    return Status(Code.ERROR, reasons)
