"""What /healthz, /livez and /readyz answer, in kube-scheduler's words.

Source: k8s.io/apiserver/pkg/server/healthz/healthz.go.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from kube_pyscheduler.kit.verbosity import Log

log = Log(__name__)


@dataclass(frozen=True, slots=True)
class Check:
    """``test`` gives the reason for being unhealthy, or "" while all is well."""

    name: str
    test: Callable[[], str]


PING = Check("ping", lambda: "")
"""Answers, so the event loop runs."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    text: str


class Health:
    """Named groups of checks: ``{"healthz": …, "livez": …, "readyz": …}``. A group without checks has ``ping``."""

    def __init__(self, groups: Mapping[str, Sequence[Check]]) -> None:
        self.groups = {name: tuple(checks) or (PING,) for name, checks in groups.items()}

    def answer(self, group: str, *, verbose: bool = False, exclude: Collection[str] = ()) -> Answer:
        """All checks of a group but the excluded ones. Reasons are for the log: the answer is public."""
        lines: list[str] = []
        failed: list[str] = []
        checks = self.groups[group]
        for check in checks:
            if check.name in exclude:
                lines.append(f"[+]{check.name} excluded: ok")
            elif reason := check.test():
                lines.append(f"[-]{check.name} failed: reason withheld")
                failed.append(f"{check.name}: {reason}")
            else:
                lines.append(f"[+]{check.name} ok")
        unknown = sorted(set(exclude) - {check.name for check in checks})
        if unknown:
            names = ",".join(f'"{name}"' for name in unknown)
            lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
        if failed:
            log.info(2, "Health check failed", group=group, reasons=failed)
            return Answer(500, "\n".join([*lines, f"{group} check failed\n"]))
        return Answer(200, "\n".join([*lines, f"{group} check passed\n"]) if verbose else "ok")

    def answer_one(self, group: str, name: str) -> Answer:
        """One check by itself, with its reason; 404 where the group has no such check."""
        for check in self.groups[group]:
            if check.name == name:
                reason = check.test()
                return Answer(500, f"internal server error: {reason}\n") if reason else Answer(200, "ok")
        return Answer(404, "404 page not found\n")
