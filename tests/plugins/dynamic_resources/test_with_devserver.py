"""The daemon, an API server and its controllers, all real, over sockets."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kube_pyscheduler.daemon.wiring import ApiObjects
from kube_pyscheduler.devserver.app import DevServer, serve
from kube_pyscheduler.devserver.controllers.environment import Settings
from kube_pyscheduler.devserver.options import DeleteOptions
from kube_pyscheduler.devserver.resources import NODES, PODS, RESOURCE_CLAIMS, builtin
from kube_pyscheduler.devserver.seed import seed_nodes
from kube_pyscheduler.devserver.store import Change
from kube_pyscheduler.transport.credentials import Credentials, Source
from kube_pyscheduler.transport.session import Session
from tests.plugins.dynamic_resources.world import CLASS, DRIVER, Document, ask, device
from tests.unit.daemon.cluster import Cluster, eventually
from tests.unit.daemon.running import options, running

DEVICE_CLASSES = builtin("deviceclasses.resource.k8s.io")
RESOURCE_SLICES = builtin("resourceslices.resource.k8s.io")
TEMPLATES = builtin("resourceclaimtemplates.resource.k8s.io")
GPU = "example.com/gpu"

Taken = tuple[str, str]
"""(pool, device)."""


class Devices:
    """The devices of a cluster, and who had them: ``most`` is how many claims had the same one at a time."""

    def __init__(self, server: DevServer) -> None:
        self.server = server
        self.most = 0
        server.store.subscribe(RESOURCE_CLAIMS, self._look)

    def _look(self, _change: Change) -> None:
        self.most = max([self.most, *Counter(self.taken).values()])

    @property
    def taken(self) -> list[Taken]:
        """What is allocated, as often as it is."""
        return [
            (result["pool"], result["device"])
            for claim in self.server.store.list_objects(RESOURCE_CLAIMS)
            for result in claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
        ]

    def add(self, per_node: int, *, extended: str | None = None) -> None:
        """So many on every node."""
        spec: Document = {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]}
        if extended is not None:
            spec["extendedResourceName"] = extended
        self.server.registry.create(DEVICE_CLASSES, {"metadata": {"name": CLASS}, "spec": spec})
        for node in self.server.store.list_objects(NODES):
            name = node["metadata"]["name"]
            spec = {
                "driver": DRIVER,
                "nodeName": name,
                "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                "devices": [device(f"gpu-{number}", "80Gi") for number in range(per_node)],
            }
            self.server.registry.create(RESOURCE_SLICES, {"metadata": {"name": f"{name}-gpu"}, "spec": spec})

    def add_template(self, **metadata: Any) -> None:
        spec = {"devices": {"requests": [ask()]}}
        meta = {"name": "gpu", "namespace": "default", **metadata}
        self.server.registry.create(TEMPLATES, {"metadata": meta, "spec": {"spec": spec}})

    def add_claim(self, name: str) -> None:
        spec = {"devices": {"requests": [ask()]}}
        self.server.registry.create(RESOURCE_CLAIMS, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})

    def add_pod(self, name: str, claim: Document | None = None, resources: Document | None = None) -> None:
        container = {"name": "c", "image": "x", "resources": {"requests": resources or {}, "limits": resources or {}}}
        spec: Document = {"schedulerName": "kube-pyscheduler", "containers": [container]}
        if claim is not None:
            spec["resourceClaims"] = [{"name": "gpu", **claim}]
        self.server.registry.create(PODS, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})

    @property
    def bound(self) -> dict[str, str]:
        """Pod → node."""
        pods = self.server.store.list_objects(PODS)
        return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")}

    @property
    def refused(self) -> set[str]:
        """The pods that are said to fit nowhere."""
        return {
            pod["metadata"]["name"]
            for pod in self.server.store.list_objects(PODS)
            for condition in pod.get("status", {}).get("conditions", [])
            if (condition["type"], condition["status"]) == ("PodScheduled", "False")
        }


@contextlib.asynccontextmanager
async def scheduled_devices(nodes: int) -> AsyncIterator[Devices]:
    server = await serve(controllers=Settings(run_seconds=None))
    seed_nodes(server.registry, nodes)
    try:
        credentials = await Credentials.read(Source(master=server.url))
        async with Session(credentials, user_agent="test") as session, running(options(Cluster(server, session))):
            yield Devices(server)
    finally:
        await server.stop()


async def test_thirty_claims_get_thirty_devices() -> None:
    async with scheduled_devices(nodes=4) as devices:
        devices.add(8)
        devices.add_template()
        for number in range(30):
            devices.add_pod(f"p{number}", {"resourceClaimTemplateName": "gpu"})
        await eventually(lambda: len(devices.bound) == 30)
        assert len(devices.taken) == len(set(devices.taken)) == 30
        assert devices.most == 1
        claims = devices.server.store.list_objects(RESOURCE_CLAIMS)
        for claim in claims:
            (user,) = claim["status"]["reservedFor"]
            (result,) = claim["status"]["allocation"]["devices"]["results"]
            assert devices.bound[user["name"]] == result["pool"]
            assert claim["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
        # The devices of pods that go are given to those that come.
        for number in range(10):
            devices.server.registry.delete(PODS, "default", f"p{number}", DeleteOptions(grace_seconds=0))
            devices.add_pod(f"q{number}", {"resourceClaimTemplateName": "gpu"})
        await eventually(lambda: sum(name.startswith("q") for name in devices.bound) == 10)
        assert devices.most == 1


async def test_bc_79_one_device_and_twenty_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    written = asyncio.Event()
    patch = ApiObjects.patch

    async def patch_later(self: ApiObjects, *args: Any, **more: Any) -> Any:
        await written.wait()
        return await patch(self, *args, **more)

    monkeypatch.setattr(ApiObjects, "patch", patch_later)
    async with scheduled_devices(nodes=1) as devices:
        devices.add(1)
        for number in range(20):
            devices.add_claim(f"c{number}")
            devices.add_pod(f"p{number}", {"resourceClaimName": f"c{number}"})
        # One was decided on; nothing of it is written yet, and all others wait.
        await eventually(lambda: len(devices.refused) == 19)
        assert devices.taken == []
        written.set()
        for _holder in range(3):
            await eventually(lambda: len(devices.bound) == 1)
            assert len(devices.taken) == 1
            (holder,) = devices.bound
            devices.server.registry.delete(PODS, "default", holder, DeleteOptions(grace_seconds=0))
        await eventually(lambda: len(devices.bound) == 1)
        assert len(devices.server.store.list_objects(PODS)) == 17
        assert devices.most == 1


async def test_a_claim_is_shared_by_pods_on_its_node() -> None:
    async with scheduled_devices(nodes=3) as devices:
        devices.add(1)
        devices.add_claim("c")
        for name in ("a", "b", "d"):
            devices.add_pod(name, {"resourceClaimName": "c"})
        await eventually(lambda: len(devices.bound) == 3)
        assert len(set(devices.bound.values())) == 1
        assert len(devices.taken) == 1


async def test_pods_wait_for_claims_and_devices_that_come_later() -> None:
    async with scheduled_devices(nodes=2) as devices:
        devices.add_pod("p", {"resourceClaimTemplateName": "gpu"})
        devices.add_pod("q", {"resourceClaimName": "c"})
        devices.add_template()
        await eventually(lambda: "p" in devices.refused)
        devices.add(1)
        await eventually(lambda: set(devices.bound) == {"p"})
        devices.add_claim("c")
        await eventually(lambda: set(devices.bound) == {"p", "q"})
        assert len(set(devices.taken)) == 2


async def test_extended_resources_are_served_by_devices() -> None:
    async with scheduled_devices(nodes=2) as devices:
        devices.add(2, extended=GPU)
        for number in range(4):
            devices.add_pod(f"p{number}", resources={GPU: "1"})
        await eventually(lambda: len(devices.bound) == 4)
        assert len(set(devices.taken)) == 4
        devices.add_pod("late", resources={GPU: "1"})
        await eventually(lambda: "late" in devices.refused)
        devices.server.registry.delete(PODS, "default", "p0", DeleteOptions(grace_seconds=0))
        await eventually(lambda: "late" in devices.bound)
        assert devices.most == 1
