"""The life of the process: in which order its parts start and stop, and with which code it exits.

Start: configuration, HTTP, informers until all are synced, leader election, scheduling. Stop: the other way round.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
import ssl
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, NoReturn

from kube_pyscheduler.config.errors import ConfigError
from kube_pyscheduler.config.render import render
from kube_pyscheduler.daemon.authn import DelegatingGuard
from kube_pyscheduler.daemon.connections import Sessions, connect
from kube_pyscheduler.daemon.debugger import Debugger
from kube_pyscheduler.daemon.gauges import NEEDED_KINDS, LoopLag, Stages, make_health, pull_gauges
from kube_pyscheduler.daemon.metrics import Metrics
from kube_pyscheduler.daemon.options import Options
from kube_pyscheduler.daemon.reloading import InForce, Reloader, configuration, log_problems
from kube_pyscheduler.daemon.serving import Listener, ListenError, make_app
from kube_pyscheduler.daemon.signals import DEBUG_SIGNAL, RELOAD_SIGNAL, call_on, stop_on_signals
from kube_pyscheduler.daemon.tls import RELOAD_SECONDS, CertificateError, ServingCertificate
from kube_pyscheduler.daemon.version import DECIDES_AS, VERSION
from kube_pyscheduler.daemon.wiring import (
    ApiBinder,
    ApiEvictor,
    ApiObjects,
    ApiReader,
    ApiReviews,
    ApiStatus,
    ApiTruth,
    LeaseEvents,
    PodEvents,
)
from kube_pyscheduler.framework.profile import Profile, build_profiles
from kube_pyscheduler.framework.registry import Registry, RegistryError, with_third_party
from kube_pyscheduler.informers.factory import Informers
from kube_pyscheduler.kit.clock import RealClock
from kube_pyscheduler.kit.tasks import Tasks
from kube_pyscheduler.kit.verbosity import Log
from kube_pyscheduler.leader.election import Timing, new_identity
from kube_pyscheduler.leader.elector import Elector, LeaseLost
from kube_pyscheduler.objects.kinds import KINDS, POD
from kube_pyscheduler.plugins import IN_TREE
from kube_pyscheduler.recorder.recorder import Recorder
from kube_pyscheduler.scheduler.scheduler import Ports, Scheduler
from kube_pyscheduler.transport.client import Client
from kube_pyscheduler.transport.credentials import CredentialsError
from kube_pyscheduler.transport.limiter import TokenBucket, limiter

log = Log(__name__)

STOP_SECONDS = 20.0
"""How long bindings may take to finish after the signal: less than the 30 s that a pod gets by default, so that the
lease can still be released."""

EVENT_SECONDS = 3.0
"""How long Events that are still waiting hold up the end."""

_START_ERRORS = (RegistryError, CredentialsError, CertificateError, ListenError)


def main(options: Options) -> int:
    """Run until told to stop. Returns the exit code: 0 after a signal, 1 for everything else."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_run_until_signal(options))


