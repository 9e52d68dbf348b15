"""The files that a configuration is made of, and whether they say something else by now."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kube_pyscheduler.config.load import ReadFile, SchedulerConfig


class ConfigFiles:
    """Contents are compared, not dates: a mounted ConfigMap changes by the swap of a symbolic link.

    ``load``: makes the configuration of files, all of which it reads by what it is given.
    """

    def __init__(self, load: Callable[[ReadFile], SchedulerConfig]) -> None:
        self._load = load
        self._read_last: dict[Path, bytes | None] = {}

    def load(self) -> SchedulerConfig:
        """Read everything anew. Raises ConfigError."""
        self._read_last = {}
        return self._load(self._read)

    def have_changed(self) -> bool:
        """Whether what ``load`` read last reads otherwise now, be it usable or not."""
        return any(_content(path) != content for path, content in self._read_last.items())

    def _read(self, path: Path) -> bytes:
        self._read_last[path] = None
        content = path.read_bytes()
        if path.is_file():
            self._read_last[path] = content
        else:
            # A pipe has been drained: there is nothing to look at any more.
            del self._read_last[path]
        return content


def _content(path: Path) -> bytes | None:
    """None where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        return None
