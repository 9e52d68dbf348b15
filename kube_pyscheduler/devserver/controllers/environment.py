"""What every controller is given."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from kube_pyscheduler.devserver.controllers.agenda import Agenda
from kube_pyscheduler.devserver.controllers.events import EventWriter
from kube_pyscheduler.devserver.registry import Registry
from kube_pyscheduler.devserver.resources import Resource
from kube_pyscheduler.devserver.store import Store, Subscriber
from kube_pyscheduler.kit.clock import Clock


@dataclass(frozen=True, slots=True)
class Settings:
    """Which controllers run, and how slow the imaginary machines are, in seconds.

    ``start_seconds``: from the binding of a pod until it runs. ``run_seconds``: how long pods run whose restartPolicy
    is not Always; None is for ever. ``stop_seconds``: how long containers take to stop; None is the whole grace
    period. ``provision_seconds``: how long a volume takes to be made.
    """

    nodes: bool = True
    kubelet: bool = True
    workloads: bool = True
    disruption: bool = True
    volumes: bool = True
    resource_claims: bool = True
    start_seconds: float = 0.0
    run_seconds: float | None = 10.0
    stop_seconds: float | None = None
    provision_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Environment:
    """Objects are read from ``store`` and written through ``registry``; work is put on ``agenda``."""

    registry: Registry
    agenda: Agenda
    events: EventWriter
    settings: Settings

    @property
    def store(self) -> Store:
        return self.registry.store

    @property
    def clock(self) -> Clock:
        return self.registry.clock


class Controller(Protocol):
    """Something that reacts to changes by putting work on the agenda."""

    def subscriptions(self) -> Iterable[tuple[Resource, Subscriber]]:
        """What to call with the changes of which resource; objects that exist already come as ADDED."""
