"""A world whose claims are those of a real API server, and a binding handle that writes there."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.daemon.wiring import ApiBinder, ApiObjects
from kube_pyscheduler.devserver.resources import PODS, RESOURCE_CLAIMS
from kube_pyscheduler.engine.decision import Decision
from kube_pyscheduler.framework.status import Status
from kube_pyscheduler.informers.factory import Informers
from kube_pyscheduler.kit.clock import FakeClock
from kube_pyscheduler.kit.tasks import Tasks
from kube_pyscheduler.objects.kinds import RESOURCE_CLAIM
from kube_pyscheduler.objects.meta import Object
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.objects.resource import ResourceClaim
from kube_pyscheduler.scheduler.handles import BindHandle
from tests.clusters import WALL_TIME
from tests.plugins.dynamic_resources.world import Document, World
from tests.unit.daemon.cluster import Cluster, cluster, eventually


class Lab:
    """``world`` hears of claims as the watch tells of them, unless it ``is_deaf``."""

    def __init__(self, api: Cluster, informers: Informers) -> None:
        self.world = World()
        self.clock = FakeClock(WALL_TIME)
        self.events: list[tuple[str, str, str, str]] = []
        self.is_deaf = False
        self._api = api
        self._unheard: list[tuple[Object | None, Object | None]] = []
        self.objects = ApiObjects(api.client, informers)
        self.handle = BindHandle(
            self.world.cache.listers,
            ApiBinder(api.client),
            self.objects,
            self,
            self.clock,
        )
        informers.of(RESOURCE_CLAIM).add_handler(self._heard)

    def event(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None:
        """What is told to the readers of pods."""
        self.events.append((pod.name, type_, reason, note))

    def _heard(self, old: Object | None, new: Object | None) -> None:
        self._unheard.append((old, new))
        if not self.is_deaf:
            self.listen()

    def listen(self) -> None:
        """Hear what the watch told meanwhile."""
        self.is_deaf = False
        for old, new in self._unheard:
            if new is not None:
                self.world.put(new)
            elif old is not None:
                self.world.drop(old)
        self._unheard.clear()

    # The server

    async def add(self, claim: ResourceClaim) -> ResourceClaim:
        """Make a claim, and wait until the world knows it."""
        document = msgspec.json.decode(msgspec.json.encode(claim))
        status = document.pop("status", {})
        document["metadata"] = {
            key: value for key, value in document["metadata"].items() if key not in ("uid", "resourceVersion")
        }
        self._api.server.registry.create(RESOURCE_CLAIMS, document)
        if status:
            self.change(claim.name, status=status)
        await self.heard(claim.name)
        found = self.world.cache.listers.resource_claims.get(claim.key)
        assert found is not None
        return found

    async def heard(self, name: str) -> None:
        """The world knows the claim as it is."""
        version, known = self.raw(name)["metadata"]["resourceVersion"], self.world.cache.listers.resource_claims
        await eventually(
            lambda: (found := known.get(f"default/{name}")) is not None and found.metadata.resource_version == version
        )

    def add_pod(self, pod: Pod) -> Pod:
        """Make a pod; it has the uid that the server gave it."""
        document = msgspec.json.decode(msgspec.json.encode(pod))
        metadata = {"name": pod.name, "namespace": pod.namespace}
        made = self._api.server.registry.create(PODS, {"metadata": metadata, "spec": document["spec"]})
        return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, uid=made["metadata"]["uid"]))

    def raw(self, name: str) -> Document:
        """The claim as the server has it."""
        found = self._api.server.store.get(RESOURCE_CLAIMS, "default", name)
        assert found is not None
        return found

    def raw_pod(self, name: str) -> Document:
        return self._api.raw_pod(name)

    def claims(self) -> list[str]:
        """Names of the claims that the server has."""
        return [each["metadata"]["name"] for each in self._api.server.store.list_objects(RESOURCE_CLAIMS)]

    def change(self, name: str, **fields: Any) -> None:
        """Somebody writes the claim."""
        latest = self.raw(name)
        metadata = {**latest["metadata"], **fields.pop("metadata", {})}
        self._api.server.store.update(RESOURCE_CLAIMS, {**latest, **fields, "metadata": metadata})

    def delete(self, name: str) -> None:
        """The claim is gone at once."""
        self.change(name, metadata={"finalizers": []})
        latest = self.raw(name)
        self._api.server.store.delete(RESOURCE_CLAIMS, "default", latest["metadata"]["name"])

    # The scheduler

    async def bind(self, pod: Pod, decision: Decision) -> Status | None:
        """PreBind of a pod that was decided on."""
        assert decision.node is not None
        return await self.world.plugin.pre_bind(self.handle, decision.ctx.state, PodInfo(pod), decision.node)

    async def work(self) -> None:
        """Do what plugins wanted done in the background."""
        wanted, self.world.handle.work = self.world.handle.work, []
        for each in wanted:
            await each(self.handle)


@contextlib.asynccontextmanager
async def lab() -> AsyncIterator[Lab]:
    async with cluster(nodes=0) as api, Tasks() as tasks:
        informers = Informers(api.client, [RESOURCE_CLAIM])
        made = Lab(api, informers)
        informers.start(tasks)
        await informers.synced()
        yield made
