"""Defects to plant into the product, one at a time: each is something that could be wrong and that storms must show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from kube_pyscheduler.daemon import wiring
from kube_pyscheduler.framework.cluster_event import EVENT_ASSIGNED_POD_DELETE
from kube_pyscheduler.informers import reflector
from kube_pyscheduler.informers.factory import Informers
from kube_pyscheduler.informers.store import Change, Writer
from kube_pyscheduler.leader.elector import Elector, LeaseLost
from kube_pyscheduler.scheduler import binding_cycle, scheduling_loop
from kube_pyscheduler.scheduler.audit import Audit
from kube_pyscheduler.scheduler.binding_cycle import BindingCycles
from kube_pyscheduler.scheduler.placement import Placement
from kube_pyscheduler.scheduling_queue.hints import Strategy
from kube_pyscheduler.scheduling_queue.in_flight import InFlightLog
from kube_pyscheduler.scheduling_queue.nominator import Nominator
from kube_pyscheduler.scheduling_queue.priority_queue import PriorityQueue
from kube_pyscheduler.transport import requests
from kube_pyscheduler.transport.binding import Fate
from kube_pyscheduler.transport.errors import NetworkError, NotFound, ServerError

Plant = Callable[[pytest.MonkeyPatch], None]


def _nothing(*_args: Any, **_kwargs: Any) -> None:
    return None


async def _nothing_later(*_args: Any, **_kwargs: Any) -> None:
    return None


# Binding


def blind_second_binding(patch: pytest.MonkeyPatch) -> None:
    """A lost answer is followed by the same Binding again."""

    async def bind_pod(client: Any, *, namespace: str, name: str, uid: str, node: str, **_: Any) -> Fate:
        request = requests.bind_pod(namespace, name, uid, node)
        try:
            await client.send(request)
        except NotFound:
            return Fate.GONE
        except (NetworkError, ServerError):
            await client.send(request)
        return Fate.BOUND

    patch.setattr(wiring, "bind_pod", bind_pod)


def no_read_back(patch: pytest.MonkeyPatch) -> None:
    """A lost answer counts as a failure."""

    async def bind_pod(client: Any, *, namespace: str, name: str, uid: str, node: str, **_: Any) -> Fate:
        try:
            await client.send(requests.bind_pod(namespace, name, uid, node))
        except NotFound:
            return Fate.GONE
        return Fate.BOUND

    patch.setattr(wiring, "bind_pod", bind_pod)


def no_forget_after_404(patch: pytest.MonkeyPatch) -> None:
    """A pod that the server does not know keeps its node."""

    def lost(self: BindingCycles, placement: Placement, *_: Any) -> None:
        self._queue.done(placement.info.uid)

    patch.setattr(BindingCycles, "_lost", lost)


def node_kept_after_failure(patch: pytest.MonkeyPatch) -> None:
    """A pod whose binding failed keeps its node."""

    def take_back(placement: Placement, _cache: Any) -> None:
        for plugin in reversed(placement.profile.reserve):
            plugin.unreserve(placement.ctx, placement.info, placement.node)

    patch.setattr(binding_cycle, "take_back", take_back)


def no_unreserve(patch: pytest.MonkeyPatch) -> None:
    """Plugins are not told that a binding failed."""

    def take_back(placement: Placement, cache: Any) -> None:
        cache.forget(placement.info.uid)

    patch.setattr(binding_cycle, "take_back", take_back)
    patch.setattr(scheduling_loop, "take_back", take_back)


def assumed_for_ever(patch: pytest.MonkeyPatch) -> None:
    """A binding that the watch never confirms is believed for ever."""
    patch.setattr(Audit, "settle_overdue", _nothing_later)


# Informers


def no_deletions_from_lists(patch: pytest.MonkeyPatch) -> None:
    """What a new list does not have any more is not told."""
    replace = Writer.replace

    def without_deletions(self: Writer[Any], *args: Any) -> list[Change[Any]]:
        return [change for change in replace(self, *args) if change.new is not None]

    patch.setattr(Writer, "replace", without_deletions)


def no_updates_from_lists(patch: pytest.MonkeyPatch) -> None:
    """What a new list has in another version is not told."""
    replace = Writer.replace

    def without_updates(self: Writer[Any], *args: Any) -> list[Change[Any]]:
        return [change for change in replace(self, *args) if change.old is None or change.new is None]

    patch.setattr(Writer, "replace", without_updates)


def older_versions_taken(patch: pytest.MonkeyPatch) -> None:
    """What arrives last counts, though it is older."""
    patch.setattr("kube_pyscheduler.informers.store.is_older", lambda _version, _than: False)


def expired_versions_watched(patch: pytest.MonkeyPatch) -> None:
    """A version that the server has forgotten is asked for again and again."""
    after = reflector._after

    def stays(error: Any, version: str, refusals: int) -> Any:
        return after(error, version, refusals) if isinstance(error, NetworkError) else reflector.Listed(version)

    patch.setattr(reflector, "_after", stays)


# Queue


def in_flight_events_lost(patch: pytest.MonkeyPatch) -> None:
    """What happens while a pod is being tried is not kept for it."""
    patch.setattr(InFlightLog, "record", _nothing)


def deletions_wake_nobody(patch: pytest.MonkeyPatch) -> None:
    """The end of a pod is not told to those who wait for its place."""
    move_all = PriorityQueue.move_all

    def deaf(self: PriorityQueue, event: Any, *args: Any) -> None:
        if event != EVENT_ASSIGNED_POD_DELETE:
            move_all(self, event, *args)

    patch.setattr(PriorityQueue, "move_all", deaf)


def errors_parked(patch: pytest.MonkeyPatch) -> None:
    """A pod whose attempt went wrong waits for an event, though nobody refused it."""
    judge = PriorityQueue._strategy_after_attempt
    patch.setattr(
        PriorityQueue,
        "_strategy_after_attempt",
        lambda self, queued: judge(self, queued) if queued.rejectors else Strategy.SKIP,
    )


def promises_kept(patch: pytest.MonkeyPatch) -> None:
    """A promise survives the pod to which it was made."""
    patch.setattr(Nominator, "drop", lambda _self, _uid: "")


def lost_pods_stay_lost(patch: pytest.MonkeyPatch) -> None:
    """Nobody looks for pods that are in no queue."""
    patch.setattr(Audit, "find_lost", _nothing)


def deleted_pods_stay_queued(patch: pytest.MonkeyPatch) -> None:
    """A pod that is gone, or bound by somebody else, is still tried."""
    patch.setattr(PriorityQueue, "delete", _nothing)


# Leaders


def writes_without_lease(patch: pytest.MonkeyPatch) -> None:
    """Who lost the lease goes on."""

    async def hold(self: Elector) -> NoReturn:
        while True:
            await self._sleep(self._timing.retry_period)
            try:
                await self._renew()
            except LeaseLost:
                continue

    patch.setattr(Elector, "hold", hold)
    patch.setattr(Elector, "is_leader", lambda _self: True)


def stale_leader(patch: pytest.MonkeyPatch) -> None:
    """A new leader decides by what its watches have told so far."""
    patch.setattr(Informers, "relist", _nothing_later)


DEFECTS: dict[str, Plant] = {
    plant.__name__: plant
    for plant in (
        blind_second_binding,
        no_read_back,
        no_forget_after_404,
        node_kept_after_failure,
        no_unreserve,
        assumed_for_ever,
        no_deletions_from_lists,
        no_updates_from_lists,
        older_versions_taken,
        expired_versions_watched,
        in_flight_events_lost,
        deletions_wake_nobody,
        errors_parked,
        promises_kept,
        lost_pods_stay_lost,
        deleted_pods_stay_queued,
        writes_without_lease,
        stale_leader,
    )
}
