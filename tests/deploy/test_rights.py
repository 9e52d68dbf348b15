"""A daemon with just the rights of the manifest's ServiceAccount does its whole job, and is never refused anything."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from deploy.render import MANIFEST, NAME
from kube_pyscheduler.config.load import load_config, override
from kube_pyscheduler.daemon.options import Endpoint, Options
from kube_pyscheduler.devserver.app import DevServer, serve
from kube_pyscheduler.devserver.controllers.environment import Settings
from kube_pyscheduler.devserver.kubeconfig import write_kubeconfig
from kube_pyscheduler.devserver.resources import EVENTS, LEASES, PODS
from kube_pyscheduler.devserver.seed import seed_nodes
from tests.devserver.kubectl import Kubectl
from tests.unit.daemon.cluster import eventually, free_port
from tests.unit.daemon.running import OFF, get, running

ACCOUNT = f"system:serviceaccount:{NAME}:{NAME}"

WHAT_PODS_NEED = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: made-late}
provisioner: example.com/disks
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: disk}
spec: {storageClassName: made-late, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: lamp}
spec:
  extendedResourceName: example.com/lamp
  selectors: [{cel: {expression: device.driver == "example.com"}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: lamps}
spec:
  driver: example.com
  nodeName: node-00000
  pool: {name: node-00000, generation: 1, resourceSliceCount: 1}
  devices: [{name: lamp-0}, {name: lamp-1}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: light}
spec: {devices: {requests: [{name: one, exactly: {deviceClassName: lamp}}]}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 1000
"""


def pod(name: str, cpu: str, more: str = "") -> str:
    amounts = f"{{cpu: {cpu}}}"
    container = f"{{name: c, image: app, resources: {{requests: {amounts}, limits: {amounts}}}}}"
    spec = f"schedulerName: {NAME}, containers: [{container}]{more}"
    return f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n"


@pytest.fixture
async def server() -> AsyncIterator[DevServer]:
    server = await serve(rbac=True, controllers=Settings(run_seconds=None, stop_seconds=0.0))
    seed_nodes(server.registry, 1)
    yield server
    await server.stop()


@pytest.fixture
async def kubectl(server: DevServer, tmp_path: Path) -> Kubectl:
    kubectl = Kubectl(server, tmp_path)
    await kubectl("apply", "-f", str(MANIFEST))
    return kubectl


async def test_it_binds_reports_preempts_and_prepares_volumes_and_devices(
    server: DevServer, kubectl: Kubectl, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def node_of(name: str) -> str:
        found = server.store.get(PODS, "default", name)
        return str(found["spec"].get("nodeName", "")) if found else ""

    def reasons(name: str) -> set[str]:
        events = server.store.list_objects(EVENTS)
        return {event["reason"] for event in events if event["involvedObject"]["name"] == name}

    kubeconfig = tmp_path / "account"
    token = await kubectl("--namespace", NAME, "create", "token", NAME)
    write_kubeconfig(kubeconfig, server.url, token.strip())
    [settings] = [item for item in yaml.safe_load_all(MANIFEST.read_text()) if item["kind"] == "ConfigMap"]
    config = override(load_config(settings["data"]["config.yaml"]), {}, {"kubeconfig": str(kubeconfig)})
    options = Options(config=config, plain=Endpoint("127.0.0.1", free_port()), secure=OFF)
    async with running(options) as (stop, daemon):
        await kubectl("create", "-f", "-", given=WHAT_PODS_NEED)
        disk = ", volumes: [{name: v, persistentVolumeClaim: {claimName: disk}}]"
        await kubectl("create", "-f", "-", given=pod("stored", "1", disk))
        await kubectl("create", "-f", "-", given=pod("large", "18"))
        claim = ", resourceClaims: [{name: c, resourceClaimName: light}]"
        await kubectl("create", "-f", "-", given=pod("lit", "1", claim))
        await kubectl("create", "-f", "-", given=pod("bright", "1, example.com/lamp: 1"))
        await eventually(lambda: all(map(node_of, ("stored", "large", "lit", "bright"))))
        await kubectl("create", "-f", "-", given=pod("huge", "1000"))
        await kubectl("create", "-f", "-", given=pod("urgent", "25", ", priorityClassName: urgent"))
        await eventually(lambda: bool(node_of("urgent")))
        assert server.store.get(PODS, "default", "large") is None
        await eventually(lambda: reasons("huge") == {"FailedScheduling"} and reasons("urgent") >= {"Scheduled"})
        assert "Preempted" in reasons("large")
        metrics = (await get(options.plain.port, "/metrics"))[1]
        stop.set()
        assert await daemon == 0
    lease = server.store.get(LEASES, NAME, NAME)
    assert lease is not None
    assert lease["spec"]["holderIdentity"] == ""
    assert 'code="403"' not in metrics
    assert "orbidden" not in caplog.text


@pytest.mark.parametrize(
    ("verb", "what"), [("get", "secrets"), ("get", "configmaps"), ("patch", "nodes"), ("create", "pods")]
)
async def test_it_may_not_do_what_it_need_not(kubectl: Kubectl, verb: str, what: str) -> None:
    assert (await kubectl.run("auth", "can-i", verb, what, "--as", ACCOUNT)).out.strip() == "no"
