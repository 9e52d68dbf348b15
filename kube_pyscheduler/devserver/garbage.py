"""What the garbage collector and the namespace controller of a cluster do: dependents follow their owners.

Works on deletions that it sees; objects created with an owner that never existed are left alone, unlike on a real
cluster, because tests like to make such objects.
"""

from __future__ import annotations

from collections import defaultdict

from kube_pyscheduler.devserver.deletion import FOREGROUND, ORPHAN
from kube_pyscheduler.devserver.errors import StatusError
from kube_pyscheduler.devserver.options import DeleteOptions
from kube_pyscheduler.devserver.registry import Registry
from kube_pyscheduler.devserver.resources import NAMESPACES, Resource
from kube_pyscheduler.devserver.store import DELETED, Change, Object

Reference = tuple[Resource, str, str]
"""(resource, namespace, name) of an object."""


class GarbageCollector:
    """Follows all changes of a store from its construction on and acts on each at once."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._store = registry.store
        self._dependents: dict[str, set[Reference]] = defaultdict(set)
        """Owner's UID → its dependents."""
        self._store.subscribe(None, self._follow)

    def _follow(self, change: Change) -> None:
        self._index(change)
        metadata = change.new.obj["metadata"]
        if change.kind == DELETED:
            if change.resource.namespaced:
                self._finish_namespace(change.new.key[0])
            self._owner_gone(metadata.get("uid", ""))
            self._unblock_owners(change.new.obj)
        elif metadata.get("deletionTimestamp"):
            if change.resource is NAMESPACES:
                self._empty_namespace(metadata["name"])
            finalizers = metadata.get("finalizers") or ()
            if ORPHAN in finalizers:
                for dependent in tuple(self._dependents.get(metadata.get("uid"), ())):
                    self._release(dependent, metadata["uid"])
                self._drop_finalizer((change.resource, *change.new.key), ORPHAN)
            elif FOREGROUND in finalizers:
                for dependent in tuple(self._dependents.get(metadata.get("uid"), ())):
                    self._delete(dependent, "Foreground")
                if not self._dependents.get(metadata.get("uid")):
                    self._drop_finalizer((change.resource, *change.new.key), FOREGROUND)

    def _index(self, change: Change) -> None:
        reference = (change.resource, *change.new.key)
        before = _owner_uids(change.old.obj) if change.old is not None else set()
        now = set() if change.kind == DELETED else _owner_uids(change.new.obj)
        for uid in before - now:
            dependents = self._dependents[uid]
            dependents.discard(reference)
            if not dependents:
                del self._dependents[uid]
        for uid in now - before:
            self._dependents[uid].add(reference)

    # -- owners ------------------------------------------------------------------------------------------------

    def _owner_gone(self, uid: str) -> None:
        """In the background: a dependent without another owner goes too."""
        for dependent in tuple(self._dependents.get(uid, ())):
            obj = self._store.get(*dependent)
            if obj is None:
                continue
            if len(_owners(obj)) > 1:
                self._release(dependent, uid)
            else:
                self._delete(dependent, "Background")

    def _unblock_owners(self, obj: Object) -> None:
        """An owner that waits for its dependents goes when the last one is gone."""
        for owner in _owners(obj):
            if self._dependents.get(owner["uid"]):
                continue
            resource = self._registry.table.by_kind(owner.get("apiVersion", ""), owner.get("kind", ""))
            if resource is not None:
                namespace = obj["metadata"].get("namespace", "") if resource.namespaced else ""
                found = self._store.get(resource, namespace, owner.get("name", ""))
                if found is not None and found["metadata"].get("uid") == owner["uid"]:
                    self._drop_finalizer((resource, namespace, owner["name"]), FOREGROUND)

    def _release(self, dependent: Reference, uid: str) -> None:
        def without(obj: Object) -> Object:
            owners = [owner for owner in _owners(obj) if owner["uid"] != uid]
            return {**obj, "metadata": {**obj["metadata"], "ownerReferences": owners}}

        if self._store.get(*dependent) is not None:
            self._registry.modify(*dependent, without)

    def _delete(self, target: Reference, propagation: str) -> None:
        obj = self._store.get(*target)
        if obj is not None and not obj["metadata"].get("deletionTimestamp"):
            self._registry.delete(*target, DeleteOptions(propagation=propagation))

    def _drop_finalizer(self, target: Reference, finalizer: str) -> None:
        obj = self._store.get(*target)
        if obj is None or finalizer not in (obj["metadata"].get("finalizers") or ()):
            return

        def without(current: Object) -> Object:
            left = [f for f in current["metadata"]["finalizers"] if f != finalizer]
            return {**current, "metadata": {**current["metadata"], "finalizers": left}}

        self._registry.modify(*target, without)

    # -- namespaces --------------------------------------------------------------------------------------------

    def _contents(self, namespace: str) -> list[Reference]:
        return [
            (resource, namespace, obj["metadata"]["name"])
            for resource in self._registry.table
            if resource.namespaced
            for obj in self._store.list_objects(resource, namespace)
        ]

    def _empty_namespace(self, namespace: str) -> None:
        for target in self._contents(namespace):
            try:
                self._delete(target, "Background")
            except StatusError as error:
                if error.code != 404:
                    raise
        self._finish_namespace(namespace)

    def _finish_namespace(self, name: str) -> None:
        """Let a terminating namespace go once nothing is left in it."""
        namespace = self._store.get(NAMESPACES, "", name)
        if namespace is None or not namespace["metadata"].get("deletionTimestamp"):
            return
        if not (namespace.get("spec") or {}).get("finalizers") or self._contents(name):
            return
        self._registry.update(NAMESPACES, {**namespace, "spec": {"finalizers": []}}, subresource="finalize")


def _owners(obj: Object) -> list[Object]:
    """The owner references that can be read; objects put straight into the store may hold anything."""
    given = obj["metadata"].get("ownerReferences")
    if not isinstance(given, list):
        return []
    return [owner for owner in given if isinstance(owner, dict) and isinstance(owner.get("uid"), str)]


def _owner_uids(obj: Object) -> set[str]:
    return {owner["uid"] for owner in _owners(obj)}
