"""What a person does with kubectl, done by the real one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from kube_pyscheduler.devserver.app import DevServer, serve
from kube_pyscheduler.devserver.controllers.environment import Settings
from kube_pyscheduler.devserver.seed import seed_nodes
from tests.devserver.api import PODS, Api, binding
from tests.devserver.kubectl import Kubectl, columns

pytestmark = pytest.mark.process

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: c
        image: nginx:1
        ports: [{containerPort: 80}]
"""


@pytest.fixture
async def bare() -> AsyncIterator[DevServer]:
    """A server with two nodes, without controllers."""
    server = await serve(tls=True)
    seed_nodes(server.registry, 2)
    yield server
    await server.stop()


@pytest.fixture
def kubectl(bare: DevServer, tmp_path: Path) -> Kubectl:
    return Kubectl(bare, tmp_path)


async def bind(server: DevServer, name: str, node: str) -> None:
    server.registry.bind("default", name, binding(name, node))


async def test_get(bare: DevServer, kubectl: Kubectl) -> None:
    await kubectl("run", "a", "--image=nginx:1", "--labels=app=a")
    await kubectl("run", "b", "--image=nginx:1", "--labels=app=b")
    await bind(bare, "a", "node-00001")
    wide = columns(await kubectl("get", "pods", "-o", "wide"))
    assert " ".join(wide[0]) == "NAME READY STATUS RESTARTS AGE IP NODE NOMINATED NODE READINESS GATES"
    assert [row[:4] + row[6:7] for row in wide[1:]] == [
        ["a", "0/1", "Pending", "0", "node-00001"],
        ["b", "0/1", "Pending", "0", "<none>"],
    ]
    assert await kubectl("get", "po", "-l", "app in (b,c)", "-o", "name") == "pod/b\n"
    assert await kubectl("get", "po", "--field-selector", "spec.nodeName=node-00001", "-o", "name") == "pod/a\n"
    everywhere = columns(await kubectl("get", "pods,nodes", "-A"))
    assert everywhere[0][0] == "NAMESPACE"
    assert "name: a\n" in await kubectl("get", "pod", "a", "-o", "yaml")
    assert (await kubectl.json("get", "pod", "a"))["kind"] == "Pod"
    assert await kubectl("get", "pod", "a", "-o", "jsonpath={.spec.nodeName}") == "node-00001"
    nodes = columns(await kubectl("get", "nodes"))
    assert nodes[1][:3] == ["node-00000", "Ready", "<none>"]
    assert "NotFound" in await kubectl.refused("get", "pod", "x")
    paged = await kubectl("get", "pods", "--chunk-size=1", "-o", "name")
    assert paged == "pod/a\npod/b\n"


async def test_get_watch(bare: DevServer, kubectl: Kubectl) -> None:
    await kubectl("run", "a", "--image=nginx:1")
    process = await kubectl.start("get", "pods", "-w", "-o", "wide")
    assert process.stdout is not None
    assert (await process.stdout.readline()).split()[0] == b"NAME"
    assert (await process.stdout.readline()).split()[6] == b"<none>"
    await bind(bare, "a", "node-00000")
    assert (await process.stdout.readline()).split()[6] == b"node-00000"
    process.terminate()
    await process.communicate()


async def test_describe(bare: DevServer, kubectl: Kubectl) -> None:
    await kubectl("run", "a", "--image=nginx:1")
    await bind(bare, "a", "node-00001")
    uid = await kubectl("get", "pod", "a", "-o", "jsonpath={.metadata.uid}")
    event = f"""
apiVersion: events.k8s.io/v1
kind: Event
metadata: {{name: e, namespace: default}}
eventTime: "2026-01-02T03:04:05.000006Z"
reportingController: kube-pyscheduler
reportingInstance: kube-pyscheduler-0
action: Binding
reason: Scheduled
type: Normal
note: Successfully assigned default/a to node-00001
regarding: {{apiVersion: v1, kind: Pod, namespace: default, name: a, uid: {uid}}}
"""
    await kubectl("create", "-f", "-", given=event)
    pod = await kubectl("describe", "pod", "a")
    assert "node-00001" in pod
    assert "Successfully assigned default/a to node-00001" in pod
    assert "kube-pyscheduler" in pod
    events = await kubectl("get", "events")
    assert columns(events)[0] == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert "Scheduled   pod/a" in events
    assert "Scheduled" in await kubectl("events", "--for", "pod/a")
    node = await kubectl("describe", "node", "node-00001")
    assert "Non-terminated Pods:" in node
    assert "default                     a" in node


