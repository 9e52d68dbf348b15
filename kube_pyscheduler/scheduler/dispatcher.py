"""Status patches of pods, merged per pod and sent in the background. Nobody waits for them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from kube_pyscheduler.kit.backoff import Backoff
from kube_pyscheduler.kit.clock import Clock
from kube_pyscheduler.kit.tasks import Tasks
from kube_pyscheduler.kit.verbosity import Log
from kube_pyscheduler.objects.pod import Pod, PodCondition

log = Log(__name__)

PARALLEL_PATCHES = 16
"""Patches on their way at the same time; never two of one pod."""
ATTEMPTS = 5
"""How often one patch is sent before it is given up."""

SendPatch = Callable[[Pod, dict[str, Any]], Awaitable[None]]
"""Strategic-merge patch of ``pods/status``. Returns also when the pod is gone; raises what may work later."""


@dataclass(frozen=True, slots=True)
class _Wish:
    """What a pod's status should say; None leaves a field as it is. ``nominated_node`` "" clears it."""

    pod: Pod
    reason: str | None
    message: str
    observed_generation: int | None
    nominated_node: str | None

    def after(self, older: _Wish | None) -> _Wish:
        """This one, and what only the older one spoke of."""
        if older is None:
            return self
        wish = self
        if wish.reason is None:
            wish = replace(
                wish, reason=older.reason, message=older.message, observed_generation=older.observed_generation
            )
        if wish.nominated_node is None:
            wish = replace(wish, nominated_node=older.nominated_node)
        return wish


@dataclass(frozen=True, slots=True)
class _Sent:
    """What was written when the pod had this version: its status is that, until the watch shows another version."""

    version: str
    reason: str | None
    message: str
    nominated_node: str | None


class StatusDispatcher:
    """Implements the port StatusWriter. Runs in ``tasks``, with at most ``parallel`` patches on their way."""

    def __init__(
        self,
        send: SendPatch,
        tasks: Tasks,
        clock: Clock,
        *,
        parallel: int = PARALLEL_PATCHES,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._send = send
        self._tasks = tasks
        self._clock = clock
        self._parallel = parallel
        self._sleep = sleep
        self._wishes: dict[str, _Wish] = {}
        self._ready: deque[str] = deque()
        self._sending: set[str] = set()
        self._sent: dict[str, _Sent] = {}
        self._workers: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        """Pods with something to send, or on its way."""
        return len(self._wishes.keys() | self._sending)

    def patch_status(
        self,
        pod: Pod,
        *,
        reason: str | None = None,
        message: str = "",
        nominated_node: str | None = None,
        observed_generation: int | None = None,
    ) -> None:
        """See the port."""
        uid = pod.metadata.uid
        wish = _Wish(pod, reason, message, observed_generation, nominated_node).after(self._wishes.get(uid))
        if uid not in self._sending and not self._body(wish):
            self._wishes.pop(uid, None)
            return
        is_queued = uid in self._wishes or uid in self._sending
        self._wishes[uid] = wish
        if is_queued:
            return
        self._ready.append(uid)
        if len(self._workers) < self._parallel:
            self._workers.add(self._tasks.start(self._work(), name="status patches"))

    def forget(self, uid: str) -> None:
        """See the port."""
        self._wishes.pop(uid, None)
        self._sent.pop(uid, None)
        self._sending.discard(uid)

    async def drain(self, seconds: float) -> None:
        """Give what is to be sent so much time."""
        if self._workers:
            await asyncio.wait(self._workers, timeout=seconds)

    async def _work(self) -> None:
        worker = asyncio.current_task()
        assert worker is not None
        try:
            while self._ready:
                await self._take(self._ready.popleft())
        finally:
            # Here and not when the task is seen to be done: what comes in between needs a new worker.
            self._workers.discard(worker)

    async def _take(self, uid: str) -> None:
        wish = self._wishes.pop(uid, None)
        if wish is None:
            return
        self._sending.add(uid)
        try:
            await self._deliver(uid, wish)
        finally:
            self._sending.discard(uid)
            if uid in self._wishes:
                self._ready.append(uid)

    async def _deliver(self, uid: str, wish: _Wish) -> None:
        """Send until it works, merging what comes in between; give up when the pod is forgotten, or too often."""
        backoff = Backoff(0.2, 5.0)
        for attempt in range(1, ATTEMPTS + 1):
            body = self._body(wish)
            if not body:
                return
            try:
                await self._send(wish.pod, body)
            except Exception as error:
                if uid not in self._sending:
                    return
                if attempt == ATTEMPTS:
                    log.error("Failed to patch pod status", error, pod=wish.pod.key)
                    return
                await self._sleep(backoff.next())
                if uid not in self._sending:
                    return
                newer = self._wishes.pop(uid, None)
                if newer is not None:
                    wish = newer.after(wish)
                continue
            if uid in self._sending:
                reason, message, nominated = self._known(wish.pod)
                if wish.reason is not None:
                    reason, message = wish.reason, wish.message
                if wish.nominated_node is not None:
                    nominated = wish.nominated_node
                self._sent[uid] = _Sent(wish.pod.metadata.resource_version, reason, message, nominated)
            return

    def _known(self, pod: Pod) -> tuple[str | None, str, str | None]:
        """Reason and message of a false PodScheduled condition (reason None where it is not false), and the nominated
        node: as we know them."""
        sent = self._sent.get(pod.metadata.uid)
        if sent is not None and sent.version == pod.metadata.resource_version:
            return sent.reason, sent.message, sent.nominated_node
        condition = _scheduled_condition(pod)
        nominated = pod.status.nominated_node_name
        if condition is None or condition.status != "False":
            return None, "", nominated
        return condition.reason, condition.message, nominated

    def _body(self, wish: _Wish) -> dict[str, Any]:
        """The patch, empty if it would change nothing. The uid keeps it off another pod of the same name."""
        reason, message, nominated = self._known(wish.pod)
        status: dict[str, Any] = {}
        if wish.reason is not None and (reason, message) != (wish.reason, wish.message):
            condition: dict[str, Any] = {"type": "PodScheduled", "status": "False"}
            condition |= {"reason": wish.reason, "message": wish.message}
            if wish.observed_generation:
                condition["observedGeneration"] = wish.observed_generation
            if reason is None:
                stamp = datetime.fromtimestamp(self._clock.now(), UTC)
                condition["lastTransitionTime"] = stamp.strftime("%Y-%m-%dT%H:%M:%SZ")
            status["conditions"] = [condition]
        if wish.nominated_node is not None and wish.nominated_node != nominated:
            status["nominatedNodeName"] = wish.nominated_node or None
        return {"metadata": {"uid": wish.pod.metadata.uid}, "status": status} if status else {}


def _scheduled_condition(pod: Pod) -> PodCondition | None:
    return next((condition for condition in pod.status.conditions if condition.type == "PodScheduled"), None)
