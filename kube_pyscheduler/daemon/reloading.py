"""The configuration in force, and how another one takes its place while the daemon runs.

kube-scheduler reads its configuration once. Metrics are named as those of the API server, which reads some of its files
again: k8s.io/apiserver/pkg/server/options/authenticationconfig/metrics/metrics.go.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import msgspec

from kube_pyscheduler.config.errors import ConfigError, child
from kube_pyscheduler.config.files import ConfigFiles
from kube_pyscheduler.config.load import SchedulerConfig
from kube_pyscheduler.config.render import render
from kube_pyscheduler.framework.profile import Profile, build_profiles
from kube_pyscheduler.framework.registry import Registry
from kube_pyscheduler.kit.clock import Clock
from kube_pyscheduler.kit.verbosity import Log
from kube_pyscheduler.scheduler.scheduler import Scheduler

log = Log(__name__)

LOOK_SECONDS = 5.0
"""Pause between two looks at the files."""

SUCCESS, FAILURE = "success", "failure"

FIXED = ("leader_election", "client_connection", "delay_cache_until_active")
"""Settings that hold until the process ends."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """``config``, and the profiles made of it by scheduler name. ``digest`` tells it from others."""

    config: SchedulerConfig
    profiles: dict[str, Profile]
    digest: str


def configuration(config: SchedulerConfig, profiles: dict[str, Profile]) -> Configuration:
    return Configuration(config, profiles, hashlib.sha256(msgspec.json.encode(render(config))).hexdigest()[:16])


@dataclass(slots=True)
class InForce:
    """By which the daemon works ``now``."""

    now: Configuration


class Reloader:
    """Reads ``files`` again, and has what they say take the place of what is ``in_force``; or, where something is wrong
    with it, leaves all as it is.

    ``counts`` and ``last_times`` (seconds since the epoch): of reloads, by result.
    """

    def __init__(
        self, files: ConfigFiles, registry: Registry, in_force: InForce, scheduler: Scheduler, clock: Clock
    ) -> None:
        self._files = files
        self._registry = registry
        self._in_force = in_force
        self._scheduler = scheduler
        self._clock = clock
        self._asked = asyncio.Event()
        self.counts = {SUCCESS: 0, FAILURE: 0}
        self.last_times: dict[str, float] = {}

    def ask(self) -> None:
        """Let ``watch`` read the files again, changed or not."""
        self._asked.set()

    async def watch(self) -> NoReturn:
        """Reload whenever the files say something else, or somebody asks. Raises what breaks the scheduler itself."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._asked.wait()
            if self._asked.is_set() or self._files.have_changed():
                self._asked.clear()
                self.reload()

    def reload(self) -> None:
        """Read the files, and go by what they say if it can be used."""
        found = self._read()
        result = FAILURE if found is None else SUCCESS
        self.counts[result] += 1
        self.last_times[result] = self._clock.now()
        if found is None:
            log.error("Cannot use the configuration, going on with the old one", hash=self._in_force.now.digest)
        else:
            self._apply(found)

    def _read(self) -> Configuration | None:
        now = self._in_force.now
        try:
            config = self._files.load()
            fixed = {name: getattr(now.config.settings, name) for name in FIXED}
            running = SchedulerConfig(msgspec.structs.replace(config.settings, **fixed), config.profiles)
            found = configuration(running, build_profiles(config.profiles, self._registry, now.profiles))
            postponed = list(_differences(render(running), render(config)))
            self._scheduler.prepare(found.profiles.values())
        except ConfigError as error:
            log_problems(error)
            return None
        except Exception as error:
            # Plugins may raise anything; what runs must not suffer for it.
            log.error("Reading the configuration failed", error)
            return None
        if postponed:
            log.info(0, "Settings that changed need a restart to take effect", settings=postponed)
        return found

    def _apply(self, found: Configuration) -> None:
        before, settings = self._in_force.now, found.config.settings
        changed = [name for name, profile in found.profiles.items() if before.profiles.get(name) is not profile]
        gone = [name for name in before.profiles if name not in found.profiles]
        if changed or gone:
            self._scheduler.reload(found.profiles)
        self._scheduler.set_backoff(settings.pod_initial_backoff_seconds, settings.pod_max_backoff_seconds)
        self._in_force.now = found
        if found.digest == before.digest:
            log.info(0, "The configuration says the same as before", hash=found.digest)
        else:
            log.info(0, "Another configuration is in force", hash=found.digest, changed=changed, gone=gone)


def log_problems(error: ConfigError) -> None:
    """All that is wrong with a configuration, a record each."""
    for problem in error.problems:
        log.error("Invalid configuration", path=problem.path, problem=problem.message)


def _differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """The paths of the fields in which two documents differ."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys((*old, *new)):
            yield from _differences(old.get(key), new.get(key), child(path, key))
    elif old != new:
        yield path