def _loop_factory() -> Any:
    """uvloop's, where it is installed; it is faster."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def _run_until_signal(options: Options) -> int:
    with stop_on_signals() as stop:
        return await run(options, stop)


async def run(options: Options, stop: asyncio.Event) -> int:
    """The daemon, until ``stop`` is set. Returns the exit code."""
    log.info(0, "Starting kube-pyscheduler", version=VERSION, decides_as=DECIDES_AS)
    try:
        registry = with_third_party(IN_TREE)
        profiles = build_profiles(options.config.profiles, registry)
        async with AsyncExitStack() as stack:
            metrics = Metrics(options.disabled_metrics)
            sessions = await connect(options, metrics, stack)
            daemon = Daemon(options, registry, profiles, sessions, metrics)
            stack.push_async_callback(daemon.close)
            await daemon.listen(stack)
            stack.enter_context(call_on(DEBUG_SIGNAL, daemon.debugger.on_signal))
            if daemon.reloader is not None:
                stack.enter_context(call_on(RELOAD_SIGNAL, daemon.reloader.ask))
            return await daemon.run(stop)
    except ConfigError as error:
        log_problems(error)
    except _START_ERRORS as error:
        log.error("Cannot start", problem=str(error))
    return 1


class Daemon:
    """All parts, put together but not running."""

    def __init__(
        self,
        options: Options,
        registry: Registry,
        profiles: dict[str, Profile],
        sessions: Sessions,
        metrics: Metrics,
    ) -> None:
        """``profiles``: those of ``options``, made of what is in ``registry``."""
        self._options = options
        self._settings = settings = options.config.settings
        self._in_force = in_force = InForce(configuration(options.config, profiles))
        self._clock = clock = RealClock()
        self._stages = Stages()
        self._tasks = Tasks()
        self._recording = Tasks()
        self._sessions = sessions
        self._metrics = metrics
        # Events have a rate limit of their own, so that they delay nothing else.
        self._recorder = Recorder(Client(sessions.scheduler, limiter=self._limiter()), self._recording)
        self._elector = self._make_elector() if settings.leader_election.leader_elect else None
        may_write = self._elector.is_leader if self._elector is not None else None
        client = Client(sessions.scheduler, limiter=self._limiter(), may_write=may_write)
        self._informers = Informers(
            client, optional=[kind for kind in KINDS if kind not in NEEDED_KINDS], observer=metrics
        )
        self._scheduler = self._make_scheduler(client)
        self.debugger = Debugger(self._scheduler, self._tasks)
        self.reloader = (
            Reloader(options.files, registry, in_force, self._scheduler, clock) if options.files is not None else None
        )
        lag = LoopLag(clock)
        self._tasks.start(lag.watch(), name="event loop lag", forever=True)
        pull_gauges(metrics, in_force, self.reloader, self._scheduler, self._elector, self._recorder, lag)

    def _limiter(self) -> TokenBucket | None:
        connection = self._settings.client_connection
        return limiter(connection.qps, connection.burst)

    def _make_elector(self) -> Elector:
        election = self._settings.leader_election
        first = self._options.config.profiles[0].scheduler_name
        return Elector(
            # No rate limit: nothing may delay a renewal.
            Client(self._sessions.scheduler),
            namespace=election.resource_namespace,
            name=election.resource_name,
            identity=new_identity(),
            timing=Timing(election.lease_duration, election.renew_deadline, election.retry_period),
            announce=LeaseEvents(self._recorder, first).announce,
        )

    def _make_scheduler(self, client: Client) -> Scheduler:
        in_force = self._in_force
        seed = random.SystemRandom().getrandbits(32)
        log.info(1, "Ties between nodes are broken by chance", seed=seed)
        scheduler = Scheduler(
            in_force.now.profiles,
            Ports(
                binder=ApiBinder(client),
                patch_status=ApiStatus(client).send,
                events=PodEvents(self._recorder, lambda: in_force.now.profiles),
                observer=self._metrics,
                pods=self._informers.of(POD).store,
                objects=ApiObjects(client, self._informers),
                reader=ApiReader(client),
                evictor=ApiEvictor(client, self._clock),
                truth=ApiTruth(self._informers),
            ),
            rng=random.Random(seed),
            initial_backoff=self._settings.pod_initial_backoff_seconds,
            max_backoff=self._settings.pod_max_backoff_seconds,
            max_unschedulable=self._options.flush_seconds,
        )
        for informer in self._informers:
            if informer.kind.name in scheduler.kinds:
                informer.add_handler(partial(scheduler.handle, informer.kind.name))
        return scheduler

    # HTTP

    async def listen(self, stack: AsyncExitStack) -> None:
        """Serve health and metrics from now on; ``stack`` ends it. Raises CertificateError, ListenError."""
        options = self._options
        health = make_health(self._informers, self._elector, self._stages)
        if options.plain.port:
            app = make_app(health, self._metrics)
            await self._listen_on(Listener(app), options.plain.address, options.plain.port, None, stack)
        if options.secure.port:
            certificate = ServingCertificate(options.tls)
            self._tasks.start(_keep_fresh(certificate), name="serving certificate", forever=True)
            reviews = ApiReviews(Client(self._sessions.token_reviews), Client(self._sessions.access_reviews))
            guard = DelegatingGuard(reviews.token, reviews.access, self._clock, options.guard)
            more = {"/debug/dump": self.debugger.show_dump, "/debug/compare": self.debugger.show_comparison}
            app = make_app(health, self._metrics, guard=guard, config=self._show_config, more=more)
            secure = options.secure
            await self._listen_on(Listener(app), secure.address, secure.port, certificate.context, stack)

    def _show_config(self) -> dict[str, Any]:
        return render(self._in_force.now.config)

    async def _listen_on(
        self, listener: Listener, address: str, port: int, tls: ssl.SSLContext | None, stack: AsyncExitStack
    ) -> None:
        await listener.start(address, port, tls=tls, share_port=self._options.share_port)
        stack.push_async_callback(listener.stop)
        log.info(0, "Serving securely" if tls else "Serving", address=address, port=port)

    # Scheduling

    async def run(self, stop: asyncio.Event) -> int:
        """From the first list to the end. Returns the exit code."""
        self._recording.start(self._recorder.sweep_for_ever(), name="events")
        if self.reloader is not None:
            self._tasks.start(self.reloader.watch(), name="configuration", forever=True)
        starting = self._tasks.start(self._start(), name="start")
        broken = asyncio.ensure_future(self._tasks.crashed())
        asked = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait((broken, asked), return_when=asyncio.FIRST_COMPLETED)
            if not broken.done():
                starting.cancel()
                await self._finish(broken)
            return await self._fail(broken.exception()) if broken.done() else 0
        finally:
            broken.cancel()
            asked.cancel()

    async def close(self) -> None:
        """End all tasks."""
        await self._scheduler.abort()
        await self._tasks.close()
        await self._recording.close()

    async def _start(self) -> None:
        is_lazy = self._settings.delay_cache_until_active and self._elector is not None
        if not is_lazy:
            await self._sync()
        if self._elector is not None:
            await self._elector.acquire()
            self._tasks.start(self._elector.hold(), name="lease", forever=True)
        if is_lazy:
            await self._sync()
        elif self._elector is not None:
            # Whoever led before us may have done what our watches have not told yet.
            await self._informers.relist()
        self._scheduler.start()
        self._tasks.start(self._scheduler.crashed(), name="scheduler", forever=True)
        log.info(1, "Scheduling", profiles=list(self._in_force.now.profiles))

    async def _sync(self) -> None:
        """Learn to know the cluster."""
        self._informers.start(self._tasks)
        await self._informers.synced()
        # What was read now stays for long: no need to look through it again and again.
        gc.collect()
        gc.freeze()
        self._stages.synced = True
        log.info(1, "All informers are synced")

    async def _finish(self, broken: asyncio.Future[NoReturn]) -> None:
        """Stop because we are asked to: Bindings that were sent get their answer, then the lease is given back. Returns
        early when something breaks meanwhile."""
        log.info(0, "Requested to terminate, exiting")
        self._stages.stopping = True
        draining = asyncio.ensure_future(self._scheduler.stop(STOP_SECONDS))
        await asyncio.wait((broken, draining), return_when=asyncio.FIRST_COMPLETED)
        if broken.done():
            draining.cancel()
            return
        await draining
        await self._step_down()

    async def _fail(self, crash: BaseException | None) -> int:
        """Stop because something broke. Without the lease nothing more is written."""
        await self._scheduler.abort()
        cause = crash.__cause__ if crash is not None else None
        if isinstance(cause, LeaseLost):
            log.error("Leaderelection lost", reason=str(cause))
        else:
            log.error("A part of the daemon failed", cause or crash)
            await self._step_down()
        return 1

    async def _step_down(self) -> None:
        """Give the lease back, and let Events that are still waiting be written."""
        await self._tasks.close()
        if self._elector is not None:
            await self._elector.release()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(EVENT_SECONDS):
                await self._recorder.drain()


async def _keep_fresh(certificate: ServingCertificate) -> NoReturn:
    while True:
        await asyncio.sleep(RELOAD_SECONDS)
        certificate.refresh()
