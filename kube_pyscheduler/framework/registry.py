"""Name → factory: the plugins a configuration may name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Any

from kube_pyscheduler.framework.interfaces import Plugin

ENTRY_POINT_GROUP = "kube_pyscheduler.plugins"
"""Where other distributions announce plugins: entry point name = plugin name, value = a factory."""

Factory = Callable[[Any], Plugin]
"""Makes a plugin from its arguments: a struct of ``config.args``; for plugins that have none there, the plain value
of ``pluginConfig[].args`` or None. A plugin class whose constructor takes ``args`` is a factory. Raises ValueError or
TypeError for arguments it cannot use."""

Registry = Mapping[str, Factory]


class RegistryError(Exception):
    """A plugin of another distribution cannot be taken in."""


def with_third_party(in_tree: Registry) -> Registry:
    """``in_tree`` and what the installed distributions announce. Raises RegistryError."""
    registry = dict(in_tree)
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        if entry.name in registry:
            raise RegistryError(f'plugin "{entry.name}" of {entry.value} is registered already')
        try:
            factory = entry.load()
        except Exception as error:
            raise RegistryError(f'plugin "{entry.name}" of {entry.value} cannot be loaded: {error!r}') from error
        if not callable(factory):
            raise RegistryError(f'plugin "{entry.name}": {entry.value} is no factory')
        registry[entry.name] = factory
    return registry
