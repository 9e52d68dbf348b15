"""Server-side apply: merging a configuration by ownership of fields.

Ownership is recorded from the first apply on; fields set before belong to a manager "before-first-apply".
Source: staging/src/k8s.io/apimachinery/pkg/util/managedfields and sigs.k8s.io/structured-merge-diff/merge.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from kube_pyscheduler.devserver.errors import Cause, StatusError
from kube_pyscheduler.devserver.patching.field_sets import (
    Path,
    child_type,
    element_of,
    from_fields,
    is_granular,
    leaves,
    shown,
    to_fields,
)
from kube_pyscheduler.devserver.schema.types import Type

Object = dict[str, Any]

FIRST_MANAGER = "before-first-apply"
CLIENT_SIDE_SUCCESSOR = "kubectl"
"""The manager that takes over from client-side apply without conflict. Source: internal/lastappliedmanager.go there."""
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
APPLY = "Apply"
UPDATE = "Update"
_SYSTEM = ("apiVersion", "kind", "status")
_SYSTEM_METADATA = (
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "managedFields",
)


class Owner:
    """One entry of managedFields."""

    __slots__ = ("api_version", "manager", "operation", "paths", "subresource", "time")

    def __init__(self, manager: str, operation: str, api_version: str, time: str, subresource: str) -> None:
        self.manager = manager
        self.operation = operation
        self.api_version = api_version
        self.time = time
        self.subresource = subresource
        self.paths: set[Path] = set()

    @property
    def key(self) -> tuple[str, str, str]:
        return self.manager, self.operation, self.subresource

    def entry(self) -> Object:
        entry: Object = {"manager": self.manager, "operation": self.operation, "apiVersion": self.api_version}
        entry["time"] = self.time
        entry["fieldsType"] = "FieldsV1"
        entry["fieldsV1"] = to_fields(self.paths)
        if self.subresource:
            entry["subresource"] = self.subresource
        return entry


def _owned(obj: Object, *, keep_status: bool = False) -> Object:
    """The object without what nobody owns."""
    metadata = {k: v for k, v in (obj.get("metadata") or {}).items() if k not in _SYSTEM_METADATA}
    skipped = _SYSTEM[:2] if keep_status else _SYSTEM
    owned = {k: v for k, v in obj.items() if k not in skipped and k != "metadata"}
    return {**owned, "metadata": metadata} if metadata else owned


def owners_of(obj: Object) -> list[Owner]:
    """The owners that an object's managedFields record."""
    owners = []
    for entry in (obj.get("metadata") or {}).get("managedFields") or ():
        owner = Owner(
            entry["manager"],
            entry["operation"],
            entry.get("apiVersion", ""),
            entry.get("time", ""),
            entry.get("subresource", ""),
        )
        owner.paths = from_fields(entry.get("fieldsV1") or {})
        owners.append(owner)
    return owners


def with_owners(obj: Object, owners: list[Owner]) -> Object:
    entries = [owner.entry() for owner in owners if owner.paths]
    return {**obj, "metadata": {**obj["metadata"], "managedFields": entries}}


def apply(
    live: Object | None,
    applied: Object,
    kind: Type,
    *,
    manager: str,
    api_version: str,
    now: str,
    force: bool,
    read: Callable[[Object], Object],
    subresource: str = "",
) -> Object:
    """The object after ``manager`` applied a configuration; ``live`` is None when there is none yet.

    ``read`` normalises an object of the kind (for the last-applied annotation). 409 with a cause for each field that
    another manager owns and that would change, unless ``force``.
    """
    wanted = leaves(_owned(applied, keep_status=subresource == "status"), kind)
    mine = Owner(manager, APPLY, api_version, now, subresource)
    mine.paths = set(wanted)
    if live is None:
        return with_owners(applied, [mine])
    present = leaves(_owned(live, keep_status=True), kind)
    owners = owners_of(live) or [_first_owner(api_version, now, live, kind)]
    before = next((owner for owner in owners if owner.key == mine.key), None)
    others = [owner for owner in owners if owner is not before]
    changed = {path for path in wanted if path in present and present[path] != wanted[path]}
    excused = _last_applied(live, present, kind, read) if manager == CLIENT_SIDE_SUCCESSOR else set()
    conflicts = [(owner, path) for owner in others for path in sorted(owner.paths & (changed - excused))]
    if conflicts and not force:
        raise _conflict(conflicts)
    merged: Object = _merge(live, applied, kind)
    if before is not None and before.paths == mine.paths:
        mine.time = before.time
    for owner in others:
        owner.paths -= changed
    if before is not None:
        kept = mine.paths.union(*(owner.paths for owner in others))
        merged = _remove_all(merged, kind, before.paths - kept, kept)
    metadata = {**(merged.get("metadata") or {}), "name": live["metadata"]["name"]}
    return with_owners({**merged, "metadata": metadata}, [*others, mine])