async def test_create_commands(kubectl: Kubectl) -> None:
    for command in (
        "create namespace n",
        "create deployment d --image=nginx --replicas=2",
        "create configmap c --from-literal=a=b",
        "create secret generic s --from-literal=a=b",
        "create service clusterip d --tcp=80",
        "create job j --image=nginx",
        "create serviceaccount robot",
        "create role r --verb=get --resource=pods",
        "create rolebinding rb --role=r --serviceaccount=default:robot",
        "create priorityclass p --value=10",
        "create pdb b --selector=app=d --min-available=1",
        "create quota q --hard=pods=10",
        "expose deployment d --port=81 --name=e",
        "autoscale deployment d --max=3",
    ):
        await kubectl(*command.split())
    job = await kubectl.json("get", "job", "j")
    uid = job["metadata"]["uid"]
    assert job["spec"]["template"]["metadata"]["labels"]["batch.kubernetes.io/controller-uid"] == uid
    deployment = columns(await kubectl("get", "deployment", "d", "-o", "wide"))
    assert deployment[1] == ["d", "0/2", "0", "0", deployment[1][4], "nginx", "nginx", "app=d"]
    assert "AlreadyExists" in await kubectl.refused("create", "namespace", "n")
    token = await kubectl("create", "token", "robot")
    assert token.count(".") == 2


async def test_apply_on_the_clients_side(kubectl: Kubectl) -> None:
    assert await kubectl("apply", "-f", "-", given=DEPLOYMENT) == "deployment.apps/web created\n"
    assert await kubectl("apply", "-f", "-", given=DEPLOYMENT) == "deployment.apps/web unchanged\n"
    changed = DEPLOYMENT.replace("nginx:1", "nginx:2").replace(
        "labels: {app: web}}\nspec:\n  replicas", "labels: {}}\nspec:\n  replicas"
    )
    assert "+      - image: nginx:2" in (await kubectl.run("diff", "-f", "-", given=changed)).out
    assert await kubectl("apply", "-f", "-", given=changed) == "deployment.apps/web configured\n"
    deployment = await kubectl.json("get", "deployment", "web")
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:2"
    assert "labels" not in deployment["metadata"]
    misspelt = DEPLOYMENT.replace("replicas", "replicaz")
    assert 'unknown field "spec.replicaz"' in await kubectl.refused("apply", "-f", "-", given=misspelt)
    dry = await kubectl("apply", "--dry-run=server", "-f", "-", given=DEPLOYMENT)
    assert "configured (server dry run)" in dry


async def test_apply_on_the_servers_side(kubectl: Kubectl) -> None:
    serverside = ("apply", "--server-side", "-f", "-")
    assert "serverside-applied" in await kubectl(*serverside, given=DEPLOYMENT)
    assert "serverside-applied" in await kubectl(*serverside, given=DEPLOYMENT)
    await kubectl("scale", "deployment", "web", "--replicas=5")
    assert ".spec.replicas" in await kubectl.refused(*serverside, given=DEPLOYMENT)
    await kubectl(*serverside, "--force-conflicts", given=DEPLOYMENT)
    deployment = await kubectl.json("get", "deployment", "web")
    assert deployment["spec"]["replicas"] == 2
    assert len(deployment["spec"]["template"]["spec"]["containers"][0]["ports"]) == 1


