"""SIGTERM and SIGINT ask the daemon to stop, a second one ends it at once; others call for something else."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

DEBUG_SIGNAL = signal.SIGUSR2
"""Asks what the daemon knows. Source: pkg/scheduler/backend/cache/debugger/signal.go."""

RELOAD_SIGNAL = signal.SIGHUP
"""Asks to read the configuration again."""

EXIT_AT_ONCE = 1
"""Exit code after the second signal. Source: SetupSignalHandler in k8s.io/apiserver/pkg/server/signal.go."""


@contextmanager
def stop_on_signals(exit_now: Callable[[int], None] = os._exit) -> Iterator[asyncio.Event]:
    """The event is set by the first signal. Only in a process's main thread, inside a running loop."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def asked() -> None:
        if stop.is_set():
            exit_now(EXIT_AT_ONCE)
        stop.set()

    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, asked)
    try:
        yield stop
    finally:
        for number in STOP_SIGNALS:
            loop.remove_signal_handler(number)


@contextmanager
def call_on(number: signal.Signals, callback: Callable[[], None]) -> Iterator[None]:
    """``callback`` is called at every signal of this number."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(number, callback)
    try:
        yield
    finally:
        loop.remove_signal_handler(number)
