"""A plugin that keeps accounts: what was reserved must be bound, or given back. It also holds pods at Permit until it
has paper of a newer version, and takes its time before they are bound, by chance."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from typing import Any

from kube_pyscheduler.api import (
    Action,
    BindingHandle,
    ClusterEvent,
    Code,
    CycleContext,
    CycleState,
    EventRegistration,
    Listers,
    Permit,
    Pod,
    PodInfo,
    PostBind,
    PreBind,
    QueueingHint,
    Reserve,
    Resource,
    Status,
)

SLOW = "example.com/slow"
"""Label of the pods that the plugin has to do with."""

PAPER = "paper"
"""Name of the StorageClass whose label of this name is the version of the paper."""

LONGEST_HOLD = 3.0
"""Seconds."""


class Ledger(Reserve, Permit, PreBind, PostBind):
    """One for each daemon."""

    name = "Ledger"

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._rng = random.Random(1)
        self._reserved: dict[str, str] = {}
        self._refused: dict[str, int] = {}
        """Pod → the paper on which it was not entered."""

    def open_entries(self) -> Iterator[str]:
        """What was reserved, and neither bound nor given back."""
        yield from (f"{uid} has {node} reserved" for uid, node in self._reserved.items())

    def is_waiting_for_paper(self, uid: str, current: int) -> bool:
        """Whether the pod has to wait, ``current`` being the version there is."""
        return self._refused.get(uid) == current

    def events(self) -> tuple[EventRegistration, ...]:
        """Newer paper helps."""
        return (EventRegistration(ClusterEvent(Resource.STORAGE_CLASS, Action.UPDATE), _is_newer_paper),)

    def reserve(self, ctx: CycleContext, pod: PodInfo, node: str) -> Status | None:
        if pod.uid in self._reserved:
            raise AssertionError(f"{pod.key} is reserved twice")
        self._reserved[pod.uid] = node
        return None

    def unreserve(self, ctx: CycleContext, pod: PodInfo, node: str) -> None:
        del self._reserved[pod.uid]

    def permit(self, ctx: CycleContext, pod: PodInfo, node: str) -> tuple[Status | None, float]:
        if SLOW not in pod.pod.metadata.labels:
            return None, 0.0
        paper = ctx.listers.storage_classes.get(PAPER)
        version = version_of(paper) if paper is not None else 0
        if pod.uid in self._refused:
            enough = version > self._refused[pod.uid]
            return (None if enough else Status(Code.UNSCHEDULABLE, ("no paper",))), 0.0
        seconds = self._rng.random() * LONGEST_HOLD
        if self._rng.random() < 0.5:
            self._refused[pod.uid] = version
        else:
            asyncio.get_running_loop().call_later(seconds / 2, self._allow, ctx.handle, pod.uid)
        return Status(Code.WAIT), seconds

    def _allow(self, handle: Any, uid: str) -> None:
        waiting = handle.waiting_pod(uid)
        if waiting is not None:
            waiting.allow(self.name)

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        return None if SLOW in pod.pod.metadata.labels else Status(Code.SKIP)

    async def pre_bind(self, handle: BindingHandle, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        await asyncio.sleep(self._rng.random())
        return Status(Code.ERROR, ("the ledger is out of ink",)) if self._rng.random() < 0.2 else None

    def post_bind(self, state: CycleState, pod: PodInfo, node: str) -> None:
        del self._reserved[pod.uid]


def version_of(paper: Any) -> int:
    return int(paper.metadata.labels[PAPER])


def _is_newer_paper(pod: Pod, old: Any, new: Any, view: Listers) -> QueueingHint:
    is_newer = new.name == PAPER and version_of(new) > version_of(old)
    return QueueingHint.QUEUE if is_newer else QueueingHint.SKIP