async def test_replace(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", given=DEPLOYMENT)
    current = await kubectl("get", "deployment", "web", "-o", "yaml")
    await kubectl("replace", "-f", "-", given=current.replace("replicas: 2", "replicas: 3"))
    assert await kubectl("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}") == "3"
    assert "the object has been modified" in await kubectl.refused("replace", "-f", "-", given=current)
    assert "NotFound" in await kubectl.refused("replace", "-f", "-", given=DEPLOYMENT.replace("name: web", "name: x"))


async def test_patch_label_annotate(kubectl: Kubectl) -> None:
    await kubectl("run", "a", "--image=nginx:1")
    await kubectl("patch", "pod", "a", "-p", '{"spec":{"containers":[{"name":"a","image":"nginx:2"}]}}')
    await kubectl("patch", "pod", "a", "--type=merge", "-p", '{"metadata":{"labels":{"x":"1"}}}')
    await kubectl("patch", "pod", "a", "--type=json", "-p", '[{"op":"add","path":"/metadata/labels/y","value":"2"}]')
    await kubectl("patch", "pod", "a", "--subresource=status", "-p", '{"status":{"reason":"because"}}')
    await kubectl("label", "pod", "a", "z=3", "run-")
    await kubectl("annotate", "pod", "a", "n=4")
    pod = await kubectl.json("get", "pod", "a")
    assert pod["metadata"]["labels"] == {"x": "1", "y": "2", "z": "3"}
    assert pod["metadata"]["annotations"] == {"n": "4"}
    assert pod["spec"]["containers"][0]["image"] == "nginx:2"
    assert pod["status"]["reason"] == "because"
    refused = await kubectl.refused("patch", "pod", "a", "-p", '{"spec":{"nodeName":"n"}}')
    assert "pod updates may not change fields" in refused


async def test_taint_cordon_uncordon(kubectl: Kubectl) -> None:
    await kubectl("taint", "nodes", "node-00000", "gpu=yes:NoSchedule")
    await kubectl("cordon", "node-00000")
    spec = (await kubectl.json("get", "node", "node-00000"))["spec"]
    taints = {taint["key"] for taint in spec["taints"]}
    assert "gpu" in taints
    assert spec["unschedulable"] is True
    assert "Ready,SchedulingDisabled" in await kubectl("get", "nodes")
    await kubectl("taint", "nodes", "node-00000", "gpu-")
    await kubectl("uncordon", "node-00000")
    spec = (await kubectl.json("get", "node", "node-00000"))["spec"]
    assert not spec.get("unschedulable")
    assert "gpu" not in {taint["key"] for taint in spec.get("taints", ())}


async def test_delete(bare: DevServer, kubectl: Kubectl) -> None:
    for name in "abc":
        await kubectl("run", name, "--image=nginx:1")
    await bind(bare, "a", "node-00000")
    await kubectl("delete", "pod", "a", "--wait=false")
    assert "Terminating" in await kubectl("get", "pod", "a")
    await kubectl("delete", "pod", "a", "--grace-period=0", "--force")
    await kubectl("delete", "pods", "--all")
    assert await kubectl("get", "pods", "-o", "name") == ""
    await kubectl("create", "namespace", "n")
    await kubectl("-n", "n", "create", "configmap", "c")
    await kubectl("delete", "namespace", "n")
    assert "NotFound" in await kubectl.refused("get", "namespace", "n")
    assert "NotFound" in await kubectl.refused("delete", "pod", "x")


async def test_discovery_explain_and_rights(kubectl: Kubectl) -> None:
    resources = columns(await kubectl("api-resources", "--namespaced=true"))
    assert ["pods", "po", "v1", "true", "Pod"] in resources
    assert "scheduling.k8s.io/v1" in (await kubectl("api-versions")).split()
    explained = await kubectl("explain", "pod.spec.nodeName")
    assert "FIELD: nodeName <string>" in explained
    assert await kubectl("auth", "can-i", "create", "pods") == "yes\n"
    assert "*.*" in await kubectl("auth", "can-i", "--list")
    assert "kubernetes-admin" in await kubectl("auth", "whoami")
    assert "Server Version: v1.36.0" in await kubectl("version")


async def test_what_is_not_served_is_refused_clearly(kubectl: Kubectl) -> None:
    await kubectl("run", "a", "--image=nginx:1")
    assert "there are no logs" in await kubectl.refused("logs", "a")
    assert "nothing can be executed" in await kubectl.refused("exec", "a", "--", "true")
    assert "Metrics API not available" in await kubectl.refused("top", "nodes")
    unknown = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\n"
    assert "no matches for kind" in await kubectl.refused("apply", "-f", "-", given=unknown)


async def test_rights_of_others(session: aiohttp.ClientSession, tmp_path: Path) -> None:
    server = await serve(rbac=True, tls=True)
    kubectl = Kubectl(server, tmp_path)
    try:
        await kubectl("create", "role", "reader", "--verb=get,list", "--resource=pods")
        await kubectl("create", "rolebinding", "reader", "--role=reader", "--user=jane")
        assert await kubectl("auth", "can-i", "list", "pods", "--as=jane") == "yes\n"
        assert (await kubectl.run("auth", "can-i", "delete", "pods", "--as=jane")).out == "no\n"
        assert await kubectl("get", "pods", "--as=jane") == ""
        assert "Forbidden" in await kubectl.refused("get", "nodes", "--as=jane")
    finally:
        await server.stop()


@pytest.fixture
async def lively() -> AsyncIterator[DevServer]:
    """A server with two nodes and all controllers; pods stop at once."""
    server = await serve(controllers=Settings(stop_seconds=0))
    seed_nodes(server.registry, 2)
    yield server
    await server.stop()


async def running(kubectl: Kubectl, server: DevServer, *names: str) -> None:
    for index, name in enumerate(names):
        await kubectl("run", name, "--image=nginx:1", "--labels=app=web")
        await bind(server, name, f"node-0000{index % 2}")
    await kubectl("wait", "--for=condition=Ready", "--timeout=10s", *(f"pod/{name}" for name in names))


async def test_wait(lively: DevServer, tmp_path: Path) -> None:
    kubectl = Kubectl(lively, tmp_path)
    await kubectl("run", "a", "--image=nginx:1")
    waiting = asyncio.create_task(kubectl("wait", "--for=jsonpath={.status.phase}=Running", "--timeout=10s", "pod/a"))
    await bind(lively, "a", "node-00000")
    assert await waiting == "pod/a condition met\n"
    gone = asyncio.create_task(kubectl("wait", "--for=delete", "--timeout=10s", "pod/a"))
    await kubectl("delete", "pod", "a")
    await gone
    await kubectl("run", "b", "--image=nginx:1")
    late = await kubectl.refused("wait", "--for=condition=Ready", "--timeout=0s", "pod/b")
    assert "condition not met" in late or "timed out" in late


async def test_drain_honours_budgets(lively: DevServer, session: aiohttp.ClientSession, tmp_path: Path) -> None:
    kubectl = Kubectl(lively, tmp_path)
    await running(kubectl, lively, "a", "b")
    await kubectl("create", "pdb", "web", "--selector=app=web", "--min-available=1")
    await kubectl("wait", "--for=jsonpath={.status.disruptionsAllowed}=1", "--timeout=10s", "pdb/web")
    output = await kubectl("drain", "node-00000", "--force")
    assert "evicting pod default/a" in output
    assert "node/node-00000 drained" in output
    await kubectl("wait", "--for=jsonpath={.status.disruptionsAllowed}=0", "--timeout=10s", "pdb/web")
    held = await kubectl.refused("drain", "node-00001", "--force", "--timeout=1s")
    assert "Cannot evict pod as it would violate the pod's disruption budget." in held
    assert await kubectl("get", "pods", "-o", "name") == "pod/b\n"
    answer = await Api(lively, session).post(f"{PODS}/b/eviction", {"metadata": {"name": "b"}})
    assert answer.body["details"]["causes"][0]["reason"] == "DisruptionBudget"
    assert await kubectl("get", "nodes", "-o", "jsonpath={.items[*].spec.unschedulable}") == "true true"


async def test_rollout(lively: DevServer, tmp_path: Path) -> None:
    kubectl = Kubectl(lively, tmp_path)
    await kubectl("apply", "-f", "-", given=DEPLOYMENT)
    status = asyncio.create_task(kubectl("rollout", "status", "deployment/web", "--timeout=10s"))
    await kubectl("wait", "--for=create", "--timeout=10s", "pod", "-l", "app=web")
    for name in (await kubectl("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].metadata.name}")).split():
        await bind(lively, name, "node-00000")
    assert 'deployment "web" successfully rolled out' in await status
    assert columns(await kubectl("get", "deployment", "web"))[1][1] == "2/2"
    await kubectl("delete", "deployment", "web")
    await kubectl("wait", "--for=delete", "--timeout=10s", "pod", "-l", "app=web")
