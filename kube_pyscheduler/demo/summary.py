"""What is printed at the end of a demonstration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kube_pyscheduler.demo.daemon_metrics import Numbers
from kube_pyscheduler.demo.picture import RESOURCES, Load, Picture, why_waiting
from kube_pyscheduler.demo.verdict import SeparationResult, Verdict

PLAIN_WIDTH = 120
"""Columns where there is no terminal."""


@dataclass(frozen=True, slots=True)
class Pointers:
    """Where to look further: ``kubectl`` and ``kubeconfig`` are paths, ``metrics`` a URL, ``logs`` a folder."""

    kubectl: str
    kubeconfig: str
    metrics: str
    logs: str
    namespace: str


def make_console() -> Console:
    """For standard output: as wide as the terminal, or wide enough to read in a log."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PLAIN_WIDTH)


def print_summary(console: Console, picture: Picture, verdict: Verdict, numbers: Numbers) -> None:
    console.print(_pods(picture))
    console.print(_nodes(picture))
    console.print(_separations(verdict.separations))
    for remark in verdict.remarks:
        console.print(Text(f"Note: {remark}", style="yellow"))
    console.print(
        f"{numbers.decisions} decisions in {numbers.deciding * 1000:.0f} ms of deciding: "
        f"{numbers.decisions_a_second:.0f} a second. {numbers.scheduled} pods were bound, "
        f"{numbers.latency * 1000:.0f} ms after they appeared on the average."
    )
    for problem in verdict.problems:
        console.print(Text(f"Not as expected: {problem}", style="bold red"))


def print_pointers(console: Console, pointers: Pointers, *, stays: bool) -> None:
    """How to look further, now or another time."""
    command = f"{pointers.kubectl} --kubeconfig {pointers.kubeconfig} --namespace {pointers.namespace}"
    if not stays:
        console.print("To look around in it yourself: kube-pyscheduler demo --keep, and with the paths it prints")
        console.print(f"  kubectl --kubeconfig FILE --namespace {pointers.namespace} get pods -o wide")
        console.print("  curl http://127.0.0.1:PORT/metrics")
        return
    console.print("The cluster stays up until Ctrl-C. Look around:", style="bold")
    lines = (
        f"{command} get pods -o wide",
        f"{command} describe pod asks-too-much",
        f"{command} scale deployment storefront --replicas 12",
        f"curl {pointers.metrics}",
        f"tail -f {pointers.logs}/scheduler.log",
    )
    for line in lines:
        console.print(f"  {line}", soft_wrap=True)


def _pods(picture: Picture) -> Table:
    table = Table("pod", "phase", "node, or why it waits", title="Pods", title_justify="left")
    for pod in picture.pods:
        where = pod.spec.node_name or Text(why_waiting(pod), style="yellow")
        table.add_row(pod.name, pod.status.phase, where)
    return table


def _nodes(picture: Picture) -> Table:
    table = Table(title="Nodes: pods, and what they ask for of what there is", title_justify="left")
    table.add_column("node")
    table.add_column("zone")
    for heading in ("pods", "CPU", "memory, GiB", "GPU"):
        table.add_column(heading, justify="right")
    table.add_column("remarks")
    for load in picture.loads():
        shares = [_share(load, resource) for resource in RESOURCES]
        table.add_row(load.node.name, load.zone, str(len(load.pods)), *shares, load.remarks)
    return table


def _share(load: Load, resource: str) -> str:
    """Used and allocatable amount, "" for a resource that the node does not have."""
    if resource not in load.allocatable:
        return ""
    unit = 1000 * 2**30 if resource == "memory" else 1000
    return f"{load.used.get(resource, 0) / unit:.2f} / {load.allocatable[resource] / unit:g}"


def _separations(results: Sequence[SeparationResult]) -> Table:
    table = Table("never on one node", "pods and their nodes", "", title="Separation", title_justify="left")
    for result in results:
        pods = "\n".join(f"{pod.name} on {pod.spec.node_name}" for pod in result.pods)
        if result.together:
            outcome = Text("together: " + "; ".join(f"{a}, {b}" for a, b, _ in result.together), style="red")
        else:
            outcome = Text("apart", style="green")
        table.add_row(result.separation.title, pods, outcome)
    return table
