"""Event objects of the controllers; one that repeats is counted up."""

from __future__ import annotations

import hashlib

from kube_pyscheduler.devserver.registry import Registry
from kube_pyscheduler.devserver.resources import EVENTS, NAMESPACES
from kube_pyscheduler.devserver.store import Object

NORMAL = "Normal"
WARNING = "Warning"


class EventWriter:
    """Writes core/v1 Events about objects."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def write(self, component: str, about: Object, kind: str, reason: str, message: str, *, once: bool = False) -> None:
        """``kind`` is NORMAL or WARNING; with ``once`` repetitions are not counted. In a namespace that is going
        nothing is written."""
        metadata = about["metadata"]
        namespace = metadata.get("namespace") or "default"
        identity = "\0".join((component, metadata["uid"], kind, reason, message))
        name = f"{metadata['name'][:200]}.{hashlib.sha256(identity.encode()).hexdigest()[:16]}"
        now = self._registry.now()
        known = self._registry.store.get(EVENTS, namespace, name)
        if known is not None:
            if once:
                return
            self._registry.update(EVENTS, {**known, "count": known.get("count", 1) + 1, "lastTimestamp": now})
            return
        home = self._registry.store.get(NAMESPACES, "", namespace)
        if home is None or home["metadata"].get("deletionTimestamp"):
            return
        self._registry.create(
            EVENTS,
            {
                "metadata": {"name": name, "namespace": namespace},
                "involvedObject": {
                    "apiVersion": about["apiVersion"],
                    "kind": about["kind"],
                    "name": metadata["name"],
                    "uid": metadata["uid"],
                    "resourceVersion": metadata["resourceVersion"],
                    **({"namespace": metadata["namespace"]} if metadata.get("namespace") else {}),
                },
                "type": kind,
                "reason": reason,
                "message": message,
                "source": {"component": component},
                "reportingComponent": component,
                "firstTimestamp": now,
                "lastTimestamp": now,
                "count": 1,
            },
        )
