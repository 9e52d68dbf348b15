"""Memory of the daemon while pods come, run and go.

    python -m bench.churn --pods 50000

Pods come in generations of ``--at-once``. Everything that real clusters never see twice is new in each generation:
names, a namespace, the labels of a job and selectors on them, sizes, host ports, claims, device claims and one node in
twenty. Of each generation some pods fit nowhere, and some are gated. When all that can run are bound they are deleted,
and once the daemon's own metrics say that it keeps no pod any more, the memory of its process is read. Growth is from
the 20 % mark to the end, between the medians of the generations around them: the allocator gives memory back in steps.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import click
import psutil
from rich.console import Console
from rich.table import Table

from bench.cluster import connect, create_all, delete_all, node
from kube_pyscheduler.transport.client import Client
from kube_pyscheduler.transport.requests import Request

BIN = Path(sys.executable).parent
METRICS = "http://127.0.0.1:10251/metrics"
POLL = 0.2
NODES = 100
REPLACED = 5
"""Nodes that are replaced in each generation."""

AROUND = 5
"""Generations that one figure is the median of."""

KEPT = ("scheduler_pending_pods", "scheduler_inflight_events", 'scheduler_cache_size{type="pods"}')
"""What must be nothing when there are no pods; each name may have further labels."""


@dataclass(frozen=True)
class Sample:
    pods: int
    seconds: float
    mib: float


@dataclass(frozen=True)
class Generation:
    """One lot of pods, all in a namespace of their own."""

    number: int
    size: int

    @property
    def namespace(self) -> str:
        return f"churn-{self.number:05d}"

    @property
    def job(self) -> str:
        return f"job-{self.number:05d}"

    def claims(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Paths, and volumes with claims that are bound to them."""
        for index in range(0, self.size, 10):
            name = f"{self.job}-{index}"
            size = {"storage": "1Gi"}
            volume = {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": name},
                "spec": {
                    "capacity": size,
                    "accessModes": ["ReadWriteOnce"],
                    "csi": {"driver": "churn.example.com", "volumeHandle": name},
                    "claimRef": {"namespace": self.namespace, "name": name},
                },
                "status": {"phase": "Bound"},
            }
            claim = {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {
                    "name": name,
                    "namespace": self.namespace,
                    "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
                },
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": size},
                    "volumeName": name,
                    "storageClassName": "",
                },
                "status": {"phase": "Bound"},
            }
            yield "/api/v1/persistentvolumes", volume
            yield f"/api/v1/namespaces/{self.namespace}/persistentvolumeclaims", claim

    def pods(self) -> list[dict[str, Any]]:
        return [self._pod(index) for index in range(self.size)]

    def waiting(self) -> int:
        """Pods that will get no node."""
        return sum(index % 20 in (7, 8) for index in range(self.size))

    def _pod(self, index: int) -> dict[str, Any]:
        labels = {
            "batch.kubernetes.io/job-name": self.job,
            "batch.kubernetes.io/job-completion-index": str(index),
            f"example.com/{self.job}": "yes",
        }
        mine = {"matchLabels": {"batch.kubernetes.io/job-name": self.job}}
        zone = "topology.kubernetes.io/zone"
        requests = {"cpu": f"{10 + self.number % 50}m", "memory": f"{1_000_000 + self.number * 1000 + index}"}
        container: dict[str, Any] = {
            "name": "main",
            "image": f"example/{self.job}",
            "resources": {"requests": requests},
        }
        spec: dict[str, Any] = {
            "schedulerName": "kube-pyscheduler",
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
        }
        match index % 20:
            case 0 | 10:
                spec["volumes"] = [
                    {"name": "data", "persistentVolumeClaim": {"claimName": f"{self.job}-{index - index % 10}"}}
                ]
            case 1:
                constraint = {"maxSkew": 2, "topologyKey": zone, "labelSelector": mine}
                spec["topologySpreadConstraints"] = [{**constraint, "whenUnsatisfiable": "DoNotSchedule"}]
            case 2:
                term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": mine}
                spec["affinity"] = {
                    "podAntiAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 9, "podAffinityTerm": term}]
                    }
                }
            case 3:
                term = {"topologyKey": zone, "labelSelector": mine}
                spec["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
            case 4:
                number = 10_000 + (self.number * 37 + index) % 20_000
                container["ports"] = [{"containerPort": number, "hostPort": number}]
            case 5:
                expression = {"key": zone, "operator": "NotIn", "values": [f"zone-of-{self.job}"]}
                terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
                spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
            case 6:
                spec["tolerations"] = [{"key": f"example.com/{self.job}", "operator": "Exists"}]
            case 7:
                spec["nodeSelector"] = {f"example.com/{self.job}": "nowhere"}
            case 8:
                spec["schedulingGates"] = [{"name": f"example.com/{self.job}"}]
            case _:
                pass
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{self.job}-{index}", "namespace": self.namespace, "labels": labels},
            "spec": spec,
        }


