"""Where the watches are behind the API server, and where cache and queue differ from what the watches told."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import numpy as np

from kube_pyscheduler.cache.cache import Cache
from kube_pyscheduler.objects.meta import Object, is_older
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.scheduler.ports import Listing, ObjectStore
from kube_pyscheduler.scheduling_queue.priority_queue import PriorityQueue

BEHIND = "watch_behind"


@dataclass(frozen=True, slots=True)
class Difference:
    """``what`` is wrong, for metrics; about the object of this ``kind`` and ``name``; ``here``: what we have, as it
    matters for whether this is the same difference as one seen before; ``note``: more, for people."""

    what: str
    kind: str
    name: str
    here: str = ""
    note: str = field(default="", compare=False)


def untold(kind: str, listed: Listing, known: ObjectStore) -> Iterator[Difference]:
    """What of ``listed`` the watch has not told. ``kind`` as in ``kind:``."""
    for key, theirs in listed.objects.items():
        ours = known.get(key)
        if ours is None:
            yield Difference(BEHIND, kind, key, note=f"version {theirs.version} is unknown")
        elif is_older(ours.metadata.resource_version, theirs.version):
            version = ours.metadata.resource_version
            yield Difference(BEHIND, kind, key, version, f"version {theirs.version} is unknown")


def behind(kind: str, listed: Listing, known: ObjectStore) -> Iterator[Difference]:
    """What the server has, or no longer has, and the watch has not told. ``listed``: all there is of the kind."""
    yield from untold(kind, listed, known)
    for ours in known:
        version = ours.metadata.resource_version
        if ours.key not in listed.objects and not is_older(listed.version, version):
            yield Difference(BEHIND, kind, ours.key, version, "it is gone")


def node_differences(nodes: ObjectStore, cache: Cache) -> Iterator[Difference]:
    """Where the rows of the node table are not those of ``nodes``, or the sums in them not those of their pods."""
    table = cache.table
    for node in nodes:
        row = table.row_of.get(node.name)
        held: Object | None = None if row is None else table.nodes[row]
        if held is None:
            yield Difference("node_missing", "Node", node.name)
        elif held.metadata.resource_version != node.metadata.resource_version:
            yield Difference("node_stale", "Node", node.name, held.metadata.resource_version)
    for row in table.live_rows().tolist():
        if nodes.get(table.names[row]) is None:
            yield Difference("node_redundant", "Node", table.names[row])
    for name, row in table.row_of.items():
        charged = np.zeros(len(table.requested), dtype=np.int64)
        for info in table.pods[row].values():
            for resource, amount in info.demand.columns(table.resources).items():
                charged[resource] += amount
        count = len(table.pods[row])
        if (charged != table.requested[:, row]).any() or count != table.pod_count[row]:
            note = f"{count} pods ask for {charged.tolist()}"
            yield Difference(
                "node_charge", "Node", name, f"{table.pod_count[row]}: {table.requested[:, row].tolist()}", note
            )


def pod_differences(
    pods: ObjectStore, cache: Cache, queue: PriorityQueue, schedulers: Collection[str]
) -> Iterator[Difference]:
    """Pods that are not where they should be, by what ``pods`` says. ``schedulers``: names of our profiles."""
    alive: dict[str, Pod] = {pod.metadata.uid: pod for pod in pods if isinstance(pod, Pod) and not pod.is_terminal}
    for uid, pod in alive.items():
        entry = cache.pod(uid)
        node = pod.spec.node_name
        if node and entry is None:
            yield Difference("pod_missing", "Pod", pod.key, uid, f"it is on {node}")
        elif node and entry is not None and (entry.node != node or entry.assumed):
            yield Difference("pod_elsewhere", "Pod", pod.key, uid, f"it is on {node}, here on {entry.node}")
        elif not node and entry is None and uid not in queue and not pod.is_terminating:
            if pod.spec.scheduler_name in schedulers:
                yield Difference("queue_missing", "Pod", pod.key, uid)
        elif not node and entry is not None and not entry.assumed:
            yield Difference("pod_redundant", "Pod", pod.key, uid, f"it has no node, here {entry.node}")
    for entry in cache.pods():
        if entry.info.uid not in alive:
            yield Difference(
                "pod_redundant", "Pod", entry.info.key, entry.info.uid, f"it is gone, here on {entry.node}"
            )
    for queued in queue:
        if queued.uid not in alive or alive[queued.uid].spec.node_name:
            yield Difference("queue_redundant", "Pod", queued.pod_info.key, queued.uid)
