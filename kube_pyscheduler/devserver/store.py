"""Objects in memory under one revision counter, with a bounded history for watches and paged lists.

The contract, for everybody who holds a ``Store``:

- An object is a plain JSON dict with apiVersion, kind and metadata. What the store hands out is the stored dict
  itself, shared by everybody: **never change it**. To change an object, build a new one that may share the parts
  left alone (``{**pod, "status": {**pod["status"], "phase": "Running"}}``) or start from ``copy_object(pod)``.
- ``create`` and ``update`` take over the dict they are given and write metadata.resourceVersion into a new
  metadata dict; the caller must not change it (or its parts) afterwards.
- Everything is synchronous and single-threaded: call it on the event loop's thread only. Between two calls the
  store is consistent.
- Subscribers are called in the order of revisions, after the write, before the writing call returns (or, when
  the write came out of a subscriber, once the change being delivered has reached all subscribers). They must be
  quick and must not raise.
- The JSON text of a revision is encoded once and shared by all lists and watches.

The store checks versions and existence, nothing else: defaults, validation and deletion rules are the registry's.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from kube_pyscheduler.devserver import errors
from kube_pyscheduler.devserver.resources import Resource

Object = dict[str, Any]
Key = tuple[str, str]
"""(namespace, name); the namespace is "" for cluster-scoped objects."""

ADDED = "ADDED"
MODIFIED = "MODIFIED"
DELETED = "DELETED"

_encode = msgspec.json.encode
_decode = msgspec.json.decode


def copy_object(obj: Object) -> Object:
    """A deep copy of a JSON object, free to change."""
    copy: Object = _decode(_encode(obj))
    return copy


class Stored:
    """One revision of one object; never changes."""

    __slots__ = ("_body", "key", "obj", "revision")

    def __init__(self, key: Key, obj: Object, revision: int) -> None:
        self.key = key
        self.obj = obj
        self.revision = revision
        self._body: bytes | None = None

    @property
    def body(self) -> bytes:
        """The JSON text without kind, apiVersion and the opening brace; encoded at the first use."""
        body = self._body
        if body is None:
            obj = self.obj
            body = self._body = _encode({k: obj[k] for k in obj if k != "kind" and k != "apiVersion"})[1:]
        return body


class Change:
    """One write: ``kind`` is ADDED, MODIFIED or DELETED.

    ``new`` is the revision written (for DELETED the last state, under the revision of the deletion), ``old`` the
    revision before, None for ADDED.
    """

    __slots__ = ("kind", "new", "old", "resource")

    def __init__(self, kind: str, resource: Resource, new: Stored, old: Stored | None) -> None:
        self.kind = kind
        self.resource = resource
        self.new = new
        self.old = old

    @property
    def revision(self) -> int:
        return self.new.revision


Subscriber = Callable[[Change], None]


class _Bucket:
    """The objects of one resource."""

    __slots__ = ("compacted", "history", "objects", "sorted_keys", "subscribers")

    def __init__(self, compacted: int) -> None:
        self.objects: dict[Key, Stored] = {}
        self.history: deque[Change] = deque()
        self.compacted = compacted
        """Changes up to this revision are no longer known."""
        self.subscribers: list[Subscriber] = []
        self.sorted_keys: list[Key] | None = None


class Store:
    """See the module's docstring for the contract. ``history_limit`` is in changes a resource."""

    def __init__(self, *, history_limit: int = 20_000) -> None:
        self.revision = 1
        """Revision of the last write; an empty store starts at 1."""
        self._history_limit = history_limit
        self._buckets: dict[str, _Bucket] = {}
        self._subscribers: list[Subscriber] = []
        self._undelivered: deque[Change] = deque()
        self._delivering = False
        self._compacted = 0

    # -- reading -----------------------------------------------------------------------------------------------

    def find(self, resource: Resource, namespace: str, name: str) -> Stored | None:
        """The current revision of an object with its encoded form, or None."""
        return self._bucket(resource).objects.get((namespace, name))

    def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """The current object, or None."""
        stored = self._bucket(resource).objects.get((namespace, name))
        return None if stored is None else stored.obj

    def list_objects(self, resource: Resource, namespace: str = "") -> list[Object]:
        """All current objects, of one namespace or of all (""), in no particular order."""
        objects = self._bucket(resource).objects.values()
        if namespace:
            return [stored.obj for stored in objects if stored.key[0] == namespace]
        return [stored.obj for stored in objects]

    def snapshot(self, resource: Resource, revision: int, *, after: Key | None = None) -> Iterator[Stored]:
        """The objects as they were at ``revision``, ordered by key, beginning behind ``after``.

        Raises the 410 Expired error when the history no longer reaches back to that revision.
        """
        bucket = self._bucket(resource)
        if revision < bucket.compacted:
            raise self._too_old(revision, bucket)
        objects = bucket.objects
        if bucket.history and bucket.history[-1].revision > revision:
            objects = dict(objects)
            for change in reversed(bucket.history):
                if change.revision <= revision:
                    break
                if change.old is None:
                    objects.pop(change.new.key, None)
                else:
                    objects[change.new.key] = change.old
            keys = sorted(objects)
        else:
            if bucket.sorted_keys is None:
                bucket.sorted_keys = sorted(objects)
            keys = bucket.sorted_keys
        start = 0 if after is None else bisect_right(keys, after)
        return (objects[key] for key in keys[start:])

    def changes_since(self, resource: Resource, revision: int) -> list[Change]:
        """The changes after ``revision``, oldest first. Raises the 410 Expired error when they are not all known."""
        bucket = self._bucket(resource)
        if revision < bucket.compacted:
            raise self._too_old(revision, bucket)
        changes: list[Change] = []
        for change in reversed(bucket.history):
            if change.revision <= revision:
                break
            changes.append(change)
        changes.reverse()
        return changes

    def count(self, resource: Resource) -> int:
        return len(self._bucket(resource).objects)

    # -- writing -----------------------------------------------------------------------------------------------

    def create(self, resource: Resource, obj: Object) -> Stored:
        """Store a new object; metadata.name (and namespace) must be set. 409 AlreadyExists if it is there."""
        metadata = obj["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        bucket = self._bucket(resource)
        if key in bucket.objects:
            raise errors.already_exists(resource.key, key[1])
        stored = self._stamp(resource, key, obj)
        bucket.objects[key] = stored
        bucket.sorted_keys = None
        self._record(bucket, Change(ADDED, resource, stored, None))
        return stored

    def update(self, resource: Resource, obj: Object) -> Stored:
        """Replace an object. A metadata.resourceVersion in ``obj`` must be the current one, else 409 Conflict.

        404 when absent. An object equal to the stored one is not written again: its revision stays.
        """
        metadata = obj["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        bucket = self._bucket(resource)
        old = bucket.objects.get(key)
        if old is None:
            raise errors.not_found(resource.key, key[1])
        current = old.obj["metadata"]["resourceVersion"]
        if metadata.get("resourceVersion") not in (None, "", "0", current):
            raise errors.conflict(resource.key, key[1], errors.STALE)
        type_meta = {"kind": resource.kind, "apiVersion": resource.api_version}
        if {**obj, **type_meta, "metadata": {**metadata, "resourceVersion": current}} == old.obj:
            return old
        stored = self._stamp(resource, key, obj)
        bucket.objects[key] = stored
        self._record(bucket, Change(MODIFIED, resource, stored, old))
        return stored

    def delete(self, resource: Resource, namespace: str, name: str) -> Stored:
        """Remove an object at once, whatever its finalizers; its last state under the deletion's revision. 404."""
        key = (namespace, name)
        bucket = self._bucket(resource)
        old = bucket.objects.pop(key, None)
        if old is None:
            raise errors.not_found(resource.key, name)
        bucket.sorted_keys = None
        stored = self._stamp(resource, key, old.obj)
        self._record(bucket, Change(DELETED, resource, stored, old))
        return stored

    # -- following ---------------------------------------------------------------------------------------------

    def subscribe(self, resource: Resource | None, subscriber: Subscriber) -> Callable[[], None]:
        """Call ``subscriber`` with every change of the resource (None: of all) from now on; call the result to stop."""
        subscribers = self._subscribers if resource is None else self._bucket(resource).subscribers
        subscribers.append(subscriber)

        def unsubscribe() -> None:
            if subscriber in subscribers:
                subscribers.remove(subscriber)

        return unsubscribe

    def compact(self, revision: int | None = None) -> None:
        """Forget the history up to ``revision`` (default: all), as etcd's compaction does."""
        limit = self.revision if revision is None else revision
        for bucket in self._buckets.values():
            bucket.compacted = max(bucket.compacted, limit)
            while bucket.history and bucket.history[0].revision <= limit:
                bucket.history.popleft()
        self._compacted = limit

    # -- inside ------------------------------------------------------------------------------------------------

    def _bucket(self, resource: Resource) -> _Bucket:
        bucket = self._buckets.get(resource.key)
        if bucket is None:
            bucket = self._buckets[resource.key] = _Bucket(self._compacted)
        return bucket

    def _too_old(self, revision: int, bucket: _Bucket) -> errors.StatusError:
        return errors.expired(f"too old resource version: {revision} ({bucket.compacted})")

    def _stamp(self, resource: Resource, key: Key, obj: Object) -> Stored:
        self.revision += 1
        metadata = {**obj["metadata"], "resourceVersion": str(self.revision)}
        rest = {k: v for k, v in obj.items() if k not in ("kind", "apiVersion", "metadata")}
        stamped = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata, **rest}
        return Stored(key, stamped, self.revision)

    def _record(self, bucket: _Bucket, change: Change) -> None:
        bucket.history.append(change)
        if len(bucket.history) > self._history_limit:
            bucket.compacted = bucket.history.popleft().revision
        self._undelivered.append(change)
        if self._delivering:
            return
        self._delivering = True
        try:
            while self._undelivered:
                pending = self._undelivered.popleft()
                for subscriber in (*self._bucket(pending.resource).subscribers, *self._subscribers):
                    subscriber(pending)
        finally:
            self._delivering = False
