"""Typed operations on stored objects: what the API server does between HTTP and storage.

The HTTP verbs, the in-process controllers and the seed all write through this class; they read from ``store``.
Objects given to it are taken over, objects returned are the stored ones: never change either (see ``store``).
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from kube_pyscheduler.devserver import errors
from kube_pyscheduler.devserver.resources import PODS, Resource, ResourceTable
from kube_pyscheduler.devserver.store import Object, Store, Stored

_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""Source: staging/src/k8s.io/apimachinery/pkg/util/rand/rand.go."""


def timestamp(moment: datetime) -> str:
    """metav1.Time: UTC, whole seconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


class Registry:
    """Creates, changes and deletes objects by the rules of their kind. ``now`` gives the current UTC time."""

    def __init__(
        self,
        store: Store,
        table: ResourceTable,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.store = store
        self.table = table
        self._now = now

    def now(self) -> str:
        """The current time as metav1.Time."""
        return timestamp(self._now())

    def create(self, resource: Resource, obj: Object) -> Object:
        """Store a new object with the defaults of its kind."""
        metadata = dict(obj.get("metadata") or {})
        if not metadata.get("name"):
            if not metadata.get("generateName"):
                raise errors.invalid(
                    resource.kind,
                    resource.group,
                    "",
                    [
                        errors.Cause(
                            "FieldValueRequired", "Required value: name or generateName is required", "metadata.name"
                        )
                    ],
                )
            suffix = "".join(secrets.choice(_SUFFIX_ALPHABET) for _ in range(5))
            metadata["name"] = metadata["generateName"][:58] + suffix
        metadata.pop("resourceVersion", None)
        metadata["uid"] = str(uuid.uuid4())
        metadata["creationTimestamp"] = self.now()
        obj = {**obj, "metadata": metadata}
        if resource is PODS:
            obj = self._new_pod(obj)
        return self.store.create(resource, obj).obj

    def _new_pod(self, pod: Object) -> Object:
        spec = {**pod["spec"]}
        spec.setdefault("schedulerName", "default-scheduler")
        spec.setdefault("restartPolicy", "Always")
        spec.setdefault("priority", 0)
        return {**pod, "spec": spec, "status": {"phase": "Pending", "qosClass": "BestEffort"}}

    def modify(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        change: Callable[[Object], Object],
        *,
        subresource: str = "",
    ) -> Object:
        """Replace an object by ``change(current)``; only the status when ``subresource`` is "status"."""
        current = self.store.get(resource, namespace, name)
        if current is None:
            raise errors.not_found(resource.key, name)
        return self.update(resource, change(current), subresource=subresource)

    def update(self, resource: Resource, obj: Object, *, subresource: str = "") -> Object:
        """Replace an object; a resourceVersion in it must be current."""
        metadata = obj["metadata"]
        current = self.store.get(resource, metadata.get("namespace", ""), metadata["name"])
        if current is None:
            raise errors.not_found(resource.key, metadata["name"])
        if metadata.get("resourceVersion", "") not in ("", "0", current["metadata"]["resourceVersion"]):
            raise errors.conflict(resource.key, metadata["name"], errors.STALE)
        if subresource == "status":
            obj = {**current, "status": obj.get("status") or {}}
        elif "status" in resource.subresources:
            obj = {k: v for k, v in obj.items() if k != "status"}
            if "status" in current:
                obj["status"] = current["status"]
        return self.store.update(resource, obj).obj

    def delete(self, resource: Resource, namespace: str, name: str) -> Object:
        return self.store.delete(resource, namespace, name).obj

    def bind(self, namespace: str, name: str, binding: Object) -> Stored:
        """Assign a pod to a node: 404 when absent, 409 when it can't be bound."""
        pod = self.store.get(PODS, namespace, name)
        if pod is None:
            raise errors.not_found("pods", name)
        metadata, spec = pod["metadata"], pod["spec"]
        if spec.get("nodeName"):
            raise errors.conflict("pods/binding", name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
        condition = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": self.now()}
        status = dict(pod.get("status") or {})
        status.pop("nominatedNodeName", None)
        others = [c for c in status.get("conditions") or () if c["type"] != "PodScheduled"]
        status["conditions"] = [*others, condition]
        target: dict[str, Any] = binding.get("target") or {}
        return self.store.update(
            PODS, {**pod, "metadata": metadata, "spec": {**spec, "nodeName": target.get("name", "")}, "status": status}
        )
