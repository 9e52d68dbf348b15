"""What the engine knows of a pod before it looks at nodes: kernels and answers that hold for its whole signature."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cache

import numpy as np

from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.engine.node_scoped import FilterSlot, NodeScoped, ScoreSlot
from kube_pyscheduler.framework.interfaces import (
    CycleContext,
    FilterKernel,
    NodeFilter,
    NodeScore,
    Plugin,
    PreFilter,
    PreFilterResult,
    PreScore,
    Scope,
    ScoreKernel,
)
from kube_pyscheduler.framework.profile import Profile
from kube_pyscheduler.framework.status import Code, Status

MAX_BYTES = 256 * 1024 * 1024
"""Arrays of signatures kept at most, in bytes; the least recently used go first."""

MAX_SIGNATURES = 2048
"""Signatures kept at most. On small clusters arrays are the lesser part of what one takes (bench/churn.py)."""


@cache
def is_node_scoped(plugin: Plugin) -> bool:
    """Whether the plugin's answers for a row depend on that row and the pod's fragment alone."""
    return isinstance(plugin, NodeFilter | NodeScore) and plugin.scope is Scope.NODE


@dataclass(slots=True)
class Compiled:
    """For one signature. ``pre_filter``: answers of node-scoped plugins, by name. ``score_failure``: the text of the
    error that scoring ends with, or ""."""

    node_scoped: NodeScoped
    pre_filter: dict[str, PreFilterResult | Status | None]
    skipped_scores: frozenset[str]
    score_failure: str


class Compiler:
    """Compiled pods of one profile by signature. The signature is the tuple of the node-scoped plugins' fragments."""

    def __init__(self, profile: Profile, max_bytes: int = MAX_BYTES, max_signatures: int = MAX_SIGNATURES) -> None:
        self._profile = profile
        self._max_bytes = max_bytes
        self._max_signatures = max_signatures
        self._bytes = 0
        self._compiled: OrderedDict[Hashable, Compiled] = OrderedDict()
        plugins: dict[str, NodeFilter | NodeScore] = {}
        for plugin in (*profile.filter, *(plugin for plugin, _weight in profile.score)):
            if is_node_scoped(plugin) and isinstance(plugin, NodeFilter | NodeScore):
                plugins[plugin.name] = plugin
        self._plugins = tuple(plugins.values())

    def signature(self, pod: PodInfo) -> Hashable:
        """Equal for pods that node-scoped plugins cannot tell apart."""
        return tuple([plugin.fragment(pod) for plugin in self._plugins])

    def compiled(self, ctx: CycleContext, pod: PodInfo) -> tuple[Compiled, int]:
        """The pod's compiled form, up to date with the table, and how many rows were judged to make it so."""
        key = self.signature(pod)
        known = self._compiled.get(key)
        if known is not None and known.node_scoped.fits_layout(ctx.table):
            self._compiled.move_to_end(key)
            return known, known.node_scoped.repair(ctx)
        if known is not None:
            self._forget(key)
        fresh = self._compile(ctx, pod)
        self._compiled[key] = fresh
        self._bytes += fresh.node_scoped.nbytes
        while len(self._compiled) > self._max_signatures or (self._bytes > self._max_bytes and len(self._compiled) > 1):
            self._forget(next(iter(self._compiled)))
        return fresh, ctx.table.high

    def _forget(self, key: Hashable) -> None:
        self._bytes -= self._compiled.pop(key).node_scoped.nbytes

    def _compile(self, ctx: CycleContext, pod: PodInfo) -> Compiled:
        pre_filter: dict[str, PreFilterResult | Status | None] = {}
        for plugin in self._profile.pre_filter:
            if is_node_scoped(plugin) and isinstance(plugin, PreFilter):
                pre_filter[plugin.name] = plugin.pre_filter(ctx, pod)
        filters = self._filters(ctx, pod, pre_filter)
        scores, skipped, failure = self._scores(ctx, pod)
        return Compiled(NodeScoped(ctx.table, filters, scores), pre_filter, skipped, failure)

    def _filters(
        self, ctx: CycleContext, pod: PodInfo, pre_filter: dict[str, PreFilterResult | Status | None]
    ) -> list[FilterSlot]:
        slots = []
        for position, plugin in enumerate(self._profile.filter):
            if not isinstance(plugin, NodeFilter) or plugin.scope is not Scope.NODE:
                continue
            answer = pre_filter.get(plugin.name)
            if isinstance(answer, Status) and answer.code == Code.SKIP:
                continue
            kernel = plugin.filter_kernel(ctx, pod)
            if kernel is not None:
                slots.append(FilterSlot(position, kernel, _filter_builder(plugin, pod), ctx.table.capacity))
        return slots

    def _scores(self, ctx: CycleContext, pod: PodInfo) -> tuple[list[ScoreSlot], frozenset[str], str]:
        slots: list[ScoreSlot] = []
        skipped: set[str] = set()
        everywhere = np.ones(ctx.table.capacity, dtype=np.bool_)
        for plugin in self._profile.pre_score:
            if not is_node_scoped(plugin) or not isinstance(plugin, PreScore):
                continue
            status = plugin.pre_score(ctx, pod, everywhere)
            if status is None or status.is_success:
                continue
            if status.code != Code.SKIP:
                return [], frozenset(), f'running PreScore plugin "{plugin.name}": {status.message}'
            skipped.add(plugin.name)
        for position, (scorer, weight) in enumerate(self._profile.score):
            if not isinstance(scorer, NodeScore) or scorer.scope is not Scope.NODE or scorer.name in skipped:
                continue
            kernel = scorer.score_kernel(ctx, pod)
            if isinstance(kernel, Status):
                return [], frozenset(), score_failure(scorer.name, kernel)
            slots.append(ScoreSlot(position, weight, kernel, _score_builder(scorer, pod), ctx.table.capacity))
        return slots, frozenset(skipped), ""


def _filter_builder(plugin: NodeFilter, pod: PodInfo) -> Callable[[CycleContext], FilterKernel | None]:
    return lambda ctx: plugin.filter_kernel(ctx, pod)


def _score_builder(plugin: NodeScore, pod: PodInfo) -> Callable[[CycleContext], ScoreKernel | Status]:
    return lambda ctx: plugin.score_kernel(ctx, pod)


def score_failure(plugin: str, status: Status) -> str:
    """The text an attempt ends with when a Score plugin fails. Source: RunScorePlugins in framework/runtime."""
    return f'running Score plugins: plugin "{plugin}" failed with: {status.message}'
