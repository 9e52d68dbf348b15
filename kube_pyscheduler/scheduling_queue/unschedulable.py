"""Refused and gated pods, indexed so that an event costs nothing for pods whose plugins do not want it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any

from kube_pyscheduler.framework.cluster_event import ClusterEvent
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.scheduling_queue.hints import UNKNOWN, Hints, PluginKey, Strategy, is_wildcard
from kube_pyscheduler.scheduling_queue.queued_pod import Place, QueuedPod

PreCheck = Callable[[Pod], bool]
"""Which of the waiting pods an event may help at all."""

Group = dict[str, QueuedPod]
"""Pods by uid that one plugin's hints cannot tell apart."""

Index = dict[PluginKey, dict[Hashable, Group]]

_NO_GROUPS: dict[Hashable, Group] = {}


class UnschedulablePods:
    """Refused pods by each plugin that refused them; gated pods by the one that gates them.

    Adding and removing cost O(plugins that refused the pod).
    """

    def __init__(self, hints: Hints) -> None:
        self._hints = hints
        self._pods: Group = {}
        self._refused: Index = {}
        self._gated: Index = {}
        self._filed: dict[str, tuple[Index, list[tuple[PluginKey, Hashable]]]] = {}
        self.gated_count = 0

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._pods.values())

    def add(self, queued: QueuedPod) -> None:
        """The pod must not be here yet."""
        uid, pod, hints = queued.uid, queued.pod, self._hints
        self._pods[uid] = queued
        queued.place = Place.UNSCHEDULABLE
        if queued.gated:
            index = self._gated
            self.gated_count += 1
            places: list[tuple[PluginKey, Hashable]] = [(hints.key(queued.profile, queued.gating_plugin), uid)]
        else:
            index = self._refused
            keys = {hints.key(queued.profile, plugin) for plugin in queued.rejectors}
            places = [(key, hints.fragment(key, pod)) for key in keys]
        for key, fragment in places:
            index.setdefault(key, {}).setdefault(fragment, {})[uid] = queued
        self._filed[uid] = (index, places)

    def remove(self, queued: QueuedPod) -> None:
        """The pod must be here; what changed about it since it was added does not matter."""
        uid = queued.uid
        del self._pods[uid]
        index, places = self._filed.pop(uid)
        if index is self._gated:
            self.gated_count -= 1
        for key, fragment in places:
            groups = index[key]
            group = groups[fragment]
            del group[uid]
            if not group:
                del groups[fragment]
                if not groups:
                    del index[key]

    def woken_by(
        self, event: ClusterEvent, old: Any, new: Any, pre_check: PreCheck | None = None
    ) -> list[tuple[QueuedPod, Strategy]]:
        """The pods that the event may help, in the opinion of those who refused them; nobody is moved.

        Costs O(interested plugins × groups of pods that their hints tell apart), and nothing for everybody else. Gated
        pods are asked about one by one, if their gating plugin is interested.
        """
        hints = self._hints
        if is_wildcard(event):
            pods = (queued for queued in self if not queued.gated or hints.opens_gate(queued, event))
            return self._asked_singly(pods, event, old, new, pre_check)
        woken: dict[QueuedPod, Strategy] = {}
        for key, asked in hints.interested(event).items():
            for group in self._refused.get(key, _NO_GROUPS).values():
                sample = _first(group, pre_check)
                if sample is None or not hints.says_queue(key, asked, event, sample.pod, old, new):
                    continue
                for queued in group.values():
                    if pre_check is None or pre_check(queued.pod):
                        is_pending = key is not UNKNOWN and key[1] in queued.pending_plugins
                        strategy = Strategy.IMMEDIATELY if is_pending else Strategy.AFTER_BACKOFF
                        woken[queued] = max(strategy, woken.get(queued, strategy))
            if key in self._gated:
                pods = (queued for group in self._gated[key].values() for queued in group.values())
                woken.update(self._asked_singly(pods, event, old, new, pre_check))
        return list(woken.items())

    def _asked_singly(
        self, pods: Iterator[QueuedPod], event: ClusterEvent, old: Any, new: Any, pre_check: PreCheck | None
    ) -> list[tuple[QueuedPod, Strategy]]:
        return [
            (queued, strategy)
            for queued in pods
            if (pre_check is None or pre_check(queued.pod))
            and (strategy := self._hints.strategy(queued, event, old, new)) is not Strategy.SKIP
        ]


def _first(group: Group, pre_check: PreCheck | None) -> QueuedPod | None:
    return next((queued for queued in group.values() if pre_check is None or pre_check(queued.pod)), None)
