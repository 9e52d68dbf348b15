"""The scheduling queue: what waits, what is next, what happened meanwhile.

Source: pkg/scheduler/backend/queue/scheduling_queue.go.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.framework.cluster_event import (
    EVENT_ASSIGNED_POD_DELETE,
    EVENT_BACKOFF_COMPLETE,
    EVENT_FORCE_ACTIVATE,
    EVENT_SCHEDULE_ATTEMPT_FAILURE,
    EVENT_UNSCHEDULABLE_TIMEOUT,
    EVENT_UNSCHEDULED_POD_ADD,
    Action,
    ClusterEvent,
    Resource,
)
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.framework.profile import Profile
from kube_pyscheduler.kit.verbosity import Log
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.scheduling_queue.backoff import WINDOW
from kube_pyscheduler.scheduling_queue.gates import Gates
from kube_pyscheduler.scheduling_queue.hints import Hints, Strategy
from kube_pyscheduler.scheduling_queue.in_flight import InFlightLog
from kube_pyscheduler.scheduling_queue.nominator import Nominator
from kube_pyscheduler.scheduling_queue.observer import QueueObserver, Unobserved
from kube_pyscheduler.scheduling_queue.places import Places
from kube_pyscheduler.scheduling_queue.pod_changes import UNSCHEDULABLE_POD_UPDATE, pod_changes
from kube_pyscheduler.scheduling_queue.queued_pod import Place, QueuedPod
from kube_pyscheduler.scheduling_queue.unschedulable import PreCheck

log = Log(__name__)

INITIAL_BACKOFF = 1.0
"""Seconds after the first refusal. Source: DefaultPodInitialBackoffDuration."""
MAX_BACKOFF = 10.0
"""Seconds. Source: DefaultPodMaxBackoffDuration."""
MAX_UNSCHEDULABLE = 300.0
"""Seconds after which a pod is tried again although nothing happened that could help it.

