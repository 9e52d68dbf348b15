"""Puts the controllers to work on a registry."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kube_pyscheduler.devserver.controllers.agenda import Agenda
from kube_pyscheduler.devserver.controllers.daemon_sets import DaemonSets
from kube_pyscheduler.devserver.controllers.deployments import Deployments
from kube_pyscheduler.devserver.controllers.disruption import DisruptionBudgets
from kube_pyscheduler.devserver.controllers.environment import Controller, Environment, Settings
from kube_pyscheduler.devserver.controllers.ephemeral_claims import EphemeralClaims
from kube_pyscheduler.devserver.controllers.events import EventWriter
from kube_pyscheduler.devserver.controllers.jobs import Jobs
from kube_pyscheduler.devserver.controllers.kubelet import HollowKubelets
from kube_pyscheduler.devserver.controllers.nodes import NodeKeeper
from kube_pyscheduler.devserver.controllers.owned_pods import OwnedPods
from kube_pyscheduler.devserver.controllers.provisioner import Provisioner
from kube_pyscheduler.devserver.controllers.replica_sets import ReplicaSets
from kube_pyscheduler.devserver.controllers.resource_claims import ResourceClaims
from kube_pyscheduler.devserver.controllers.stateful_sets import StatefulSets
from kube_pyscheduler.devserver.controllers.volumes import Volumes
from kube_pyscheduler.devserver.registry import Registry
from kube_pyscheduler.devserver.resources import Resource
from kube_pyscheduler.devserver.store import ADDED, Change, Subscriber

DEFAULTS = Settings()


class Controllers:
    """The controllers that ``settings`` names, at work from their construction on; needs a running event loop.

    They take note of a change at once and act on it a moment later, on the same loop.
    """

    def __init__(self, registry: Registry, settings: Settings = DEFAULTS) -> None:
        self._agenda = Agenda(registry.clock)
        env = Environment(registry, self._agenda, EventWriter(registry), settings)
        self._stops: list[Callable[[], None]] = []
        for controller in _chosen(env):
            for resource, subscriber in controller.subscriptions():
                self._attach(registry, resource, subscriber)

    def run_due(self) -> None:
        """Do at once what is due; for clocks that are moved by hand."""
        self._agenda.run_due()

    def close(self) -> None:
        """Stop following and forget what is to be done."""
        for stop in self._stops:
            stop()
        self._agenda.close()

    def _attach(self, registry: Registry, resource: Resource, subscriber: Subscriber) -> None:
        store = registry.store
        for stored in store.snapshot(resource, store.revision):
            subscriber(Change(ADDED, resource, stored, None))
        self._stops.append(store.subscribe(resource, subscriber))


def _chosen(env: Environment) -> Iterator[Controller]:
    settings = env.settings
    if settings.nodes:
        yield NodeKeeper(env)
    if settings.volumes:
        yield Volumes(env, Provisioner(env))
        yield EphemeralClaims(env)
    if settings.resource_claims:
        yield ResourceClaims(env)
    if settings.disruption:
        yield DisruptionBudgets(env)
    if settings.workloads:
        owned = OwnedPods()
        workloads = (ReplicaSets(env, owned), Deployments(env, owned), StatefulSets(env, owned))
        yield from (owned, *workloads, DaemonSets(env, owned), Jobs(env, owned))
    if settings.kubelet:
        yield HollowKubelets(env)
