"""Log lines with fields, at kube-scheduler's verbosity levels, on top of the standard library's loggers.

Verbosity n is the logging level ``INFO - n``: ``--v=4`` means ``setLevel(level(4))``. The message is constant; what
varies goes into the record's attribute ``fields``, and whoever formats records writes them as key=value or JSON.
"""

from __future__ import annotations

import logging
from typing import Any

MAX_VERBOSITY = 10


def level(verbosity: int) -> int:
    """The logging level of a verbosity from 0 (INFO) to 10 (DEBUG)."""
    return logging.INFO - min(max(verbosity, 0), MAX_VERBOSITY)


class Log:
    """A logger of one module. Asking whether a verbosity is on is cheap; on hot paths ask before building fields."""

    __slots__ = ("_enabled", "_logger")

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)
        self._enabled = self._logger.isEnabledFor

    def v(self, verbosity: int) -> bool:
        """Whether lines of this verbosity are written."""
        return self._enabled(logging.INFO - verbosity)

    def info(self, verbosity: int, message: str, /, **fields: Any) -> None:
        """One line, if its verbosity is on."""
        at = logging.INFO - verbosity
        if self._enabled(at):
            self._logger.log(at, message, extra={"fields": fields}, stacklevel=2)

    def error(self, message: str, error: BaseException | None = None, /, **fields: Any) -> None:
        """Something unexpected. The traceback goes with it where there is an exception."""
        self._logger.error(message, exc_info=error, extra={"fields": fields}, stacklevel=2)
