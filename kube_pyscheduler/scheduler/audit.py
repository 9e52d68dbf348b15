"""A second look, should a watch event ever be missed: pods that nobody queues, bindings that nobody confirms."""

from __future__ import annotations

from collections.abc import Mapping

from kube_pyscheduler.cache.cache import Cache
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.framework.cluster_event import EVENT_ASSIGNED_POD_DELETE
from kube_pyscheduler.framework.profile import Profile
from kube_pyscheduler.kit.clock import Clock
from kube_pyscheduler.kit.verbosity import Log
from kube_pyscheduler.scheduler.ports import Observer, PodLister, PodReader
from kube_pyscheduler.scheduling_queue.priority_queue import PriorityQueue

log = Log(__name__)


class Audit:
    """Call its methods now and then."""

    def __init__(
        self,
        *,
        profiles: Mapping[str, Profile],
        cache: Cache,
        queue: PriorityQueue,
        pods: PodLister,
        reader: PodReader,
        observer: Observer,
        clock: Clock,
    ) -> None:
        self._profiles = profiles
        self._cache = cache
        self._queue = queue
        self._pods = pods
        self._reader = reader
        self._observer = observer
        self._clock = clock
        self._suspects: set[str] = set()

    def find_lost(self) -> None:
        """Queue the pods of ours that wait for a node and are in no place; such as were so last time too, because a
        pod may be between two places for a moment."""
        now = self._clock.monotonic()
        suspects = set()
        for pod in self._pods:
            uid = pod.metadata.uid
            if (
                pod.spec.node_name
                or pod.spec.scheduler_name not in self._profiles
                or pod.is_terminal
                or pod.is_terminating
                or uid in self._queue
                or self._cache.pod(uid) is not None
            ):
                continue
            if uid not in self._suspects:
                suspects.add(uid)
                continue
            log.error("Pod was in no queue", pod=pod.key, uid=uid)
            self._observer.lost_pod()
            self._queue.add(pod, now)
        self._suspects = suspects

    async def settle_overdue(self) -> None:
        """Ask the API server about bound pods that the watch has not confirmed in time."""
        for info in self._cache.overdue(self._clock.monotonic()):
            try:
                await self._settle(info)
            except Exception as error:
                log.error("Cannot find out what became of a binding", error, pod=info.key)

    async def _settle(self, info: PodInfo) -> None:
        latest = await self._reader.read(info.pod)
        uid, now = info.uid, self._clock.monotonic()
        if not self._cache.is_assumed(uid):
            return
        if latest is not None and latest.spec.node_name == info.pod.spec.node_name and not latest.is_terminal:
            # True, and the watch is merely slow.
            self._cache.finish_binding(uid, now)
            return
        log.info(1, "Binding was not confirmed", pod=info.key, node=info.pod.spec.node_name)
        self._cache.forget(uid)
        self._queue.move_all(EVENT_ASSIGNED_POD_DELETE, info.pod, None, now)
        if latest is not None and not latest.is_terminal:
            if latest.spec.node_name:
                self._cache.set_pod(latest)
            else:
                self._queue.add(latest, now)
