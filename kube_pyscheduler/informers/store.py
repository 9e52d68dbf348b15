"""The objects of one kind: a reader for everybody, a writer for its informer."""

from __future__ import annotations

from collections.abc import Container, Iterator, KeysView, Mapping
from typing import Generic, NamedTuple, TypeVar

from kube_pyscheduler.objects.meta import Object, is_older

T = TypeVar("T", bound=Object)


class Identity(NamedTuple):
    """Which object, and which version of it. Every part is "" where it cannot be read."""

    key: str
    uid: str
    version: str


class Change(NamedTuple, Generic[T]):
    """What handlers are told: ``old`` is None for an added object, ``new`` is None for a deleted one."""

    old: T | None
    new: T | None


class Store(Generic[T]):
    """The last known version of every object, by key (``namespace/name`` or ``name``)."""

    def __init__(self) -> None:
        self._objects: dict[str, T] = {}

    def get(self, key: str) -> T | None:
        return self._objects.get(key)

    def keys(self) -> KeysView[str]:
        return self._objects.keys()

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        return iter(self._objects.values())


class Writer(Generic[T]):
    """Changes a store and says what changed. There is one for each store.

    An object deleted and created again under its name is two changes: the old one goes, the new one comes.
    """

    def __init__(self) -> None:
        self.store: Store[T] = Store()

    def apply(self, obj: T) -> list[Change[T]]:
        """Take a version from a watch; one that we have, or an older one of what we have, changes nothing."""
        objects = self.store._objects
        key = obj.key
        held = objects.get(key)
        if held is None:
            objects[key] = obj
            return [Change(None, obj)]
        ours, theirs = held.metadata, obj.metadata
        if ours.resource_version == theirs.resource_version or is_older(theirs.resource_version, ours.resource_version):
            return []
        objects[key] = obj
        return _replaced(held, obj)

    def remove(self, gone: Identity) -> list[Change[T]]:
        """Take a deletion from a watch; that of a predecessor of what we have changes nothing."""
        held = self.store._objects.get(gone.key)
        if held is None:
            return []
        if gone.uid and gone.uid != held.metadata.uid and is_older(gone.version, held.metadata.resource_version):
            return []
        del self.store._objects[gone.key]
        return [Change(held, None)]

    def replace(self, listed: Mapping[str, T], keep: Container[str] = ()) -> list[Change[T]]:
        """Take a complete list, which is the truth also where its versions are older; deletions come first.

        Objects under the keys in ``keep`` stay as they are, whether listed or not.
        """
        before = self.store._objects
        after: dict[str, T] = {}
        changes: list[Change[T]] = []
        for key, held in before.items():
            if key in keep:
                after[key] = held
            elif key not in listed:
                changes.append(Change(held, None))
        for key, obj in listed.items():
            if key in after:
                continue
            known = before.get(key)
            if known is None:
                changes.append(Change(None, obj))
            elif (known.metadata.uid, known.metadata.resource_version) == (
                obj.metadata.uid,
                obj.metadata.resource_version,
            ):
                obj = known
            else:
                changes.extend(_replaced(known, obj))
            after[key] = obj
        self.store._objects = after
        return changes


def _replaced(held: T, obj: T) -> list[Change[T]]:
    if held.metadata.uid == obj.metadata.uid:
        return [Change(held, obj)]
    return [Change(held, None), Change(None, obj)]
