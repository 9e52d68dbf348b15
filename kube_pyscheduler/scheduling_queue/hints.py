"""Which plugin wants which event, and what it thinks of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from enum import IntEnum
from typing import Any

from kube_pyscheduler.framework.cluster_event import (
    Action,
    ClusterEvent,
    EventRegistration,
    Hint,
    QueueingHint,
    Resource,
)
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.framework.profile import Profile
from kube_pyscheduler.kit.verbosity import Log
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.scheduling_queue.observer import QueueObserver
from kube_pyscheduler.scheduling_queue.queued_pod import QueuedPod

log = Log(__name__)

PluginKey = tuple[str, str]
"""(profile, plugin)."""

UNKNOWN: PluginKey = ("", "")
"""Stands for plugins that no profile has: any event may help the pods they refused, so that these are not stuck."""

_ANY_EVENT = (EventRegistration(ClusterEvent(Resource.WILDCARD, Action.ALL)),)


class Strategy(IntEnum):
    """What becomes of a waiting pod after an event; the greater wins."""

    SKIP = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2


def is_wildcard(event: ClusterEvent) -> bool:
    """Whether the event moves pods whoever refused them."""
    return event.resource is Resource.WILDCARD and event.action == Action.ALL


class Hints:
    """The registrations of all plugins of all profiles, by event.

    ``timer`` gives seconds for the durations told to ``observer``.
    """

    def __init__(
        self, profiles: Iterable[Profile], listers: Listers, observer: QueueObserver, timer: Callable[[], float]
    ) -> None:
        self._listers = listers
        self._observer = observer
        self._timer = timer
        self._registrations: dict[PluginKey, tuple[EventRegistration, ...]] = {UNKNOWN: _ANY_EVENT}
        for profile in profiles:
            for plugin, registrations in profile.events.items():
                self._registrations[profile.name, plugin] = registrations or _ANY_EVENT
        self._fragments = {key: _fragments(registrations) for key, registrations in self._registrations.items()}
        self._by_event: dict[tuple[str, int], dict[PluginKey, tuple[Hint | None, ...]]] = {}

    def key(self, profile: str, plugin: str) -> PluginKey:
        key = (profile, plugin)
        return key if key in self._registrations else UNKNOWN

    def interested(self, event: ClusterEvent) -> Mapping[PluginKey, tuple[Hint | None, ...]]:
        """The plugins that registered for such an event, with their hints; ``UNKNOWN`` is always among them."""
        # Hashing the enums themselves would cost more than all the rest.
        kind = (event.resource._value_, event.action._value_)
        found = self._by_event.get(kind)
        if found is None:
            found = self._by_event[kind] = {
                key: matching
                for key, registrations in self._registrations.items()
                if (matching := tuple(wanted.hint for wanted in registrations if wanted.event.matches(event)))
            }
        return found

    def is_wanted(self, event: ClusterEvent) -> bool:
        """Whether some plugin of some profile registered for such an event."""
        return is_wildcard(event) or len(self.interested(event)) > 1

    def opens_gate(self, queued: QueuedPod, event: ClusterEvent) -> bool:
        """Whether the plugin that gates the pod wants the event. Wildcards open only gates of those who want all."""
        key = self.key(queued.profile, queued.gating_plugin)
        if is_wildcard(event):
            return any(is_wildcard(wanted.event) for wanted in self._registrations[key])
        return key in self.interested(event)

    def fragment(self, key: PluginKey, pod: Pod) -> Hashable:
        """What of the pod this plugin's hints read: equal fragments, equal answers. Its uid where the plugin fails."""
        functions = self._fragments[key]
        if functions is None:
            return pod.uid
        try:
            fragment = tuple(function(pod) for function in functions)
            hash(fragment)
        except Exception as error:
            log.error("Fragment of a QueueingHint failed", error, plugin=key[1], pod=pod.key)
            return pod.uid
        return fragment

    def says_queue(
        self, key: PluginKey, hints: tuple[Hint | None, ...], event: ClusterEvent, pod: Pod, old: Any, new: Any
    ) -> bool:
        """Whether one of the plugin's hints is for another try. A hint that raises is."""
        for hint in hints:
            if hint is None:
                return True
            start = self._timer()
            try:
                answer = hint(pod, old, new, self._listers)
                label = answer.value
            except Exception as error:
                answer, label = QueueingHint.QUEUE, "Error"
                log.error("QueueingHint failed", error, event=event.label, plugin=key[1], pod=pod.key)
            self._observer.hint(key[1], event.label, label, self._timer() - start)
            if answer is QueueingHint.QUEUE:
                return True
        return False

    def strategy(self, queued: QueuedPod, event: ClusterEvent, old: Any, new: Any) -> Strategy:
        """What the plugins that refused the pod make of the event.

        A wildcard event with a pod as ``new`` is meant for that pod alone.
        Source: isPodWorthRequeuing in pkg/scheduler/backend/queue/scheduling_queue.go.
        """
        rejectors = queued.rejectors
        if not rejectors:
            return Strategy.AFTER_BACKOFF
        if is_wildcard(event):
            meant_for_another = isinstance(new, Pod) and new.uid != queued.uid
            return Strategy.SKIP if meant_for_another else Strategy.AFTER_BACKOFF
        interested = self.interested(event)
        best = Strategy.SKIP
        for plugin in sorted(rejectors):
            key = self.key(queued.profile, plugin)
            hints = interested.get(key)
            if hints is None or not self.says_queue(key, hints, event, queued.pod, old, new):
                continue
            if plugin in queued.pending_plugins:
                return Strategy.IMMEDIATELY
            if not queued.pending_plugins:
                return Strategy.AFTER_BACKOFF
            best = Strategy.AFTER_BACKOFF
        return best


def _fragments(registrations: tuple[EventRegistration, ...]) -> tuple[Callable[[Pod], Hashable], ...] | None:
    """The functions that together tell apart the pods of one plugin; None where a hint wants to see each pod."""
    distinct: dict[Callable[[Pod], Hashable], None] = {}
    for wanted in registrations:
        if wanted.hint is None:
            continue
        if wanted.fragment is None:
            return None
        distinct[wanted.fragment] = None
    return tuple(distinct)
