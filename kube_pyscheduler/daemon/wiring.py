"""The scheduler's ports, wired to an API server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import msgspec

from kube_pyscheduler.daemon.authn import Access, User
from kube_pyscheduler.framework.handle import StaleObject
from kube_pyscheduler.informers.factory import Informers
from kube_pyscheduler.kit.clock import Clock
from kube_pyscheduler.kit.verbosity import Log
from kube_pyscheduler.objects.decode import NOT_JSON
from kube_pyscheduler.objects.kinds import KINDS, POD, Kind
from kube_pyscheduler.objects.meta import Object, ObjectMeta
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.recorder.event import Reference
from kube_pyscheduler.recorder.recorder import Recorder
from kube_pyscheduler.scheduler.ports import BindOutcome, BindResult, Listing, ObjectStore, Version
from kube_pyscheduler.transport import requests
from kube_pyscheduler.transport.binding import Fate, bind_pod
from kube_pyscheduler.transport.client import Sender
from kube_pyscheduler.transport.errors import (
    APIError,
    Conflict,
    Forbidden,
    MayNotWrite,
    NetworkError,
    NotFound,
    ServerError,
    TooManyRequests,
)

log = Log(__name__)

Sleep = Callable[[float], Awaitable[None]]

_OUTCOMES = {
    Fate.BOUND: BindOutcome.BOUND,
    Fate.ELSEWHERE: BindOutcome.BOUND_ELSEWHERE,
    Fate.GONE: BindOutcome.GONE,
    Fate.GATED: BindOutcome.GATED,
}
_KINDS: dict[str, Kind[Object]] = {kind.name: kind for kind in KINDS}


class ApiBinder:
    """Implements Binder."""

    def __init__(self, client: Sender, sleep: Sleep = asyncio.sleep) -> None:
        self._client = client
        self._sleep = sleep

    async def bind(self, pod: Pod, node: str, is_free: Callable[[], bool] = lambda: True) -> BindResult:
        try:
            fate = await bind_pod(
                self._client,
                namespace=pod.namespace,
                name=pod.name,
                uid=pod.uid,
                node=node,
                is_free=is_free,
                sleep=self._sleep,
            )
        except MayNotWrite as error:
            return BindResult(BindOutcome.NOT_OURS, str(error))
        except (APIError, NetworkError) as error:
            return BindResult(BindOutcome.FAILED, str(error))
        return BindResult(_OUTCOMES[fate])


class ApiStatus:
    """How status patches are sent."""

    def __init__(self, client: Sender) -> None:
        self._client = client

    async def send(self, pod: Pod, body: dict[str, Any]) -> None:
        """Returns also when the pod is gone, or the server will never take the patch; raises what may work later."""
        try:
            if _is_bound(await self._patch(pod, body["status"])):
                # The binding did not wait for this patch, and overtook it.
                await self._patch(pod, _BOUND)
        except (NotFound, Conflict):
            return
        except (ServerError, TooManyRequests, Forbidden):
            raise
        except APIError as error:
            log.error("The pod's status cannot be written", error, pod=pod.key)

    async def _patch(self, pod: Pod, status: dict[str, Any]) -> bytes:
        return await self._client.send(requests.patch_pod_status(pod.namespace, pod.name, pod.uid, status))


_BOUND: dict[str, Any] = {
    "conditions": [{"type": "PodScheduled", "status": "True", "reason": None, "message": None}],
    "nominatedNodeName": None,
}
"""What the API server says of a pod when it binds it."""


def _is_bound(pod: bytes) -> bool:
    try:
        return bool(msgspec.json.decode(pod, type=_Placed).spec.node)
    except NOT_JSON:
        return False


class ApiEvictor:
    """Implements Evictor. Source: prepareCandidate in pkg/scheduler/framework/preemption/executor.go."""

    def __init__(self, client: Sender, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def evict(self, victim: Pod, message: str) -> None:
        condition: dict[str, Any] = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": message,
            "lastTransitionTime": datetime.fromtimestamp(self._clock.now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        if victim.metadata.generation:
            condition["observedGeneration"] = victim.metadata.generation
        status = {"conditions": [condition]}
        try:
            patch = requests.patch_pod_status(victim.namespace, victim.name, victim.uid, status)
            await self._client.send(patch)
            await self._client.send(requests.delete_pod(victim.namespace, victim.name, victim.uid))
        except (NotFound, Conflict):
            return


class PodEvents:
    """Implements EventSink. ``profiles``: our scheduler names, as they are now. An Event says which of them speaks: the
    pod's own, or, about a pod of somebody else that had to make room, the first."""

    def __init__(self, recorder: Recorder, profiles: Callable[[], Collection[str]]) -> None:
        self._recorder = recorder
        self._profiles = profiles

    def event(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None:
        meta, name, profiles = pod.metadata, pod.spec.scheduler_name, self._profiles()
        self._recorder.event(
            Reference("v1", "Pod", meta.namespace, meta.name, meta.uid, meta.resource_version),
            type_,
            reason,
            action,
            note,
            controller=name if name in profiles else next(iter(profiles)),
            repeats=reason != "Scheduled",
        )


class LeaseEvents:
    """What the elector announces, as Events on the Lease.

    Source: RecordEvent in client-go/tools/leaderelection/resourcelock/leaselock.go."""

    def __init__(self, recorder: Recorder, controller: str) -> None:
        self._recorder = recorder
        self._controller = controller

    def announce(self, lease: dict[str, Any], note: str) -> None:
        meta = lease.get("metadata") or {}
        about = Reference(
            "coordination.k8s.io/v1",
            "Lease",
            meta.get("namespace", ""),
            meta.get("name", ""),
            meta.get("uid", ""),
            meta.get("resourceVersion", ""),
        )
        self._recorder.event(
            about, "Normal", "LeaderElection", "LeaderElection", note, controller=self._controller, repeats=False
        )


class ApiReader:
    """Implements PodReader."""

    def __init__(self, client: Sender) -> None:
        self._client = client

    async def read(self, pod: Pod) -> Pod | None:
        try:
            body = await self._client.send(requests.get_pod(pod.namespace, pod.name))
        except NotFound:
            return None
        found: Pod | None = POD.decoder.salvage(body)
        return found if found is not None and found.uid == pod.uid else None


class ApiTruth:
    """Implements Truth."""

    def __init__(self, informers: Informers) -> None:
        self._informers = informers

    def told(self, kind: str) -> ObjectStore:
        return self._informers.of(_KINDS[kind]).store

    async def list(self, kind: str) -> Listing:
        return await self._list(kind)

    async def waiting(self) -> Listing:
        return await self._list("Pod", "spec.nodeName=")

    async def _list(self, kind: str, only: str = "") -> Listing:
        version, found = await self._informers.of(_KINDS[kind]).identities(only)
        return Listing(version, {key: Version(identity.uid, identity.version) for key, identity in found.items()})

    async def relist(self, kind: str) -> None:
        await self._informers.of(_KINDS[kind]).relist()


class ApiObjects:
    """Implements ObjectPort. Make it before the informers run: it listens to them."""

    def __init__(self, client: Sender, informers: Informers) -> None:
        self._client = client
        self._informers = informers
        self._waiting: dict[tuple[str, str], list[asyncio.Event]] = {}
        for informer in informers:
            self._listen(informer.kind.name, informer.add_handler)

    def _listen(self, kind: str, add_handler: Callable[[Callable[[Any, Any], None]], None]) -> None:
        def changed(old: Object | None, new: Object | None) -> None:
            if self._waiting:
                thing = new if new is not None else old
                for event in self._waiting.get((kind, thing.key if thing is not None else ""), ()):
                    event.set()

        add_handler(changed)

    async def read(self, kind: str, namespace: str, name: str) -> Any:
        try:
            body = await self._client.send(requests.get(_KINDS[kind], namespace, name))
        except NotFound:
            return None
        return _KINDS[kind].decoder.decode(body)

    async def create(self, kind: str, namespace: str, body: dict[str, Any]) -> Any:
        made = await self._client.send(requests.create(_KINDS[kind], namespace, body))
        return _KINDS[kind].decoder.decode(made)

    async def patch(
        self,
        kind: str,
        namespace: str,
        name: str,
        patch: dict[str, Any],
        *,
        status: bool = False,
        strategic: bool = False,
    ) -> Any:
        target = Object(ObjectMeta(name=name, namespace=namespace))
        request = requests.patch(
            _KINDS[kind],
            target,
            patch,
            subresource="status" if status else "",
            content_type=requests.STRATEGIC_PATCH if strategic else requests.MERGE_PATCH,
        )
        try:
            body = await self._client.send(request)
        except Conflict as error:
            raise StaleObject(str(error)) from error
        return _KINDS[kind].decoder.decode(body)

    async def delete(self, kind: str, namespace: str, name: str, uid: str) -> None:
        with suppress(NotFound):
            await self._client.send(requests.delete(_KINDS[kind], namespace, name, uid))

    async def until(self, kind: str, key: str, predicate: Callable[[Any], bool], timeout: float) -> bool:
        return await self.until_any([(kind, key)], predicate, timeout)

    async def until_any(
        self, watched: Sequence[tuple[str, str]], predicate: Callable[..., bool], timeout: float
    ) -> bool:
        # Who waits may let its list grow meanwhile; this wait is for what it held at first.
        watched = tuple(watched)
        places = [(self._informers.of(_KINDS[kind]).store, key) for kind, key in watched]
        changed = asyncio.Event()
        for place in watched:
            self._waiting.setdefault(place, []).append(changed)
        try:
            async with asyncio.timeout(timeout):
                while not predicate(*[store.get(key) for store, key in places]):
                    await changed.wait()
                    changed.clear()
        except TimeoutError:
            return False
        finally:
            for place in watched:
                self._waiting[place].remove(changed)
                if not self._waiting[place]:
                    del self._waiting[place]
        return True


class ApiReviews:
    """What the guard of the secure port asks the API server."""

    def __init__(self, tokens: Sender, accesses: Sender) -> None:
        self._tokens = tokens
        self._accesses = accesses

    async def token(self, token: str) -> User | None:
        """Whose it is, None for nobody's."""
        review = msgspec.json.decode(await self._tokens.send(requests.token_review(token)), type=_TokenReview)
        if not review.status.authenticated:
            return None
        user = review.status.user
        return User(user.username, user.uid, tuple(user.groups or ()), user.extra or {})

    async def access(self, user: User, verb: str, path: str) -> Access:
        """Whether ``user`` may ``verb`` the non-resource ``path``."""
        request = requests.subject_access_review(
            user=user.name, uid=user.uid, groups=user.groups, extra=user.extra, path=path, verb=verb
        )
        review = msgspec.json.decode(await self._accesses.send(request), type=_AccessReview)
        return Access(review.status.allowed, review.status.reason or "")


class _PlacedSpec(msgspec.Struct):
    node: str | None = msgspec.field(name="nodeName", default=None)


class _Placed(msgspec.Struct):
    spec: _PlacedSpec


class _User(msgspec.Struct):
    username: str = ""
    uid: str = ""
    groups: list[str] | None = None
    extra: dict[str, list[str]] | None = None


class _TokenStatus(msgspec.Struct):
    authenticated: bool = False
    user: _User = msgspec.field(default_factory=_User)


class _TokenReview(msgspec.Struct):
    status: _TokenStatus = msgspec.field(default_factory=_TokenStatus)


class _AccessStatus(msgspec.Struct):
    allowed: bool = False
    reason: str | None = None


class _AccessReview(msgspec.Struct):
    status: _AccessStatus = msgspec.field(default_factory=_AccessStatus)
