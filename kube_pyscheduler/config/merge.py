"""A profile's plugin sets merged over the default ones.

Source: mergePlugins and mergePluginSet in pkg/scheduler/apis/config/v1/default_plugins.go.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from kube_pyscheduler.config.schema import Plugins, PluginSet

ALL = "*"


@dataclass(frozen=True, slots=True)
class PluginUse:
    """A plugin that is enabled somewhere. ``weight``: 0 means 1. ``path``: where the document names it; "" for a
    default."""

    name: str
    weight: int = 0
    path: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class PointPlugins:
    """What is enabled at one extension point, or at multiPoint, in order. ``disabled`` names what multiPoint may not
    bring here."""

    enabled: tuple[PluginUse, ...] = ()
    disabled: frozenset[str] = frozenset()


POINTS: dict[str, str] = {field.encode_name: field.name for field in msgspec.structs.fields(Plugins)}
"""Name in the document → attribute of Plugins; ``multiPoint`` comes first."""


def merge_plugins(defaults: Plugins, custom: Plugins, path: str) -> dict[str, PointPlugins]:
    """By name of the extension point (``filter``, ``multiPoint``…). ``path``: of ``custom`` in the document."""
    return {
        point: _merge_set(getattr(defaults, attribute), getattr(custom, attribute), f"{path}.{point}")
        for point, attribute in POINTS.items()
    }


def _merge_set(defaults: PluginSet, custom: PluginSet, path: str) -> PointPlugins:
    """Defaults keep their place, also when ``custom`` configures them anew; then comes the rest of ``custom``. A name
    that ``custom`` gives twice stays twice: building the profile refuses it."""
    disabled = frozenset(plugin.name for plugin in (*custom.disabled, *defaults.disabled))
    uses = [
        PluginUse(plugin.name, plugin.weight, f"{path}.enabled[{index}]") for index, plugin in enumerate(custom.enabled)
    ]
    last = {use.name: use for use in uses}
    enabled: list[PluginUse] = []
    replaced: set[str] = set()
    if ALL not in disabled:
        for plugin in defaults.enabled:
            if plugin.name in disabled:
                continue
            use = last.get(plugin.name)
            if use is not None:
                replaced.add(use.path)
            enabled.append(use or PluginUse(plugin.name, plugin.weight))
    enabled.extend(use for use in uses if use.path not in replaced)
    return PointPlugins(tuple(enabled), disabled)