def track_update(
    old: Object, new: Object, kind: Type, *, manager: str, api_version: str, now: str, subresource: str
) -> Object:
    """The new object with the fields that an ordinary write changed given to its writer.

    Objects without managedFields stay without: see the module's docstring.
    """
    owners = owners_of(old)
    if not owners:
        return new
    before, after = leaves(_owned(old, keep_status=True), kind), leaves(_owned(new, keep_status=True), kind)
    changed = {path for path, value in after.items() if path not in before or before[path] != value}
    gone = before.keys() - after.keys()
    for owner in owners:
        owner.paths -= changed | gone
    if changed:
        key = (manager, UPDATE, subresource)
        mine = next((owner for owner in owners if owner.key == key), None)
        if mine is None:
            mine = Owner(manager, UPDATE, api_version, now, subresource)
            owners.append(mine)
        mine.time = now
        mine.paths |= changed
    return with_owners(new, owners)


def _first_owner(api_version: str, now: str, live: Object, kind: Type) -> Owner:
    owner = Owner(FIRST_MANAGER, UPDATE, api_version, now, "")
    owner.paths = set(leaves(_owned(live), kind))
    return owner


def _last_applied(live: Object, present: dict[Path, Any], kind: Type, read: Callable[[Object], Object]) -> set[Path]:
    """The fields that client-side apply set and that are still as it set them."""
    text = (live["metadata"].get("annotations") or {}).get(LAST_APPLIED)
    if not text:
        return set()
    try:
        last = leaves(_owned(read(msgspec.json.decode(text))), kind)
    except (msgspec.DecodeError, StatusError):
        return set()
    return {path for path, value in last.items() if path in present and present[path] == value}


def _conflict(conflicts: list[tuple[Owner, Path]]) -> StatusError:
    def told(owner: Owner) -> str:
        part = f' with subresource "{owner.subresource}"' if owner.subresource else ""
        return f'"{owner.manager}"{part}' + (f" using {owner.api_version}" if owner.operation == UPDATE else "")

    causes = [Cause("FieldManagerConflict", f"conflict with {told(owner)}", shown(path)) for owner, path in conflicts]
    if len(causes) == 1:
        message = f"Apply failed with 1 conflict: {causes[0].message}: {causes[0].field}"
    else:
        by_owner: dict[str, list[str]] = {}
        for owner, path in conflicts:
            by_owner.setdefault(told(owner), []).append(f"- {shown(path)}")
        parts = [f"conflicts with {name}:\n" + "\n".join(fields) for name, fields in sorted(by_owner.items())]
        message = f"Apply failed with {len(causes)} conflicts: " + "\n".join(parts)
    return StatusError(409, "Conflict", message, causes=causes)


def _merge(live: Any, applied: Any, kind: Type) -> Any:
    if not (is_granular(live, kind) and is_granular(applied, kind)):
        return applied
    if isinstance(applied, dict):
        if not isinstance(live, dict):
            return applied
        result = dict(live)
        for key, value in applied.items():
            result[key] = _merge(live[key], value, child_type(kind, key)) if key in live else value
        return result
    places = {element_of(item, kind): index for index, item in enumerate(live)}
    items = list(live)
    for item in applied:
        index = places.get(element_of(item, kind))
        if index is None:
            items.append(item)
        else:
            items[index] = _merge(items[index], item, kind.item)
    return items


def _remove_all(obj: Object, kind: Type, paths: set[Path], kept: set[Path]) -> Object:
    """The object without the paths, but for what holds a kept one."""
    removed: set[Path] = set()
    # From the outside in: an item without its key could no longer be found.
    for path in sorted(paths, key=len):
        if any(path[:length] in removed for length in range(1, len(path))):
            continue
        if not any(other[: len(path)] == path for other in kept):
            obj = _remove(obj, kind, path)
            removed.add(path)
    return obj


def _remove(value: Any, kind: Type, path: Path) -> Any:
    """The value without what is at the path; unchanged when nothing is there."""
    first, rest = path[0], path[1:]
    if first.startswith("f:"):
        key = first[2:]
        if not isinstance(value, dict) or key not in value:
            return value
        if rest:
            return {**value, key: _remove(value[key], child_type(kind, key), rest)}
        return {k: v for k, v in value.items() if k != key}
    if not isinstance(value, list):
        return value
    if rest:
        return [_remove(item, kind.item, rest) if element_of(item, kind) == first else item for item in value]
    return [item for item in value if element_of(item, kind) != first]
