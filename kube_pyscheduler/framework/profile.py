"""Profile: a scheduler name and the plugins that decide for it, immutable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from kube_pyscheduler.config.errors import ConfigError, Problems
from kube_pyscheduler.config.load import ProfileConfig
from kube_pyscheduler.config.merge import ALL, PluginUse, PointPlugins
from kube_pyscheduler.config.schema import ROUND_ROBIN
from kube_pyscheduler.framework.cluster_event import EventRegistration
from kube_pyscheduler.framework.interfaces import (
    Bind,
    Filter,
    NodeFilter,
    NodeScore,
    Permit,
    Plugin,
    PostBind,
    PostFilter,
    PreBind,
    PreEnqueue,
    PreFilter,
    PreScore,
    QueueSort,
    Refreshing,
    Reserve,
    Score,
)
from kube_pyscheduler.framework.registry import Registry

EXTENSION_POINTS: dict[str, tuple[type[Plugin], ...]] = {
    "preEnqueue": (PreEnqueue,),
    "queueSort": (QueueSort,),
    "preFilter": (PreFilter,),
    "filter": (NodeFilter, Filter),
    "postFilter": (PostFilter,),
    "preScore": (PreScore,),
    "score": (NodeScore, Score),
    "reserve": (Reserve,),
    "permit": (Permit,),
    "preBind": (PreBind,),
    "bind": (Bind,),
    "postBind": (PostBind,),
    "placementGenerate": (),
    "placementScore": (),
}
"""Extension point → classes that serve it. Nothing serves the placement points: their gate is off in v1.36."""

_REFUSING = (PreEnqueue, PreFilter, NodeFilter, Filter, Reserve, Permit)
"""Plugins that can refuse a pod, so that events matter to them. Source: shouldHaveEnqueueExtensions in
pkg/scheduler/framework/runtime/framework.go."""


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """Plugins by extension point, each tuple in the order they run.

    ``score``: plugins with their weights.
    ``events``: what may help a pod that a plugin refused, by plugin; an empty tuple means that any event may.
    ``percentage_of_nodes_to_score``: 0 is all.
    ``checks_all``: every filter judges every node, so that all reasons of a node are known.
    ``takes_turns``: of several best nodes one is taken after the other instead of any.
    ``config`` and ``plugins``: what it was made of, all its plugins by name; None and empty where made otherwise.
    """

    name: str
    pre_enqueue: tuple[PreEnqueue, ...]
    queue_sort: QueueSort
    pre_filter: tuple[PreFilter, ...]
    filter: tuple[NodeFilter | Filter, ...]
    post_filter: tuple[PostFilter, ...]
    pre_score: tuple[PreScore, ...]
    score: tuple[tuple[NodeScore | Score, int], ...]
    reserve: tuple[Reserve, ...]
    permit: tuple[Permit, ...]
    pre_bind: tuple[PreBind, ...]
    bind: tuple[Bind, ...]
    post_bind: tuple[PostBind, ...]
    refreshing: tuple[Refreshing, ...]
    events: Mapping[str, tuple[EventRegistration, ...]]
    percentage_of_nodes_to_score: int = 0
    checks_all: bool = False
    takes_turns: bool = False
    config: ProfileConfig | None = None
    plugins: Mapping[str, Plugin] = field(default_factory=dict)


def build_profile(config: ProfileConfig, registry: Registry, before: Profile | None = None) -> Profile:
    """Makes the plugins and lists them by extension point. Raises ConfigError with all that is wrong.

    ``before``: the profile of this name so far. Plugins whose arguments are the same are taken from it, with what they
    know; so is all of it, where it means the same."""
    if before is not None and before.config == config:
        return before
    problems = Problems()
    plugins = _make_plugins(config, registry, _same_plugins(before, config), problems)
    problems.raise_if_any()
    points = {
        point: _expand(point, config.points[point], config.points["multiPoint"].enabled, plugins, problems)
        for point in EXTENSION_POINTS
    }
    if len(points["queueSort"]) != 1:
        why = f"exactly one queue sort plugin is needed, but there are {len(points['queueSort'])}"
        problems.add(f"{config.path}.plugins.queueSort", why)
    if not points["bind"]:
        problems.add(f"{config.path}.plugins.bind", "at least one bind plugin is needed")
    problems.raise_if_any()
    weights = _weights(points["score"], config)

    def at(point: str) -> Any:
        return tuple(plugins[name] for name in points[point])

    return Profile(
        name=config.scheduler_name,
        pre_enqueue=at("preEnqueue"),
        queue_sort=at("queueSort")[0],
        pre_filter=at("preFilter"),
        filter=at("filter"),
        post_filter=at("postFilter"),
        pre_score=at("preScore"),
        score=tuple((cast("NodeScore | Score", plugins[name]), weights[name]) for name in points["score"]),
        reserve=at("reserve"),
        permit=at("permit"),
        pre_bind=at("preBind"),
        bind=at("bind"),
        post_bind=at("postBind"),
        refreshing=tuple(plugin for plugin in plugins.values() if isinstance(plugin, Refreshing)),
        events={name: tuple(plugin.events()) for name, plugin in plugins.items() if isinstance(plugin, _REFUSING)},
        percentage_of_nodes_to_score=config.percentage_of_nodes_to_score,
        checks_all=config.always_check_all_predicates,
        takes_turns=config.equal_scores == ROUND_ROBIN,
        config=config,
        plugins=plugins,
    )


def build_profiles(
    configs: Iterable[ProfileConfig], registry: Registry, before: Mapping[str, Profile] | None = None
) -> dict[str, Profile]:
    """By scheduler name; ``before``: the profiles so far. Raises ConfigError, with the problems of all profiles."""
    problems = Problems()
    profiles: dict[str, Profile] = {}
    for config in configs:
        try:
            profile = build_profile(config, registry, (before or {}).get(config.scheduler_name))
        except ConfigError as error:
            problems.found.extend(error.problems)
            continue
        first = next(iter(profiles.values()), profile)
        if profile.queue_sort.name != first.queue_sort.name:
            problems.add(f"{config.path}.plugins.queueSort", "must be the same for all profiles")
        profiles[profile.name] = profile
    problems.raise_if_any()
    return profiles


def _same_plugins(before: Profile | None, config: ProfileConfig) -> Mapping[str, Plugin]:
    """The plugins of ``before`` that ``config`` gives the same arguments."""
    if before is None or before.config is None:
        return {}
    known = before.config.args
    return {name: plugin for name, plugin in before.plugins.items() if known.get(name) == config.args.get(name)}


def _make_plugins(
    config: ProfileConfig, registry: Registry, made: Mapping[str, Plugin], problems: Problems
) -> dict[str, Plugin]:
    """One instance of every plugin that is enabled somewhere; those in ``made`` are there already."""
    plugins: dict[str, Plugin] = {}
    failed: set[str] = set()
    for point, point_plugins in config.points.items():
        for use in point_plugins.enabled:
            if use.name in plugins or use.name in failed:
                continue
            factory = registry.get(use.name)
            if factory is None:
                problems.add(use.path or f"{config.path}.plugins.{point}", f'plugin "{use.name}" is not registered')
                continue
            try:
                plugins[use.name] = made.get(use.name) or factory(config.args.get(use.name))
            except Exception as error:
                failed.add(use.name)
                problems.add(f"{config.path}.pluginConfig", f'initializing plugin "{use.name}": {error}')
    return plugins


def _expand(
    point: str,
    own: PointPlugins,
    multi_point: Sequence[PluginUse],
    plugins: Mapping[str, Plugin],
    problems: Problems,
) -> list[str]:
    """Names of the plugins of one extension point, in order: those that override what multiPoint brings, the rest of
    multiPoint, the rest of the point's own.

    Source: updatePluginList and expandMultiPointPlugins in pkg/scheduler/framework/runtime/framework.go."""
    classes = EXTENSION_POINTS[point]
    enabled: dict[str, PluginUse] = {}
    for use in own.enabled:
        if not isinstance(plugins[use.name], classes):
            problems.add(use.path, f'plugin "{use.name}" does not implement {point}')
        elif use.name in enabled:
            problems.add(use.path, f'plugin "{use.name}" is enabled twice')
        enabled[use.name] = use
    if ALL in own.disabled:
        return list(enabled)
    brought: dict[str, PluginUse] = {}
    overridden: set[str] = set()
    for use in multi_point:
        if not isinstance(plugins[use.name], classes) or use.name in own.disabled:
            continue
        if use.name in enabled:
            overridden.add(use.name)
        elif use.name in brought:
            problems.add(use.path, f'plugin "{use.name}" is enabled twice')
        else:
            brought[use.name] = use
    return [
        *(name for name in enabled if name in overridden),
        *brought,
        *(name for name in enabled if name not in overridden),
    ]


def _weights(names: Sequence[str], config: ProfileConfig) -> dict[str, int]:
    """What a score is multiplied by: as given under ``score``, else under ``multiPoint``, else 1.

    Source: getValidScoreWeights in pkg/scheduler/framework/runtime/framework.go."""
    given: dict[str, int] = {}
    for use in (*config.points["score"].enabled, *config.points["multiPoint"].enabled):
        given.setdefault(use.name, use.weight or 1)
    return {name: given[name] for name in names}
