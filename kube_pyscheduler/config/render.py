"""A configuration as plain values, complete with defaults: what ``--write-config-to`` writes and ``/configz`` shows."""

from __future__ import annotations

from typing import Any

import msgspec

from kube_pyscheduler.config.decode import Duration
from kube_pyscheduler.config.load import ProfileConfig, SchedulerConfig
from kube_pyscheduler.config.merge import PointPlugins
from kube_pyscheduler.config.schema import RANDOM


def render(config: SchedulerConfig) -> dict[str, Any]:
    """A KubeSchedulerConfiguration that loads to ``config``."""
    document: dict[str, Any] = _plain(config.settings)
    document["profiles"] = [_profile(profile) for profile in config.profiles]
    return document


def _profile(profile: ProfileConfig) -> dict[str, Any]:
    document = {
        "schedulerName": profile.scheduler_name,
        "percentageOfNodesToScore": profile.percentage_of_nodes_to_score,
        "plugins": {point: _set(plugins) for point, plugins in profile.points.items() if plugins != PointPlugins()},
        "pluginConfig": [{"name": name, "args": _plain(args)} for name, args in sorted(profile.args.items())],
    }
    # kube-scheduler refuses fields that it does not know, so ours appear only where they say something.
    if profile.always_check_all_predicates:
        document["alwaysCheckAllPredicates"] = True
    if profile.equal_scores != RANDOM:
        document["equalScores"] = profile.equal_scores
    return document


def _set(plugins: PointPlugins) -> dict[str, Any]:
    enabled = [
        {"name": use.name, "weight": use.weight} if use.weight else {"name": use.name} for use in plugins.enabled
    ]
    return {"enabled": enabled, "disabled": [{"name": name} for name in sorted(plugins.disabled)]}


def _plain(value: Any) -> Any:
    """Structs as dictionaries without fields that are null, durations as text, tuples as lists."""
    match value:
        case Duration():
            return str(value)
        case msgspec.Struct():
            fields = ((field, getattr(value, field.name)) for field in msgspec.structs.fields(value))
            return {field.encode_name: _plain(item) for field, item in fields if item is not None}
        case dict():
            return {key: _plain(item) for key, item in value.items()}
        case tuple() | list():
            return [_plain(item) for item in value]
    return value
