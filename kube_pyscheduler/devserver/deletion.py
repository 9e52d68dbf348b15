"""Deleting: preconditions, grace, finalizers, and what becomes of dependents.

Source: staging/src/k8s.io/apiserver/pkg/registry/rest/delete.go and generic/registry/store.go.
"""

from __future__ import annotations

from typing import Any

from kube_pyscheduler.devserver import errors
from kube_pyscheduler.devserver.options import DeleteOptions
from kube_pyscheduler.devserver.resources import NAMESPACES, PODS, Resource
from kube_pyscheduler.devserver.store import Object, Store
from kube_pyscheduler.devserver.times import parse_time, timestamp
from kube_pyscheduler.kit.clock import Clock

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"


class Deletion:
    """Deletes by the rules. Pods on a node end gracefully, namespaces when they are empty, all others at once."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def delete(self, resource: Resource, namespace: str, name: str, options: DeleteOptions) -> tuple[Object, bool]:
        """The object in its last or its terminating state, and whether it is gone. 404, 409."""
        current = self._store.get(resource, namespace, name)
        if current is None:
            raise errors.not_found(resource.key, name)
        _check_preconditions(resource, current["metadata"], options)
        marked = self._marked(resource, current, options)
        metadata = marked["metadata"]
        at_once = not metadata.get("finalizers") and not metadata.get("deletionGracePeriodSeconds")
        if resource is NAMESPACES and (marked.get("spec") or {}).get("finalizers"):
            at_once = False
        if options.dry_run:
            return marked, at_once
        if at_once:
            return self._store.delete(resource, namespace, name).obj, True
        return self._store.update(resource, marked).obj, False

    def _marked(self, resource: Resource, current: Object, options: DeleteOptions) -> Object:
        """The object as it waits for its end: deletion time, grace, finalizers for its dependents."""
        metadata = dict(current["metadata"])
        now = self._clock.now()
        grace = _grace(resource, current, options)
        finalizers = _finalizers(metadata.get("finalizers") or [], options.propagation)
        if finalizers:
            metadata["finalizers"] = finalizers
        else:
            metadata.pop("finalizers", None)
        if not metadata.get("deletionTimestamp"):
            metadata["deletionTimestamp"] = timestamp(now + grace)
            metadata["deletionGracePeriodSeconds"] = grace
            if metadata.get("generation"):
                metadata["generation"] += 1
        else:
            self._shorten(metadata, grace, now, asked=options.grace_seconds is not None)
        marked = {**current, "metadata": metadata}
        if resource is NAMESPACES:
            marked["status"] = {**(current.get("status") or {}), "phase": "Terminating"}
        return marked

    def _shorten(self, metadata: dict[str, Any], grace: int, now: float, *, asked: bool) -> None:
        """A second deletion may only bring the end nearer."""
        pending = metadata.get("deletionGracePeriodSeconds") or 0
        if not asked or grace >= pending:
            return
        until = parse_time(metadata["deletionTimestamp"]) - pending + grace
        if until < now:
            until = now
            grace = min(grace, 1)
        metadata["deletionTimestamp"] = timestamp(until)
        metadata["deletionGracePeriodSeconds"] = grace


def finished(resource: Resource, new: Object) -> bool:
    """Whether an update leaves an object that was only waiting for its finalizers, and must now go."""
    metadata = new["metadata"]
    if not metadata.get("deletionTimestamp") or metadata.get("finalizers"):
        return False
    if resource is NAMESPACES and (new.get("spec") or {}).get("finalizers"):
        return False
    return not metadata.get("deletionGracePeriodSeconds")


def _check_preconditions(resource: Resource, metadata: dict[str, Any], options: DeleteOptions) -> None:
    for wanted, key, title in (
        (options.uid, "uid", "UID"),
        (options.resource_version, "resourceVersion", "ResourceVersion"),
    ):
        if wanted and wanted != metadata[key]:
            outcome = "deleted and then recreated" if key == "uid" else "modified"
            raise errors.conflict(
                resource.kind + (f".{resource.group}" if resource.group else ""),
                metadata["name"],
                f"the {title} in the precondition ({wanted}) does not match the {title} in record ({metadata[key]}). "
                f"The object might have been {outcome}",
            )


def _grace(resource: Resource, current: Object, options: DeleteOptions) -> int:
    if resource is not PODS:
        return 0
    spec = current.get("spec") or {}
    if not spec.get("nodeName") or (current.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
        return 0
    if options.grace_seconds is not None:
        return options.grace_seconds
    return int(spec.get("terminationGracePeriodSeconds") or 0)


def _finalizers(current: list[str], propagation: str) -> list[str]:
    if not propagation:
        return current
    kept = [finalizer for finalizer in current if finalizer not in (ORPHAN, FOREGROUND)]
    wanted = {"Orphan": [ORPHAN], "Foreground": [FOREGROUND]}.get(propagation, [])
    return kept + wanted