def read_metrics() -> dict[str, float]:
    with urllib.request.urlopen(METRICS, timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line and line[0] != "#")}


def kept() -> dict[str, float]:
    """What the daemon still keeps of pods."""
    return {name: value for name, value in read_metrics().items() if name.startswith(KEPT) and value}


async def until_bound(client: Client, namespace: str, wanted: int) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods?fieldSelector=spec.nodeName!%3D"
    while len(json.loads(await client.send(Request("GET", path)))["items"]) < wanted:
        await asyncio.sleep(POLL)


async def play(client: Client, generation: Generation) -> None:
    """Everything of this generation comes and goes."""
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": generation.namespace}}
    await create_all(client, "/api/v1/namespaces", [space])
    extra = list(generation.claims())
    for path, item in extra:
        await create_all(client, path, [item])
    pods = f"/api/v1/namespaces/{generation.namespace}/pods"
    await create_all(client, pods, generation.pods())
    await until_bound(client, generation.namespace, generation.size - generation.waiting())
    await client.send(Request("DELETE", pods), deadline=300)
    await delete_all(client, (f"{path}/{item['metadata']['name']}" for path, item in extra))
    await replace_nodes(client, generation.number)
    await client.send(Request("DELETE", f"/api/v1/namespaces/{generation.namespace}"))


async def replace_nodes(client: Client, generation: int) -> None:
    old = range(generation * REPLACED, (generation + 1) * REPLACED)
    await delete_all(client, (f"/api/v1/nodes/{node(number)['metadata']['name']}" for number in old))
    await create_all(client, "/api/v1/nodes", (node(number + NODES) for number in old))


async def until_empty() -> None:
    while kept():
        await asyncio.sleep(POLL)


@asynccontextmanager
async def running(*command: str, log: Path) -> AsyncIterator[psutil.Process]:
    with log.open("wb") as sink:
        process = subprocess.Popen([str(BIN / "kube-pyscheduler"), *command], stdout=sink, stderr=subprocess.STDOUT)
    try:
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(60)


async def run(pods: int, at_once: int, folder: Path) -> list[Sample]:
    kubeconfig = folder / "kubeconfig"
    samples = []
    async with running("devserver", f"--kubeconfig-out={kubeconfig}", "--without=all", log=folder / "server.log"):
        while not kubeconfig.exists():
            await asyncio.sleep(POLL)
        async with (
            connect(kubeconfig) as client,
            running(
                f"--kubeconfig={kubeconfig}",
                "--leader-elect=false",
                "--kube-api-qps=-1",
                "--secure-port=0",
                "--port=10251",
                "--v=0",
                log=folder / "scheduler.log",
            ) as daemon,
        ):
            await create_all(client, "/api/v1/nodes", (node(number) for number in range(NODES)))
            start = time.perf_counter()
            for number in range(pods // at_once):
                await play(client, Generation(number, at_once))
                await until_empty()
                samples.append(
                    Sample((number + 1) * at_once, time.perf_counter() - start, daemon.memory_info().rss / 2**20)
                )
                if number % 10 == 9:
                    click.echo(f"{samples[-1].pods} pods: {samples[-1].mib:.1f} MiB", err=True)
    return samples


def growth(samples: list[Sample]) -> tuple[float, float]:
    """MiB around the 20 % mark, and at the end."""
    mark = len(samples) // 5
    around = samples[max(0, mark - AROUND // 2) : mark + AROUND // 2 + 1]
    return median(sample.mib for sample in around), median(sample.mib for sample in samples[-AROUND:])


@click.command()
@click.option("--pods", default=50_000, show_default=True)
@click.option("--at-once", default=500, show_default=True)
def main(pods: int, at_once: int) -> None:
    """Let pods come and go, and say what that does to the daemon's memory."""
    with tempfile.TemporaryDirectory() as name:
        samples = asyncio.run(run(pods, at_once, Path(name)))
    table = Table("pods so far", "seconds", "MiB", title=f"{pods} pods, {at_once} at once")
    for sample in samples[len(samples) // 10 - 1 :: max(1, len(samples) // 10)]:
        table.add_row(str(sample.pods), f"{sample.seconds:.0f}", f"{sample.mib:.1f}")
    console = Console()
    console.print(table)
    before, after = growth(samples)
    console.print(f"{before:.1f} MiB around 20 %, {after:.1f} MiB at the end: {(after / before - 1) * 100:+.1f} %")


if __name__ == "__main__":
    main()
