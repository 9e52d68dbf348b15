"""The time of one attempt that ends in preemption, on a cluster that is full of less important pods.

``python -m bench.preemption`` measures every kind of preemptor. Nothing comes of the attempts of the first table: each
finds the cluster as it was. The second table is a wave of preemptors, one after the other: each is promised its node,
its victims are gone at once, and it is tried again.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import click
import msgspec
import numpy as np
from rich.console import Console
from rich.table import Table

from bench.decisions import Handle
from bench.labels import HOSTNAME, ZONE
from bench.scenarios import Document
from kube_pyscheduler.cache.cache import Cache
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.config.load import load_profile
from kube_pyscheduler.engine.decision import Decision
from kube_pyscheduler.engine.engine import Engine
from kube_pyscheduler.framework.profile import build_profile
from kube_pyscheduler.objects import kinds
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.plugins import IN_TREE

CPU = 32000
"""Milli-CPU of a node."""


def _apart(app: str, key: str) -> Document:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def _spread() -> Document:
    selector = {"matchLabels": {"app": "high"}}
    constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    return {"topologySpreadConstraints": [constraint]}


PREEMPTORS: dict[str, Document] = {
    "plain": {},
    "apart from each other": _apart("high", HOSTNAME),
    "apart from some victims": _apart("low-0", HOSTNAME),
    "hard spread": _spread(),
    "every node in vain": _apart("low-0", ZONE),
}


class Crowd:
    """``per_node`` pods of priorities 0 to 4 fill each node."""

    def __init__(self, nodes: int, per_node: int, seed: int) -> None:
        self._rng = random.Random(seed)
        self._cache = Cache()
        self._handle = Handle()
        self._engine = Engine(self._cache.table, self._cache.listers, self._handle)
        self._profile = build_profile(load_profile({}), IN_TREE)
        self._made = 0
        for number in range(nodes):
            name = f"node-{number}"
            self._set(kinds.NODE, self._cache.set_node, _node(name, f"zone-{number % 10}"))
            for place in range(per_node):
                low = self._pod(CPU // per_node, self._rng.randrange(5), {}, f"low-{place}", name)
                self._cache.set_pod(low)
        self._engine.prepare([self._profile])

    def attempts(self, spec: Document, count: int) -> tuple[list[float], Decision]:
        """Seconds of attempts that change nothing, and the last decision."""
        times = []
        gc.collect()
        for _ in range(count):
            took, decision = self._attempt(PodInfo(self._pod(CPU // 2, 100, spec, "high")))
            times.append(took)
        return times, decision

    def wave(self, count: int) -> tuple[list[float], list[float]]:
        """Seconds of the attempts that preempt, and of those that find their place."""
        preempting, placing = [], []
        gc.collect()
        for _ in range(count):
            info = PodInfo(self._pod(CPU // 2, 100, {}, "high"))
            took, decision = self._attempt(info)
            preempting.append(took)
            result = decision.post_filter
            assert result is not None
            assert result.nominated
            self._handle.nominator.nominate(info, result.nominated)
            for victim in result.victims:
                self._cache.remove_pod(victim.uid)
            took, decision = self._attempt(info)
            placing.append(took)
            assert decision.node == result.nominated
            self._handle.nominator.drop(info.uid)
            self._cache.assume(info, decision.node)
        return preempting, placing

    def _attempt(self, info: PodInfo) -> tuple[float, Decision]:
        start = perf_counter()
        decision = self._engine.schedule(self._profile, info, self._rng)
        return perf_counter() - start, decision

    def _pod(self, cpu: int, priority: int, spec: Document, app: str, node: str = "") -> Pod:
        self._made += 1
        name = f"pod-{self._made}"
        container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": f"{cpu}m", "memory": "64Mi"}}}
        start = {"startTime": f"2026-01-01T00:{self._made % 60:02d}:00Z"} if node else {}
        document = {
            "metadata": {"name": name, "namespace": "bench", "uid": name, "labels": {"app": app}},
            "spec": {"priority": priority, "nodeName": node, "containers": [container], **spec},
            "status": start,
        }
        pod: Pod = kinds.POD.decoder.decode(msgspec.json.encode(document))
        return pod

    @staticmethod
    def _set(kind: kinds.Kind[Any], into: Callable[[Any], None], document: Document) -> None:
        into(kind.decoder.decode(msgspec.json.encode(document)))


def _node(name: str, zone: str) -> Document:
    return {
        "metadata": {"name": name, "labels": {HOSTNAME: name, ZONE: zone}},
        "status": {"allocatable": {"cpu": f"{CPU}m", "memory": "256Gi", "pods": "110"}},
    }


def _milliseconds(times: list[float]) -> tuple[str, str, str]:
    rest = times[1:]
    return tuple(f"{1000 * value:.2f}" for value in (times[0], median(rest), np.percentile(rest, 99)))  # type: ignore[return-value]


@click.command()
@click.option("--nodes", default=5000, show_default=True)
@click.option("--per-node", default=4, show_default=True, help="Less important pods on each node.")
@click.option("--attempts", default=40, show_default=True)
@click.option("--wave-nodes", default=500, show_default=True)
@click.option("--wave-per-node", default=40, show_default=True)
@click.option("--wave", default=500, show_default=True, help="Preemptors in the wave.")
@click.option("--seed", default=1, show_default=True)
def main(nodes: int, per_node: int, attempts: int, wave_nodes: int, wave_per_node: int, wave: int, seed: int) -> None:
    """Print both tables."""
    console = Console(width=110)
    crowd = Crowd(nodes, per_node, seed)
    table = Table(
        "preemptor", "first", "median", "p99", "victims", title=f"One attempt, ms: {nodes} nodes × {per_node}"
    )
    for name, spec in PREEMPTORS.items():
        times, decision = crowd.attempts(spec, attempts)
        victims = len(decision.post_filter.victims) if decision.post_filter else 0
        table.add_row(name, *_milliseconds(times), str(victims))
    console.print(table)
    crowd = Crowd(wave_nodes, wave_per_node, seed)
    title = f"A wave of {wave} preemptors, ms: {wave_nodes} nodes × {wave_per_node}"
    table = Table("attempt", "first", "median", "p99", "in all", title=title)
    for name, times in zip(("preempting", "placing"), crowd.wave(wave), strict=True):
        table.add_row(name, *_milliseconds(times), f"{1000 * sum(times):.0f}")
    console.print(table)


if __name__ == "__main__":
    main()
