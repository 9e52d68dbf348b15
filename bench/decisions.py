"""The time of one scheduling decision, all nodes judged and scored: cache and engine alone, no API server.

``python -m bench.decisions`` measures every scenario. Pods come from a number of templates in random order; each
decision is assumed; every 50 decisions a bound pod is deleted and a node changes its zone. The first decision for a
template is *cold*, all others are *warm*.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter, time
from typing import Any

import click
import msgspec
import numpy as np
from rich.console import Console
from rich.table import Table

from bench.labels import HOSTNAME, ZONE
from bench.scenarios import SCENARIOS, Scenario
from kube_pyscheduler.cache.cache import Cache
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.config.load import load_profile
from kube_pyscheduler.engine.engine import Engine
from kube_pyscheduler.framework.handle import Work
from kube_pyscheduler.framework.profile import build_profile
from kube_pyscheduler.objects import kinds
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.plugins import IN_TREE
from kube_pyscheduler.scheduling_queue.nominator import Nominator

ZONES = 10
CHANGE_EVERY = 50
"""Decisions between two changes of the cluster."""


@dataclass(slots=True)
class Times:
    """Seconds of each decision, and of each assume; rows judged by each warm decision."""

    cold: list[float] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)
    assume: list[float] = field(default_factory=list)
    judged: list[int] = field(default_factory=list)
    failed: int = 0


class Handle:
    """A scheduling handle of a scheduler where nothing waits."""

    def __init__(self) -> None:
        self.nominator = Nominator()

    def waiting_pod(self, uid: str) -> None:
        return None

    def waiting_pods(self) -> list[Any]:
        return []

    def activate(self, pods: list[Pod]) -> None:
        return None

    def later(self, what: str, pod: Pod | None, work: Work) -> None:
        return None

    def wall_time(self) -> float:
        return time()


class Bench:
    """One cluster and one scenario."""

    def __init__(self, scenario: Scenario, nodes: int, pods: int, templates: int, seed: int) -> None:
        self._scenario = scenario
        self._templates = templates
        self._rng = random.Random(seed)
        self._cache = Cache()
        handle = Handle()
        self._engine = Engine(self._cache.table, self._cache.listers, handle)
        self._profile = build_profile(load_profile({}), IN_TREE)
        self._made = 0
        self._nodes = [self._node(number, number % ZONES) for number in range(nodes)]
        for node in self._nodes:
            self._cache.set_node(node)
        scenario.prepare(self._cache)
        self._bound: list[str] = []
        for _ in range(pods):
            pod = self._pod(self._rng.randrange(templates), self._rng.choice(self._nodes).name)
            self._cache.set_pod(pod)
            self._bound.append(pod.uid)
        self._engine.prepare([self._profile])
        for _ in range(scenario.promised):
            pod = self._pod(self._rng.randrange(templates))
            handle.nominator.nominate(PodInfo(pod), self._rng.choice(self._nodes).name)
        self._engine.prepare([self._profile])

    def run(self, decisions: int) -> Times:
        """Decide and assume so many times."""
        times = Times()
        seen: set[int] = set()
        gc.collect()
        gc.freeze()
        for count in range(decisions):
            if count % CHANGE_EVERY == CHANGE_EVERY - 1:
                self._change()
            template = self._rng.randrange(self._templates)
            info = PodInfo(self._pod(template))
            start = perf_counter()
            decision = self._engine.schedule(self._profile, info, self._rng)
            if decision.node is not None:
                for plugin in self._profile.reserve:
                    plugin.reserve(decision.ctx, info, decision.node)
            took = perf_counter() - start
            if template in seen:
                times.warm.append(took)
                times.judged.append(decision.rows_judged)
            else:
                times.cold.append(took)
                seen.add(template)
            if decision.node is None:
                times.failed += 1
                continue
            start = perf_counter()
            self._cache.assume(info, decision.node)
            times.assume.append(perf_counter() - start)
            self._scenario.company.bound(self._cache, info.pod, decision)
            self._bound.append(info.uid)
        gc.unfreeze()
        return times

    def _change(self) -> None:
        position = self._rng.randrange(len(self._bound))
        self._bound[position], self._bound[-1] = self._bound[-1], self._bound[position]
        self._cache.remove_pod(self._bound[-1])
        self._scenario.company.gone(self._cache, self._bound.pop())
        self._cache.set_node(self._node(self._rng.randrange(len(self._nodes)), self._rng.randrange(ZONES)))

    @staticmethod
    def _node(number: int, zone: int) -> Node:
        name = f"node-{number}"
        document = {
            "metadata": {
                "name": name,
                "labels": {HOSTNAME: name, ZONE: f"zone-{zone}", "disk": ("ssd", "nvme", "hdd")[number % 3]},
            },
            "status": {"allocatable": {"cpu": "32", "memory": "256Gi", "pods": "110"}},
        }
        node: Node = kinds.NODE.decoder.decode(msgspec.json.encode(document))
        return node

    def _pod(self, template: int, node: str = "") -> Pod:
        self._made += 1
        name = f"pod-{self._made}"
        # No two templates ask for the same, so none of them profits from what was found out for another.
        requests = {"cpu": f"{100 + template}m", "memory": f"{256 + template}Mi"}
        document = {
            "metadata": {
                "name": name,
                "namespace": "bench",
                "uid": name,
                "labels": {"app": f"app-{template}", "tier": f"tier-{template % 5}"},
            },
            "spec": {
                "schedulerName": "default-scheduler",
                "priority": 0,
                "nodeName": node,
                "containers": [{"name": "main", "image": "app:1", "resources": {"requests": requests}}],
                **self._scenario.spec(template),
            },
        }
        self._scenario.company.before(self._cache, template, document)
        pod: Pod = kinds.POD.decoder.decode(msgspec.json.encode(document))
        return pod


def report(results: Iterable[tuple[str, Times]], title: str) -> Table:
    """One row a scenario; times in milliseconds."""
    table = Table(title=title)
    table.add_column("scenario")
    for head in ("warm median", "warm p99", "cold median", "cold p99", "assume median", "rows judged", "unplaced"):
        table.add_column(head, justify="right")
    for name, times in results:
        table.add_row(
            name,
            *(_milliseconds(value) for value in (median(times.warm), _p99(times.warm))),
            *(_milliseconds(value) for value in (median(times.cold), _p99(times.cold))),
            _milliseconds(median(times.assume)) if times.assume else "-",
            f"{median(times.judged):.0f}",
            str(times.failed),
        )
    return table


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.3f}"


def _p99(times: list[float]) -> float:
    return float(np.percentile(times, 99))


@click.command()
@click.argument("names", nargs=-1, metavar="[SCENARIO]...")
@click.option("--nodes", default=5000, show_default=True)
@click.option("--pods", default=20000, show_default=True, help="Pods on nodes at the start.")
@click.option("--templates", default=200, show_default=True)
@click.option("--decisions", default=3000, show_default=True)
@click.option("--seed", default=1, show_default=True)
def main(names: tuple[str, ...], nodes: int, pods: int, templates: int, decisions: int, seed: int) -> None:
    """Measure the named SCENARIOs, or all."""
    known = {scenario.name: scenario for scenario in SCENARIOS}
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise click.BadParameter(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}", param_hint="SCENARIO")
    results = [(name, Bench(known[name], nodes, pods, templates, seed).run(decisions)) for name in names or known]
    title = f"One decision, in ms: {nodes} nodes, {pods} pods, {templates} templates, {decisions} decisions"
    Console(width=130).print(report(results, title))


if __name__ == "__main__":
    main()
