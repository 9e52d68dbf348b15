"""How a write is to be done, beyond what is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kube_pyscheduler.devserver.errors import Cause, bad_request, invalid

IGNORE = "Ignore"
WARN = "Warn"
STRICT = "Strict"


@dataclass(slots=True)
class WriteOptions:
    """``field_validation`` says what unknown fields are: ignored, warned of, or refused.

    ``warnings`` collects what the client is to be told beside the answer.
    """

    dry_run: bool = False
    field_validation: str = IGNORE
    field_manager: str = ""
    warnings: list[str] = field(default_factory=list)


@dataclass(slots=True)
class DeleteOptions:
    """metav1.DeleteOptions; ``grace_seconds`` None is the kind's default, ``propagation`` "" likewise."""

    grace_seconds: int | None = None
    propagation: str = ""
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False


def is_dry_run(values: list[str]) -> bool:
    """Whether the dryRun values of a request ask for one; 422 for values other than All."""
    if any(value != "All" for value in values):
        cause = Cause("FieldValueNotSupported", f'Unsupported value: {values}: supported values: "All"', "dryRun")
        raise invalid("CreateOptions", "meta.k8s.io", "", [cause])
    return bool(values)


def read_delete_options(body: dict[str, Any], query: dict[str, str]) -> DeleteOptions:
    """DeleteOptions from a request's body, else from its query."""
    preconditions = body.get("preconditions") or {}
    grace: Any = body.get("gracePeriodSeconds", query.get("gracePeriodSeconds"))
    propagation = body.get("propagationPolicy") or query.get("propagationPolicy") or ""
    orphan = body.get("orphanDependents", query.get("orphanDependents"))
    if orphan is not None:
        if propagation:
            raise bad_request("orphanDependents and deletionPropagation cannot be both set")
        propagation = "Orphan" if orphan in (True, "true") else "Background"
    if propagation not in ("", "Background", "Foreground", "Orphan"):
        supported = '"Foreground", "Background", "Orphan", "nil"'
        cause = Cause(
            "FieldValueNotSupported",
            f'Unsupported value: "{propagation}": supported values: {supported}',
            "propagationPolicy",
        )
        raise invalid("DeleteOptions", "meta.k8s.io", "", [cause])
    try:
        seconds = None if grace is None else int(grace)
    except (TypeError, ValueError):
        raise bad_request(f"gracePeriodSeconds must be a number, not {grace!r}") from None
    if seconds is not None and seconds < 0:
        seconds = 1
    dry_run = body.get("dryRun") or ([query["dryRun"]] if query.get("dryRun") else [])
    return DeleteOptions(
        grace_seconds=seconds,
        propagation=propagation,
        uid=preconditions.get("uid") or "",
        resource_version=preconditions.get("resourceVersion") or "",
        dry_run=is_dry_run(dry_run),
    )
