"""Pods a second and CPU a pod, end to end: a devserver (or any API server), pods waiting, then the daemon.

    python -m bench.throughput --nodes 5000 --pods 5000
    python -m bench.throughput --kubeconfig admin.kubeconfig --versus '/path/kube-scheduler --config sched.yaml'

CPU is user and system time of the whole scheduler process from its start to the last binding. With ``--versus`` another
scheduler then does the same work on the same API server, and the ratio is printed.
"""

from __future__ import annotations

import asyncio
import shlex
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import click
import psutil
from rich.console import Console
from rich.table import Table

from bench.cluster import connect, count_bound, create_all, node, pod
from bench.shapes import SHAPES
from kube_pyscheduler.transport.client import Client
from kube_pyscheduler.transport.requests import Request

BIN = Path(sys.executable).parent
POLL = 0.5


@dataclass(frozen=True)
class Outcome:
    """One scheduler's run over ``pods`` pods."""

    name: str
    pods: int
    seconds: float
    cpu_seconds: float
    peak_mib: float
    rows_a_decision: float | None

    @property
    def cpu_ms_a_pod(self) -> float:
        return self.cpu_seconds / self.pods * 1000


async def measure(client: Client, name: str, command: list[str], pods: int, metrics: str | None, log: Path) -> Outcome:
    """Start a scheduler, wait until all pods are bound, stop it."""
    with log.open("wb") as sink:
        process = subprocess.Popen(command, stdout=sink, stderr=subprocess.STDOUT)
        watched = psutil.Process(process.pid)
        start = time.perf_counter()
        peak = 0
        try:
            while True:
                await asyncio.sleep(POLL)
                if process.poll() is not None:
                    raise click.ClickException(f"{name} ended:\n{log.read_text(encoding='utf-8')[-4000:]}")
                peak = max(peak, watched.memory_info().rss)
                if await count_bound(client) >= pods:
                    break
            seconds = time.perf_counter() - start
            times = watched.cpu_times()
            rows = _rows(metrics) if metrics else None
            return Outcome(name, pods, seconds, times.user + times.system, peak / 2**20, rows)
        finally:
            process.terminate()
            process.wait(30)


def _rows(url: str) -> float | None:
    """Rows judged a decision, without the first pass over all nodes, from the daemon's own metrics."""
    with urllib.request.urlopen(url, timeout=10) as answer:
        text = answer.read().decode()
    values = {
        line.split()[0]: float(line.split()[1]) for line in text.splitlines() if line and not line.startswith("#")
    }
    decisions = values.get("scheduler_decisions_total")
    repaired = values.get("scheduler_rows_judged_total")
    if not decisions or repaired is None:
        return None
    return (repaired - values.get("scheduler_rows_filled_total", 0.0)) / decisions


async def remove_pods(client: Client) -> None:
    await client.send(Request("DELETE", "/api/v1/namespaces/bench/pods"), deadline=300)
    while await count_bound(client):
        await asyncio.sleep(POLL)


async def run(kubeconfig: Path, nodes: int, pods: int, workload: str, versus: str | None, folder: Path) -> None:
    console = Console()
    async with connect(kubeconfig) as client:
        names = [("kube-pyscheduler", "kube-pyscheduler")]
        if versus:
            names.append((Path(shlex.split(versus)[0]).name, "default-scheduler"))
        await create_all(
            client,
            "/api/v1/namespaces",
            [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bench"}}],
        )
        await create_all(client, "/api/v1/nodes", (node(number) for number in range(nodes)))
        outcomes = []
        for name, scheduler in names:
            path = "/api/v1/namespaces/bench/pods"
            await create_all(client, path, (pod(n, scheduler, SHAPES[workload]) for n in range(pods)))
            if scheduler == "kube-pyscheduler":
                command = [
                    str(BIN / "kube-pyscheduler"),
                    f"--kubeconfig={kubeconfig}",
                    "--leader-elect=false",
                    "--kube-api-qps=-1",
                    "--secure-port=0",
                    "--port=10251",
                    "--v=0",
                ]
                metrics: str | None = "http://127.0.0.1:10251/metrics"
            else:
                command, metrics = shlex.split(versus or ""), None
            outcomes.append(await measure(client, name, command, pods, metrics, folder / f"{name}.log"))
            await remove_pods(client)
    show(console, outcomes, nodes, workload)


def show(console: Console, outcomes: list[Outcome], nodes: int, workload: str) -> None:
    title = f"{outcomes[0].pods} {workload} pods on {nodes} nodes"
    table = Table("scheduler", "pods/s", "CPU ms/pod", "peak MiB", "rows/decision", title=title)
    for outcome in outcomes:
        rows = "" if outcome.rows_a_decision is None else f"{outcome.rows_a_decision:.2f}"
        table.add_row(
            outcome.name,
            f"{outcome.pods / outcome.seconds:.0f}",
            f"{outcome.cpu_ms_a_pod:.2f}",
            f"{outcome.peak_mib:.0f}",
            rows,
        )
    console.print(table)
    if len(outcomes) == 2:
        ours, theirs = outcomes
        speed, cpu = theirs.seconds / ours.seconds, ours.cpu_ms_a_pod / theirs.cpu_ms_a_pod
        console.print(f"pods/s {speed:.2f} : 1, CPU a pod {cpu:.2f} : 1")


@click.command()
@click.option("--nodes", default=5000, show_default=True)
@click.option("--pods", default=5000, show_default=True)
@click.option("--workload", type=click.Choice(list(SHAPES)), default="basic", show_default=True)
@click.option(
    "--kubeconfig",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="An API server to use instead of a devserver; it gets nodes and a namespace `bench`.",
)
@click.option("--versus", help="Command of another scheduler, for pods of default-scheduler.")
def main(nodes: int, pods: int, workload: str, kubeconfig: Path | None, versus: str | None) -> None:
    """Measure the daemon end to end."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server: subprocess.Popen[bytes] | None = None
        if kubeconfig is None:
            kubeconfig = folder / "kubeconfig"
            server = subprocess.Popen(
                [str(BIN / "kube-pyscheduler"), "devserver", f"--kubeconfig-out={kubeconfig}", "--without=all"],
                stdout=subprocess.DEVNULL,
            )
        try:
            while not kubeconfig.exists():
                time.sleep(POLL)
            asyncio.run(run(kubeconfig, nodes, pods, workload, versus, folder))
        finally:
            if server is not None:
                server.terminate()
                server.wait(30)


if __name__ == "__main__":
    main()