Source: DefaultPodMaxInUnschedulablePodsDuration."""
LEFTOVER_PAUSE = 30.0
"""Seconds between two looks for such pods, if the last one found them all."""
LEFTOVER_BATCH = 200
"""Pods of that kind that are moved at a time, so that nobody waits for it."""

EVENT_RELOAD = ClusterEvent(Resource.WILDCARD, Action.ALL, "ConfigurationReload")


class Pending(NamedTuple):
    """How many pods wait, by place; ``unschedulable`` without the gated ones."""

    active: int
    backoff: int
    unschedulable: int
    gated: int


class PriorityQueue:
    """Pods by uid, each in one place: activeQ, backoffQ, unschedulable pods, or in flight.

    It waits for nothing and reads no clock: ``now`` is monotonic seconds. ``on_ready`` is called when a pod may have
    become ready to be popped. ``timer`` gives seconds for the durations told to ``observer``.
    """

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        listers: Listers,
        *,
        initial_backoff: float = INITIAL_BACKOFF,
        max_backoff: float = MAX_BACKOFF,
        max_unschedulable: float = MAX_UNSCHEDULABLE,
        observer: QueueObserver | None = None,
        timer: Callable[[], float] = lambda: 0.0,
        on_ready: Callable[[], None] = lambda: None,
    ) -> None:
        self._listers = listers
        self._max_unschedulable = max_unschedulable
        self._observer = observer or Unobserved()
        self._timer = timer
        self._places = Places(initial_backoff, max_backoff, self._observer, on_ready)
        self._in_flight = InFlightLog()
        self._window = -math.inf
        self._leftover_at = -math.inf
        self.nominator = Nominator()
        self._profiles: dict[str, Profile] = {}
        self._configure(profiles)

    def _configure(self, profiles: Mapping[str, Profile]) -> list[QueuedPod]:
        """Returns the pods that have to be moved, see ``Places``."""
        changed = {name for name, profile in profiles.items() if self._profiles.get(name) is not profile}
        self._profiles = dict(profiles)
        sort_key = next(iter(profiles.values())).queue_sort.sort_key
        gates = Gates(profiles, self._listers, self._observer, self._timer)
        self._hints = Hints(profiles.values(), self._listers, self._observer, self._timer)
        return self._places.configure(sort_key, gates, self._hints, changed)

    # What waits

    def __contains__(self, uid: object) -> bool:
        """Whether the pod waits or is in flight."""
        return uid in self._places.pods or uid in self._in_flight

    def __iter__(self) -> Iterator[QueuedPod]:
        """The pods that wait, without those in flight."""
        return iter(self._places.pods.values())

    def get(self, uid: str) -> QueuedPod | None:
        """The waiting pod with this uid."""
        return self._places.pods.get(uid)

    def pending(self) -> Pending:
        places = self._places
        gated = places.unschedulable.gated_count
        return Pending(len(places.active), len(places.backoff), len(places.unschedulable) - gated, gated)

    @property
    def rejections(self) -> Counter[tuple[str, str]]:
        """Waiting pods by (profile, plugin that refused or gates them). To be read only."""
        return self._places.rejections

    @property
    def in_flight(self) -> InFlightLog:
        """To be read only."""
        return self._in_flight

    # Pods come, change and go

    def add(self, pod: Pod, now: float) -> None:
        """A pod that waits for a node. One that is known already is updated."""
        known = self._places.pods.get(pod.metadata.uid)
        if known is not None:
            self.update(known.pod, pod, now)
        elif pod.metadata.uid not in self._in_flight:
            self._take_in(pod, EVENT_UNSCHEDULED_POD_ADD, now)

    def update(self, old: Pod, new: Pod, now: float) -> None:
        """A waiting pod changed. Its hints say whether that helps it; a change of status or bookkeeping never does."""
        uid = new.metadata.uid
        changes = pod_changes(old, new)
        queued = self._places.pods.get(uid)
        if queued is None:
            if uid not in self._in_flight:
                self._take_in(new, UNSCHEDULABLE_POD_UPDATE[Action.UPDATE_POD_OTHER], now)
                return
            for action in changes:
                self._in_flight.record(UNSCHEDULABLE_POD_UPDATE[action], old, new)
            given_up = self.nominator.follow(old, PodInfo(new)) if self.nominator.node_of(uid) else ""
            if given_up:
                self._promise_given_up(new, given_up, now)
            return
        self._places.replace(queued, PodInfo(new))
        given_up = self.nominator.follow(old, queued.pod_info)
        if queued.place is Place.UNSCHEDULABLE:
            for action in changes:
                event = UNSCHEDULABLE_POD_UPDATE[action]
                strategy = self._hints.strategy(queued, event, old, new)
                if strategy is not Strategy.SKIP and self._places.requeue(queued, strategy, event, now) is not (
                    Place.UNSCHEDULABLE
                ):
                    break
        if given_up:
            self._promise_given_up(new, given_up, now)

    def delete(self, pod: Pod, now: float) -> None:
        """The pod is gone or bound. If it is in flight, it stays there until it is done."""
        uid = pod.metadata.uid
        queued = self._places.pods.get(uid)
        if queued is not None:
            self._places.leave(queued)
        given_up = self.nominator.drop(uid)
        if given_up:
            self._promise_given_up(pod, given_up, now)

    def nominate(self, info: PodInfo, node: str | None, now: float) -> None:
        """What an attempt decided about the promise to this pod: a node, "" to take it back, None for what the status
        says."""
        if node is None:
            node = self.nominator.promised(info.pod)
        given_up = self.nominator.nominate(info, node)
        if given_up:
            self._promise_given_up(info.pod, given_up, now, spare=info.uid)

    def withdraw_nomination(self, info: PodInfo, now: float) -> None:
        """Take the promise to this pod back for the sake of another one; this one may find a place elsewhere."""
        given_up = self.nominator.nominate(info, "")
        if given_up:
            self._promise_given_up(info.pod, given_up, now)

    # Attempts

    def pop(self, now: float) -> QueuedPod | None:
        """The next pod to try, which is in flight from now on; ``done`` or ``add_unschedulable`` must follow.

        While activeQ is empty also pods that are still backing off come out, except after errors.
        """
        if now >= self._window + WINDOW:
            self._window = math.floor(now / WINDOW) * WINDOW
            self.flush_backoff_completed(now)
        if now >= self._leftover_at:
            is_rest = self.flush_unschedulable_leftover(now)
            self._leftover_at = now + (WINDOW if is_rest else LEFTOVER_PAUSE)
        queued = self._places.pop(now)
        if queued is None:
            return None
        queued.attempts += 1
        queued.place = Place.IN_FLIGHT
        self._in_flight.enter(queued.uid)
        return queued

    def next_wakeup(self, now: float) -> float | None:
        """In how many seconds ``pop`` may find something if nothing happens; 0 at once, None never."""
        places = self._places
        if len(places.active) or places.backoff.has_early:
            return 0.0
        times = []
        if (completion := places.backoff.next_completion()) is not None:
            times.append(completion)
        if len(places.unschedulable):
            times.append(self._leftover_at)
        return max(min(times) - now, 0.0) if times else None

    def done(self, uid: str) -> None:
        """The pod will not come back because of a refusal: what happens from now on need not be kept for it."""
        self._in_flight.done(uid)

    def add_unschedulable(self, queued: QueuedPod, now: float) -> Place:
        """The attempt failed. ``unschedulable_plugins`` and ``pending_plugins`` say who refused the pod; with neither,
        something went wrong. What happened during the attempt is judged now. Returns the place."""
        uid = queued.uid
        known = self._places.pods.get(uid)
        if known is not None:
            self._in_flight.done(uid)
            log.error("Pod is in the queue already", pod=queued.pod_info.key, queue=known.place.value)
            return known.place
        if queued.rejectors:
            queued.unschedulable_count += 1
            queued.consecutive_errors = 0
        else:
            queued.consecutive_errors += 1
        queued.timestamp = now
        queued.backoff_expiration = None
        queued.was_flushed = False
        strategy = self._strategy_after_attempt(queued)
        self._in_flight.done(uid)
        self._places.enter(queued)
        place = self._places.requeue(queued, strategy, EVENT_SCHEDULE_ATTEMPT_FAILURE, now)
        if log.v(3):
            log.info(
                3,
                "Pod moved to an internal scheduling queue",
                pod=queued.pod_info.key,
                event=EVENT_SCHEDULE_ATTEMPT_FAILURE.label,
                queue=place.value,
                hint=strategy.name,
                unschedulablePlugins=sorted(queued.rejectors),
            )
        return place

    def _strategy_after_attempt(self, queued: QueuedPod) -> Strategy:
        if not queued.rejectors:
            return Strategy.AFTER_BACKOFF
        best = Strategy.SKIP
        promised = self.nominator.node_of(queued.uid)
        for happened in self._in_flight.since(queued.uid):
            if promised and _freed_node(happened.event, happened.old) == promised:
                best = max(best, Strategy.AFTER_BACKOFF)
            best = max(best, self._hints.strategy(queued, happened.event, happened.old, happened.new))
            if best is Strategy.IMMEDIATELY or (best is Strategy.AFTER_BACKOFF and not queued.pending_plugins):
                break
        return best

    # Things happen

    def move_all(self, event: ClusterEvent, old: Any, new: Any, now: float, pre_check: PreCheck | None = None) -> None:
        """Something happened that may help: ask the plugins that refused pods and registered for such events.

        ``old`` is None for an add, ``new`` is None for a delete. Where a pod goes, those to whom its node is promised
        are tried again in any case: if the promise is of no use any more, that is when it is found out.
        """
        waiting = self._places.unschedulable
        if not (len(waiting) or len(self._in_flight)) or not self._hints.is_wanted(event):
            return
        woken = dict(waiting.woken_by(event, old, new, pre_check))
        for info in self.nominator.nominated_on(_freed_node(event, old)):
            promised = self._places.pods.get(info.uid)
            is_parked = promised is not None and promised.place is Place.UNSCHEDULABLE
            if promised is not None and is_parked and (pre_check is None or pre_check(promised.pod)):
                woken.setdefault(promised, Strategy.AFTER_BACKOFF)
        for queued, strategy in woken.items():
            self._places.requeue(queued, strategy, event, now)
        self._in_flight.record(event, old, new)

    def activate(self, pods: Iterable[Pod], now: float) -> None:
        """Try these pods again at once, whatever refused them and whether or not they back off. For pods in flight
        it is remembered until they come back."""
        for pod in pods:
            queued = self._places.pods.get(pod.metadata.uid)
            if queued is None:
                if pod.metadata.uid in self._in_flight:
                    self._in_flight.record(EVENT_FORCE_ACTIVATE, None, pod)
            elif queued.place is not Place.ACTIVE:
                self._places.to_active(queued, EVENT_FORCE_ACTIVATE, now)

    def retry_later(self, pod: Pod, now: float) -> None:
        """What was done to help this pod went wrong: try it again after the backoff of an error. For a pod in flight it
        is remembered until it comes back."""
        queued = self._places.pods.get(pod.metadata.uid)
        if queued is None:
            if pod.metadata.uid in self._in_flight:
                self._in_flight.record(EVENT_FORCE_ACTIVATE, None, pod)
        elif queued.place is Place.UNSCHEDULABLE or queued.place is Place.BACKOFF:
            self._places.forget_refusals(queued)
            queued.consecutive_errors += 1
            queued.timestamp = now
            queued.backoff_expiration = None
            self._places.to_backoff(queued, EVENT_FORCE_ACTIVATE)

    def flush_backoff_completed(self, now: float) -> None:
        """Pods whose backoff is over become active; they passed PreEnqueue before."""
        for queued in self._places.backoff.pop_completed(now):
            self._places.to_active(queued, EVENT_BACKOFF_COMPLETE, now)

    def flush_unschedulable_leftover(self, now: float) -> bool:
        """Pods that waited too long are tried again, gated ones are asked again, although nothing happened: should a
        hint have been wrong, the pod is late and not lost. Moves ``LEFTOVER_BATCH`` of them at most, and says whether
        there may be more."""
        limit = now - self._max_unschedulable
        late = (pod for pod in self._places.unschedulable if pod.timestamp < limit and pod.flushed_at < limit)
        batch = list(islice(late, LEFTOVER_BATCH))
        for queued in batch:
            was_gated = queued.gated
            queued.flushed_at = now
            place = self._places.requeue(queued, Strategy.AFTER_BACKOFF, EVENT_UNSCHEDULABLE_TIMEOUT, now)
            queued.was_flushed = place is not Place.UNSCHEDULABLE
            if was_gated and queued.was_flushed:
                log.info(2, "Gate opened without an event that its plugin registered for", pod=queued.pod_info.key)
        return len(batch) == LEFTOVER_BATCH

    def reload(self, profiles: Mapping[str, Profile], now: float) -> None:
        """Other plugins from now on. In profiles that are others than before every refused pod is tried again, every
        gated one asked again. No pod of a profile that is gone may be here any more."""
        for queued in self._configure(profiles):
            self._places.requeue(queued, Strategy.AFTER_BACKOFF, EVENT_RELOAD, now)
        self._in_flight.record(EVENT_RELOAD, None, None)

    def set_backoff(self, initial: float, maximum: float) -> None:
        """How long pods back off that fail from now on, see ``BackoffQueue``."""
        self._places.backoff.initial = initial
        self._places.backoff.maximum = maximum

    # Inside

    def _take_in(self, pod: Pod, event: ClusterEvent, now: float) -> None:
        queued = QueuedPod(PodInfo(pod), now)
        self._places.enter(queued)
        self._places.to_active(queued, event, now)
        if not queued.gated:
            self.nominator.adopt(queued.pod_info)

    def _promise_given_up(self, pod: Pod, node: str, now: float, spare: str = "") -> None:
        """A pod lost the node that was promised to it: as good as a pod deleted there, for pods it kept away.

        ``spare``: a pod that does not profit.
        """
        promised = msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, nominated_node_name=node))
        priority = pod.priority

        def may_profit(other: Pod) -> bool:
            return other.priority <= priority and other.metadata.uid != spare

        self.move_all(EVENT_ASSIGNED_POD_DELETE, promised, None, now, may_profit)


def _freed_node(event: ClusterEvent, old: Any) -> str:
    """The node that a pod was on which is gone; "" for other events."""
    if event.resource is Resource.POD and event.action is Action.DELETE and isinstance(old, Pod):
        return old.spec.node_name
    return ""
