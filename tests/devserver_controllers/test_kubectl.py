"""kubectl sees what controllers do as it would on a cluster. The machine's clock runs here, with short delays."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from kube_pyscheduler.devserver.app import serve
from kube_pyscheduler.devserver.controllers.environment import Settings
from kube_pyscheduler.devserver.kubeconfig import write_kubeconfig
from kube_pyscheduler.devserver.resources import NODES
from tests.devserver_controllers.cluster import Object, node, template, workload

pytestmark = pytest.mark.process

KUBECTL = Path(sys.executable).with_name("kubectl")
Kubectl = Callable[..., Awaitable[str]]


@pytest.fixture
async def kubectl(tmp_path: Path) -> AsyncIterator[Kubectl]:
    """Runs kubectl against a server with one node; the answer is what it prints."""
    server = await serve(controllers=Settings(run_seconds=0.2, stop_seconds=0.1))
    kubeconfig = tmp_path / "kubeconfig"
    write_kubeconfig(kubeconfig, server.url, server.token, b"")
    server.registry.create(NODES, node("node-1"))

    async def run(*arguments: str, given: Object | None = None) -> str:
        process = await asyncio.create_subprocess_exec(
            KUBECTL,
            f"--kubeconfig={kubeconfig}",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate(msgspec.json.encode(given) if given is not None else b"")
        assert process.returncode == 0, output.decode()
        return output.decode()

    yield run
    await server.stop()


def placed(kind: str, name: str, **spec: object) -> Object:
    """A workload whose pods need no scheduler."""
    body = workload(kind, name, **spec)
    body["spec"]["template"] = template(name, nodeName="node-1")
    return body


async def test_rollouts(kubectl: Kubectl) -> None:
    for kind in ("deployment", "statefulset", "daemonset"):
        replicas = {} if kind == "daemonset" else {"replicas": 3}
        title = {"deployment": "Deployment", "statefulset": "StatefulSet", "daemonset": "DaemonSet"}[kind]
        await kubectl("apply", "-f", "-", given=placed(title, "web", **replicas))
        await kubectl("rollout", "status", f"{kind}/web", "--timeout=20s")
        await kubectl("set", "image", f"{kind}/web", "main=registry.example/app:2")
        await kubectl("rollout", "status", f"{kind}/web", "--timeout=20s")
        images = await kubectl("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].spec.containers[0].image}")
        assert "registry.example/app:2" in images
        history = await kubectl("rollout", "history", f"{kind}/web")
        assert [line.split()[0] for line in history.splitlines()[2:] if line.strip()] == ["1", "2"]
        await kubectl("rollout", "undo", f"{kind}/web")
        await kubectl("rollout", "status", f"{kind}/web", "--timeout=20s")
        await kubectl("delete", kind, "web")


async def test_waiting_for_a_job(kubectl: Kubectl) -> None:
    body = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "sum"},
        "spec": {"completions": 3, "template": template("sum", nodeName="node-1", restartPolicy="Never")},
    }
    await kubectl("apply", "-f", "-", given=body)
    await kubectl("wait", "--for=condition=complete", "job/sum", "--timeout=20s")
    assert "3/3" in await kubectl("get", "job", "sum")


async def test_a_namespace_goes_with_everything_in_it(kubectl: Kubectl) -> None:
    await kubectl("create", "namespace", "shop")
    body = placed("Deployment", "web", replicas=2)
    body["metadata"]["namespace"] = "shop"
    await kubectl("apply", "-f", "-", given=body)
    await kubectl("-n", "shop", "rollout", "status", "deployment/web", "--timeout=20s")
    await kubectl("delete", "namespace", "shop", "--timeout=20s")
    assert await kubectl("get", "pods,replicasets", "-A", "--no-headers") == "No resources found\n"


async def test_a_deleted_deployment_takes_its_pods_along(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", given=placed("Deployment", "web", replicas=2))
    await kubectl("rollout", "status", "deployment/web", "--timeout=20s")
    await kubectl("delete", "deployment", "web", "--cascade=foreground", "--timeout=20s")
    assert await kubectl("get", "pods", "--no-headers") == "No resources found in default namespace.\n"


async def test_switches_of_the_command(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    switches = ("--without=workloads", "--nodes=1", f"--kubeconfig-out={kubeconfig}")
    server = await asyncio.create_subprocess_exec(
        Path(sys.executable).with_name("kube-pyscheduler"), "devserver", *switches, stdout=asyncio.subprocess.PIPE
    )

    async def kubectl(*arguments: str) -> str:
        process = await asyncio.create_subprocess_exec(
            KUBECTL, f"--kubeconfig={kubeconfig}", *arguments, stdout=asyncio.subprocess.PIPE
        )
        output, _ = await process.communicate()
        assert process.returncode == 0
        return output.decode()

    try:
        assert server.stdout is not None
        await server.stdout.readline()
        await kubectl("create", "deployment", "web", "--image=registry.example/app:1")
        await kubectl("run", "web", "--image=registry.example/app:1", '--overrides={"spec":{"nodeName":"node-00000"}}')
        await kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=20s")
        assert await kubectl("get", "replicasets", "-o", "name") == ""
    finally:
        server.terminate()
        code = await server.wait()
    assert code == 0
