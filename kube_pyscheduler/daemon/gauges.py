"""What metrics and health read off the running parts, at the moment they are asked."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NoReturn

from kube_pyscheduler.daemon.health import PING, Check, Health
from kube_pyscheduler.daemon.metrics import Metrics
from kube_pyscheduler.daemon.reloading import InForce, Reloader
from kube_pyscheduler.daemon.series import Labels
from kube_pyscheduler.daemon.version import DECIDES_AS, VERSION
from kube_pyscheduler.informers.factory import Informers
from kube_pyscheduler.kit.clock import Clock
from kube_pyscheduler.leader.elector import Elector
from kube_pyscheduler.objects.kinds import NODE, POD, Kind
from kube_pyscheduler.recorder.recorder import Recorder
from kube_pyscheduler.scheduler.scheduler import Scheduler

NEEDED_KINDS: tuple[Kind[Any], ...] = (NODE, POD)
"""Kinds without which nothing can be scheduled. Servers may lack the others, or hide them from us."""

LAG_PERIOD = 1.0
"""Seconds between two looks at how late the event loop runs."""


class Stages:
    """How far the daemon is: ``synced`` when the first lists have been handed out, ``stopping`` from the signal on."""

    def __init__(self) -> None:
        self.synced = False
        self.stopping = False


class LoopLag:
    """``seconds``: how late the event loop ran the last timer."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.seconds = 0.0

    async def watch(self) -> NoReturn:
        while True:
            due = self._clock.monotonic() + LAG_PERIOD
            await asyncio.sleep(LAG_PERIOD)
            self.seconds = max(self._clock.monotonic() - due, 0.0)


def make_health(informers: Informers, elector: Elector | None, stages: Stages) -> Health:
    """``/livez`` and ``/healthz``: the event loop turns, and the lease is not held beyond its end. ``/readyz``: the
    cluster is known, the API server answers, and nobody told us to stop. Followers are ready, too.

    Source of the names: Run in cmd/kube-scheduler/app/server.go; ``api-server`` is ours.
    """

    def not_synced() -> str:
        waiting = [informer.kind.plural for informer in informers if not informer.synced.is_set()]
        return f"not listed yet: {', '.join(waiting)}" if waiting else ""

    def unreachable() -> str:
        broken = [informers.of(kind) for kind in NEEDED_KINDS if informers.of(kind).problem]
        return "; ".join(f"{informer.kind.plural}: {informer.problem}" for informer in broken)

    live = [PING]
    if elector is not None:
        live.append(Check("leaderElection", lambda: "" if elector.is_healthy() else "the lease has ended"))
    ready = [
        Check("informer-sync", not_synced),
        Check("sched-handler-sync", lambda: "" if stages.synced else "handlers are not fully synchronized"),
        Check("api-server", unreachable),
        *live[1:],
        Check("shutdown", lambda: "process is shutting down" if stages.stopping else ""),
    ]
    return Health({"healthz": live, "livez": live, "readyz": ready})


def pull_gauges(
    metrics: Metrics,
    in_force: InForce,
    reloader: Reloader | None,
    scheduler: Scheduler,
    elector: Elector | None,
    recorder: Recorder,
    lag: LoopLag,
) -> None:
    """Tell ``metrics`` where to look."""
    queue = scheduler.queue
    lease = in_force.now.config.settings.leader_election.resource_name
    metrics.pull("scheduler_pending_pods", lambda: _by_label(queue.pending()._asdict()))
    metrics.pull(
        "scheduler_unschedulable_pods",
        lambda: {(plugin, profile): n for (profile, plugin), n in queue.rejections.items() if n},
    )
    metrics.pull("scheduler_inflight_events", lambda: _by_label(queue.in_flight.counts()))
    metrics.pull("scheduler_cache_size", lambda: _by_label(scheduler.cache.counts()))
    metrics.pull("scheduler_goroutines", lambda: {("binding",): len(scheduler.bindings)})
    metrics.pull("scheduler_config_info", lambda: {(in_force.now.digest,): 1})
    metrics.pull("scheduler_build_info", lambda: {(VERSION, DECIDES_AS): 1})
    metrics.pull("scheduler_event_loop_lag_seconds", lambda: {(): lag.seconds})
    metrics.pull("scheduler_events_total", lambda: _by_label(asdict(recorder.counts)))
    if reloader is not None:
        counts, times = reloader.counts, reloader.last_times
        metrics.pull("scheduler_config_automatic_reloads_total", lambda: _by_label(counts))
        metrics.pull("scheduler_config_automatic_reload_last_timestamp_seconds", lambda: _by_label(times))
    if elector is not None:
        metrics.pull("leader_election_master_status", lambda: {(lease,): int(elector.is_leader())})


def _by_label(values: Mapping[str, float]) -> dict[Labels, float]:
    return {(label,): value for label, value in values.items()}
