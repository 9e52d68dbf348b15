"""Plugins that look at the world outside do so here, off-cycle; in their cycles they read what they found last."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NoReturn

from kube_pyscheduler.framework.handle import BindingHandle
from kube_pyscheduler.framework.interfaces import Refreshing
from kube_pyscheduler.kit.verbosity import Log

log = Log(__name__)


async def refresh_forever(
    plugin: Refreshing, handle: BindingHandle, sleep: Callable[[float], Awaitable[None]]
) -> NoReturn:
    """Refresh, pause, refresh. A failure is logged; what was found before stays in force."""
    while True:
        try:
            await plugin.refresh(handle)
        except Exception as error:
            log.error("Refreshing failed", error, plugin=plugin.name)
        await sleep(plugin.refresh_seconds)
