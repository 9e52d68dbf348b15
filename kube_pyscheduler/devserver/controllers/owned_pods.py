"""Pods by the controller that owns them, counted as they change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from kube_pyscheduler.devserver.controllers import pods
from kube_pyscheduler.devserver.resources import PODS, Resource
from kube_pyscheduler.devserver.store import DELETED, Change, Key, Object, Subscriber

Listener = Callable[[Key, Object], None]
"""Is told (namespace, name) of an owner, and the pod that changed."""


def controller_of(obj: Object) -> Object | None:
    """The owner reference that is marked as the controller."""
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            return dict(owner)
    return None


class PodSet:
    """The pods of one owner. ``ready`` counts active ones only."""

    __slots__ = ("active", "pods", "ready", "terminating")

    def __init__(self) -> None:
        self.pods: dict[Key, Object] = {}
        self.active = 0
        self.ready = 0
        self.terminating = 0

    def put(self, key: Key, pod: Object | None) -> None:
        """Replace the pod of that key; None removes it."""
        old = self.pods.pop(key, None)
        if old is not None:
            self._count(old, -1)
        if pod is not None:
            self.pods[key] = pod
            self._count(pod, 1)

    def _count(self, pod: Object, by: int) -> None:
        if pods.is_terminal(pod):
            return
        if pods.is_terminating(pod):
            self.terminating += by
            return
        self.active += by
        if pods.is_ready(pod):
            self.ready += by

    def select(self, test: Callable[[Object], bool]) -> list[Object]:
        return [pod for pod in self.pods.values() if test(pod)]


class OwnedPods:
    """Every pod with a controller, by the controller's UID; an owner's listener hears of each change of its pods."""

    def __init__(self) -> None:
        self._sets: dict[str, PodSet] = defaultdict(PodSet)
        self._listeners: dict[str, Listener] = {}

    def subscriptions(self) -> Iterable[tuple[Resource, Subscriber]]:
        yield PODS, self._follow

    def listen(self, kind: str, listener: Listener) -> None:
        """Tell ``listener`` of the pods whose controller is of that kind."""
        self._listeners[kind] = listener

    def of(self, owner: Object) -> PodSet:
        """The pods of an owner; an empty set that is not kept when it has none."""
        return self._sets.get(owner["metadata"]["uid"]) or PodSet()

    def _follow(self, change: Change) -> None:
        pod, key = change.new.obj, change.new.key
        owner = controller_of(pod)
        if change.old is not None:
            before = controller_of(change.old.obj)
            if before is not None and (owner is None or owner["uid"] != before["uid"]):
                self._put(before, key, None, change.old.obj)
        if owner is not None:
            self._put(owner, key, None if change.kind == DELETED else pod, pod)

    def _put(self, owner: Object, key: Key, pod: Object | None, told: Object) -> None:
        uid = owner["uid"]
        group = self._sets[uid]
        group.put(key, pod)
        if not group.pods:
            del self._sets[uid]
        listener = self._listeners.get(owner["kind"])
        if listener is not None:
            listener((key[0], owner["name"]), told)
