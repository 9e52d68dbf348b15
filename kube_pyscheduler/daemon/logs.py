"""Log lines as kube-scheduler writes them: klog's text or its JSON, to stderr.

A record's ``fields`` (see ``kit.verbosity``) become ``key="value"`` or members of the JSON object.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Mapping
from typing import Any, Literal, TextIO

import msgspec
from aiohttp.http_exceptions import HttpProcessingError

from kube_pyscheduler.kit.verbosity import level

LogFormat = Literal["text", "json"]

_CHATTY_LIBRARIES = ("aiohttp", "asyncio", "kopf", "kubernetes", "urllib3")
"""Libraries whose ordinary lines are not ours to show: their warnings are."""


def set_up(verbosity: int, format_: LogFormat, stream: TextIO | None = None) -> None:
    """Send all records to ``stream`` (stderr). ``verbosity``: kube-scheduler's ``--v``, from 0 to 10."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if format_ == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level(verbosity))
    for name in _CHATTY_LIBRARIES:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("aiohttp.server").addFilter(_concerns_us)


def _concerns_us(record: logging.LogRecord) -> bool:
    """Not what strangers send to our ports that is no HTTP: they are told, and we need not hear of it."""
    return record.exc_info is None or not isinstance(record.exc_info[1], HttpProcessingError)


class TextFormatter(logging.Formatter):
    """``I1201 04:00:00.000000       1 file.go:123] "message" key="value"``, in local time.

    Source: the header of k8s.io/klog/v2 and its serialisation of key/value pairs.
    """

    def format(self, record: logging.LogRecord) -> str:
        moment = time.localtime(record.created)
        micros = int(record.created % 1 * 1e6)
        header = (
            f"{_letter(record.levelno)}{moment.tm_mon:02d}{moment.tm_mday:02d} {moment.tm_hour:02d}:"
            f"{moment.tm_min:02d}:{moment.tm_sec:02d}.{micros:06d} {os.getpid():7d} {record.filename}:{record.lineno}]"
        )
        fields = getattr(record, "fields", None)
        message = record.getMessage()
        if fields is not None:
            message = _quoted(message)
        error, trace = _error_of(record, self)
        if error is not None:
            message += f" err={_quoted(error)}"
        for key, value in (fields or {}).items():
            message += f" {key}={_text(value)}"
        return f"{header} {message}\n{trace}" if trace else f"{header} {message}"


class JsonFormatter(logging.Formatter):
    """``{"ts":1580306777047.28,"caller":"file.py:93","msg":"message","v":0,"key":"value"}``; ``ts`` in milliseconds.

    Errors have ``err`` and no ``v``. Source: component-base/logs/json/json.go.
    """

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "ts": record.created * 1000,
            "caller": f"{record.filename}:{record.lineno}",
            "msg": record.getMessage(),
        }
        if record.levelno < logging.ERROR:
            line["v"] = max(logging.INFO - record.levelno, 0)
        error, trace = _error_of(record, self)
        if error is not None:
            line["err"] = error
        line.update(getattr(record, "fields", None) or {})
        if trace:
            line["stacktrace"] = trace
        return msgspec.json.encode(line, enc_hook=str).decode()


def _letter(levelno: int) -> str:
    if levelno >= logging.CRITICAL:
        return "F"
    if levelno >= logging.ERROR:
        return "E"
    return "W" if levelno >= logging.WARNING else "I"


def _error_of(record: logging.LogRecord, formatter: logging.Formatter) -> tuple[str | None, str]:
    """The exception's text and its traceback, which is left out where the exception was never raised."""
    if record.exc_info is None or record.exc_info[1] is None:
        return None, ""
    error = record.exc_info[1]
    trace = formatter.formatException(record.exc_info) if error.__traceback__ is not None else ""
    return str(error) or type(error).__name__, trace


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()


def _text(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case Mapping() | list() | tuple() | set() | frozenset():
            return msgspec.json.encode(value, enc_hook=str).decode()
        case _:
            return _quoted(str(value))
