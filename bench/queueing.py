"""The CPU time of everything around decisions and requests: queue, scheduling loop, assume, binding, watch events.

``python -m bench.queueing`` takes pods from their first watch event to their last with a decision that costs nothing
and a binder that answers at once, and then sends events past pods that wait for something else.
"""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import Callable
from dataclasses import replace
from time import process_time
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.table import Table

from kube_pyscheduler.cache.cache import Cache
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.config.load import load_profile
from kube_pyscheduler.daemon.metrics import Metrics
from kube_pyscheduler.engine.decision import Decision
from kube_pyscheduler.framework.cluster_event import (
    EVENT_ASSIGNED_POD_DELETE,
)
from kube_pyscheduler.framework.cycle_state import CycleState
from kube_pyscheduler.framework.interfaces import CycleContext
from kube_pyscheduler.framework.profile import Profile, build_profile
from kube_pyscheduler.framework.status import SUCCESS
from kube_pyscheduler.objects import kinds
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.plugins import IN_TREE
from kube_pyscheduler.scheduler.ports import BindOutcome, BindResult
from kube_pyscheduler.scheduler.scheduler import Ports, Scheduler
from kube_pyscheduler.scheduling_queue.priority_queue import PriorityQueue

NODES = 1000


class World:
    """All ports: every Binding succeeds, nothing else is asked for."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.events = 0

    async def bind(self, pod: Pod, node: str, is_free: Callable[[], bool]) -> BindResult:
        return BindResult(BindOutcome.BOUND)

    def event(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None:
        self.events += 1

    def get(self, key: str) -> Pod | None:
        return self.pods.get(key)

    def __iter__(self) -> Any:
        return iter(self.pods.values())

    async def patch_status(self, pod: Pod, body: dict[str, Any]) -> None:
        return None

    def ports(self) -> Ports:
        anything: Any = self
        return Ports(anything, self.patch_status, anything, Metrics(), *(anything,) * 5)


def make_pods(
    count: int, *, uid: str = "uid", cpu: Callable[[int], str] = lambda _number: "100m", **spec: Any
) -> list[Pod]:
    documents = (
        {
            "metadata": {
                "name": f"p{number}",
                "namespace": "default",
                "uid": f"{uid}-{number}",
                "resourceVersion": str(number + 1),
                "labels": {"app": "web"},
            },
            "spec": {
                "schedulerName": "kube-pyscheduler",
                "priority": 0,
                "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu(number), "memory": "500Mi"}}}],
                **spec,
            },
        }
        for number in range(count)
    )
    return [kinds.POD.decoder.decode(msgspec.json.encode(document)) for document in documents]


def bound(pod: Pod, node: str) -> Pod:
    meta = msgspec.structs.replace(pod.metadata, resource_version=f"9{pod.metadata.resource_version}")
    return msgspec.structs.replace(pod, metadata=meta, spec=msgspec.structs.replace(pod.spec, node_name=node))


def default_profile() -> Profile:
    return build_profile(replace(load_profile({}), scheduler_name="kube-pyscheduler"), IN_TREE)


async def whole_way(count: int) -> dict[str, float]:
    """Seconds of CPU by stage, for all pods."""
    world = World()
    profile = default_profile()
    names = [f"n{number}" for number in range(NODES)]
    rng = random.Random(1)

    def decide(_profile: Profile, _info: PodInfo) -> Decision:
        return Decision(status=SUCCESS, ctx=ctx, node=names[rng.randrange(NODES)])

    scheduler = Scheduler({profile.name: profile}, world.ports(), rng=rng, decide=decide)
    ctx = CycleContext(scheduler.cache.table, scheduler.cache.listers, CycleState(), scheduler._handle, rng)
    for name in names:
        allocatable = {"cpu": "1000", "memory": "1000Gi", "pods": "1000000"}
        document = {"metadata": {"name": name}, "status": {"allocatable": allocatable}}
        scheduler.handle("Node", None, kinds.NODE.decoder.decode(msgspec.json.encode(document)))
    pods = make_pods(count)
    gc.collect()
    gc.freeze()
    scheduler.start()
    spent = {}
    start = process_time()
    for pod in pods:
        world.pods[pod.key] = pod
        scheduler.handle("Pod", None, pod)
    spent["watch event to queue"] = process_time() - start
    start = process_time()
    while world.events < count:
        await asyncio.sleep(0)
    spent["pop, assume, bind, say so"] = process_time() - start
    after = [bound(pod, scheduler.cache.pod(pod.uid).node) for pod in pods]  # type: ignore[union-attr]
    start = process_time()
    for pod, newer in zip(pods, after, strict=True):
        world.pods[pod.key] = newer
        scheduler.handle("Pod", pod, newer)
    spent["confirmation by the watch"] = process_time() - start
    await scheduler.stop()
    return spent


def waiting(kind: str, count: int) -> tuple[PriorityQueue, Callable[[], None]]:
    """A queue with so many pods that wait, and an event that helps none of them: the end of a small pod on a node that
    others fill."""
    profile = default_profile()
    cache = Cache()
    queue = PriorityQueue({profile.name: profile}, cache.listers, observer=Metrics())
    document = {"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "1", "memory": "64Gi", "pods": "110"}}}
    cache.set_node(kinds.NODE.decoder.decode(msgspec.json.encode(document)))
    for number in range(9):
        cache.set_pod(bound(make_pods(1, uid=f"there-{number}")[0], "n1"))
    refused_by = "NodeResourcesFit" if kind.startswith("refused, events of wanted") else "NodeName"
    pods = make_pods(count, cpu=lambda number: f"{2000 + number % KINDS[kind]}m", **GATES.get(kind, {}))
    for pod in pods:
        queue.add(pod, 0.0)
        if kind not in GATES:
            queued = queue.pop(0.0)
            assert queued is not None
            queued.unschedulable_plugins = frozenset({refused_by})
            queue.add_unschedulable(queued, 0.0)
    gone = bound(make_pods(1, uid="gone")[0], "n1")
    return queue, lambda: queue.move_all(EVENT_ASSIGNED_POD_DELETE, gone, None, 1.0)


KINDS = {
    "gated": 1,
    "refused, events of other kinds": 1,
    "refused, events of wanted kinds, 1 template": 1,
    "refused, events of wanted kinds, 100 templates": 100,
}
"""Kind of waiting pods → how many templates they are made from."""

GATES: dict[str, dict[str, Any]] = {"gated": {"schedulingGates": [{"name": "example.com/hold"}]}}


@click.command()
@click.option("--pods", default=10_000, show_default=True)
@click.option("--events", default=1_000, show_default=True)
def main(pods: int, events: int) -> None:
    """Measure and print."""
    console = Console()
    table = Table("stage", "ms CPU a pod", title=f"{pods} pods")
    spent = asyncio.run(whole_way(pods))
    for stage, seconds in spent.items():
        table.add_row(stage, f"{1000 * seconds / pods:.4f}")
    table.add_row("all", f"{1000 * sum(spent.values()) / pods:.4f}")
    console.print(table)
    table = Table("pods that wait", "µs CPU an event", title=f"{pods} pods, {events} events that help nobody")
    for kind in KINDS:
        queue, happen = waiting(kind, pods)
        start = process_time()
        for _ in range(events):
            happen()
        seconds = process_time() - start
        assert queue.pending().active == 0
        table.add_row(kind, f"{1e6 * seconds / events:.1f}")
    console.print(table)


if __name__ == "__main__":
    main()
