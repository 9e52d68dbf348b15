"""A cache and an engine over it, for tests that ask who fits where."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from kube_pyscheduler.cache.cache import Cache
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.config.load import load_profile
from kube_pyscheduler.engine.decision import Decision
from kube_pyscheduler.engine.engine import Engine
from kube_pyscheduler.framework.handle import Work
from kube_pyscheduler.framework.interfaces import Filter, NodeFilter, PreFilter
from kube_pyscheduler.framework.profile import Profile, build_profile
from kube_pyscheduler.framework.status import Status
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.plugins import IN_TREE
from kube_pyscheduler.scheduling_queue.nominator import Nominator

WALL_TIME = 1_767_225_600.0
"""2026-01-01T00:00:00Z."""


class QuietHandle:
    """A scheduling handle of a scheduler where nothing waits."""

    def __init__(self, nominator: Nominator | None = None) -> None:
        self.nominator = Nominator() if nominator is None else nominator
        self.time = WALL_TIME
        self.work: list[Work] = []
        """What plugins want done in the background; nobody does it."""

    def waiting_pod(self, uid: str) -> None:
        return None

    def waiting_pods(self) -> list[Any]:
        return []

    def activate(self, pods: list[Pod]) -> None:
        return None

    def later(self, what: str, pod: Pod | None, work: Work) -> None:
        self.work.append(work)

    def wall_time(self) -> float:
        return self.time


class Cluster:
    """Nodes and pods in a real cache, decided on by a real engine."""

    def __init__(
        self, nodes: Iterable[Node] = (), pods: Iterable[Pod] = (), profile: dict[str, Any] | None = None
    ) -> None:
        self.cache = Cache()
        self.handle = QuietHandle()
        self.engine = Engine(self.cache.table, self.cache.listers, self.handle)
        self.profile: Profile = build_profile(load_profile(profile or {}), IN_TREE)
        for node in nodes:
            self.cache.set_node(node)
        for pod in pods:
            self.cache.set_pod(pod)

    def fit(self, pod: Pod) -> set[str]:
        """The nodes that pass every filter."""
        cycle, _judged = self.engine.cycle(self.profile, PodInfo(pod))
        if cycle.pre_filter() is not None:
            return set()
        cycle.filter()
        return {self.cache.table.names[row] for row in np.flatnonzero(cycle.feasible).tolist()}

    def refusals(self, pod: Pod) -> dict[str, Status]:
        """The first refusal of each node that does not fit."""
        cycle, _judged = self.engine.cycle(self.profile, PodInfo(pod))
        assert cycle.pre_filter() is None
        cycle.filter()
        names = self.cache.table.names
        return {names[row]: status for status, rows in cycle.refusals() for row in rows.tolist()}

    def totals(self, pod: Pod) -> dict[str, int]:
        """Weighted total score of each node that fits."""
        cycle, _judged = self.engine.cycle(self.profile, PodInfo(pod))
        assert cycle.pre_filter() is None
        cycle.filter()
        totals = cycle.score()
        names = self.cache.table.names
        return {names[row]: int(totals[row]) for row in np.flatnonzero(cycle.feasible).tolist()}

    def add_filter(self, plugin: NodeFilter | Filter) -> None:
        """Filter with one more plugin, after the others."""
        self.profile = replace(self.profile, filter=(*self.profile.filter, plugin))

    def add_pre_filter(self, plugin: PreFilter) -> None:
        """Ask one more plugin at PreFilter, after the others."""
        self.profile = replace(self.profile, pre_filter=(*self.profile.pre_filter, plugin))

    def nominate(self, pod: Pod, node: str) -> None:
        """Promise the pod a node, or with "" take the promise back."""
        self.handle.nominator.nominate(PodInfo(pod), node)

    def schedule(self, pod: Pod, seed: int = 0) -> Decision:
        return self.engine.schedule(self.profile, PodInfo(pod), random.Random(seed))
