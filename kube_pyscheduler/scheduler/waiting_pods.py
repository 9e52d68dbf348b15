"""Pods that Permit holds, until all plugins allow them, one rejects them, or their time is up."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from kube_pyscheduler.framework.status import SUCCESS, Code, Status
from kube_pyscheduler.kit.duration import format_duration
from kube_pyscheduler.objects.pod import Pod

MAX_WAIT = 900.0
"""Seconds; longer waits are cut to it. Source: maxTimeout in pkg/scheduler/framework/runtime/framework.go."""


class HeldPod:
    """One pod, and the plugins it waits for. The first verdict counts; later ones change nothing.

    Source: pkg/scheduler/framework/runtime/waiting_pods_map.go.
    """

    def __init__(self, pod: Pod, waits: Mapping[str, float], now: float) -> None:
        self.pod = pod
        self._waits = {plugin: min(seconds, MAX_WAIT) for plugin, seconds in waits.items()}
        self._deadlines = {plugin: now + seconds for plugin, seconds in self._waits.items()}
        self._verdict: Status | None = None
        self._decided = asyncio.Event()

    @property
    def pending_plugins(self) -> list[str]:
        """Plugins that have not allowed the pod yet."""
        return list(self._deadlines)

    @property
    def deadline(self) -> float | None:
        """When the pod is rejected if nothing happens, in monotonic seconds; None when it is decided."""
        return min(self._deadlines.values()) if self._verdict is None else None

    def allow(self, plugin: str) -> None:
        """This plugin is content; the pod goes on when all are."""
        self._deadlines.pop(plugin, None)
        if not self._deadlines:
            self._decide(SUCCESS)

    def reject(self, plugin: str, message: str) -> bool:
        """The pod is unschedulable. False if it was decided already."""
        return self._decide(Status(Code.UNSCHEDULABLE, (message,), plugin))

    def preempt(self, plugin: str, message: str) -> bool:
        """The pod has to go back to the queue, though nothing refuses it. False if it was decided already."""
        return self._decide(Status(Code.ERROR, (message,), plugin))

    def expire(self, now: float) -> None:
        """Reject the pod if a plugin's time is up."""
        for plugin, deadline in self._deadlines.items():
            if deadline <= now:
                waited = format_duration(self._waits[plugin])
                self.reject(plugin, f"rejected due to timeout after waiting {waited} at plugin {plugin}")
                return

    async def verdict(self) -> Status:
        """Wait for it."""
        await self._decided.wait()
        assert self._verdict is not None
        return self._verdict

    def _decide(self, verdict: Status) -> bool:
        if self._verdict is not None:
            return False
        self._verdict = verdict
        self._decided.set()
        return True


class WaitingPods:
    """Held pods by uid. Reads no clock: ``expire`` must be called."""

    def __init__(self) -> None:
        self._pods: dict[str, HeldPod] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, uid: str) -> HeldPod | None:
        return self._pods.get(uid)

    def all(self) -> list[HeldPod]:
        return list(self._pods.values())

    def hold(self, pod: Pod, waits: Mapping[str, float], now: float) -> HeldPod:
        """``waits``: how many seconds each plugin wants to hold the pod at most."""
        held = self._pods[pod.uid] = HeldPod(pod, waits, now)
        return held

    def release(self, uid: str) -> None:
        """The pod is held no more."""
        self._pods.pop(uid, None)

    def reject(self, uid: str, message: str) -> bool:
        """Reject the pod if it is held."""
        held = self._pods.get(uid)
        return held is not None and held.reject("", message)

    def expire(self, now: float) -> None:
        """Reject those whose time is up."""
        for held in self.all():
            held.expire(now)

    def next_deadline(self) -> float | None:
        """When ``expire`` will have something to do, in monotonic seconds."""
        deadlines = [deadline for held in self._pods.values() if (deadline := held.deadline) is not None]
        return min(deadlines, default=None)
