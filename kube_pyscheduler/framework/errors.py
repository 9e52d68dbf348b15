"""What goes wrong inside plugins."""

from __future__ import annotations


class PluginError(Exception):
    """A plugin raised or broke its contract; ``__cause__`` has the original. The pod is retried with backoff."""

    def __init__(self, plugin: str, point: str, problem: str) -> None:
        super().__init__(f'running "{plugin}" {point.lower()} plugin: {problem}')
        self.plugin = plugin
        self.point = point
