"""How everything must be once nothing goes wrong any more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from kube_pyscheduler.devserver.resources import builtin
from kube_pyscheduler.objects import kinds
from kube_pyscheduler.objects.kinds import Kind
from kube_pyscheduler.scheduler.scheduler import Scheduler
from tests.clusters import Cluster
from tests.faults.ledger import PAPER, version_of
from tests.faults.world import Daemon, World, allocatable, is_over

LISTERS: dict[str, tuple[str, Kind[Any]]] = {
    "namespaces": ("namespaces", kinds.NAMESPACE),
    "persistentvolumes": ("persistent_volumes", kinds.PERSISTENT_VOLUME),
    "persistentvolumeclaims": ("persistent_volume_claims", kinds.PERSISTENT_VOLUME_CLAIM),
    "storageclasses.storage.k8s.io": ("storage_classes", kinds.STORAGE_CLASS),
}
"""What the server calls it → its lister, and how it is read."""


def problems(world: World) -> list[str]:
    """What is not (yet) as it should be."""
    leader = world.leader
    if leader is None or leader.scheduler is None:
        return ["nobody leads"]
    found = [*_unrest(leader.scheduler), *leader.ledger.open_entries()]
    for daemon in world.daemons:
        if daemon.scheduler is None:
            found.append(f"{daemon.name} does not run")
        else:
            found.extend(f"{daemon.name}: {problem}" for problem in _untruths(world, daemon.scheduler))
    # What is asked of a fresh engine costs more than all the rest.
    return found or list(_stuck(world, leader))


def _unrest(scheduler: Scheduler) -> Iterator[str]:
    """Work that is begun and not done."""
    queue = scheduler.queue
    rest = {
        "active": queue.pending().active,
        "in flight": len(queue.in_flight),
        "events kept": queue.in_flight.event_count,
        "binding": len(scheduler.bindings),
        "held by Permit": len(scheduler.waiting),
        "status patches": len(scheduler.status),
        "assumed": scheduler.cache.counts()["assumed_pods"],
    }
    yield from (f"{count} {what}" for what, count in rest.items() if count)


def _untruths(world: World, scheduler: Scheduler) -> Iterator[str]:
    """Where the cache, the queue and the promises differ from the server."""
    cache, queue = scheduler.cache, scheduler.queue
    pods = {pod["metadata"]["uid"]: pod for pod in world.pods() if not is_over(pod)}
    on_nodes = {uid: pod["spec"]["nodeName"] for uid, pod in pods.items() if pod["spec"].get("nodeName")}
    yield from _differences("pods in the cache", on_nodes, {entry.info.uid: entry.node for entry in cache.pods()})
    waiting = {uid: "" for uid, pod in pods.items() if uid not in on_nodes and not _is_ending(pod)}
    yield from _differences("pods in the queue", waiting, {queued.uid: "" for queued in queue})
    table = cache.table
    ours = {name: int(table.allocatable[0, row]) for name, row in table.row_of.items() if table.alive[row]}
    yield from _differences("nodes", {node["metadata"]["name"]: allocatable(node) for node in world.nodes()}, ours)
    used = {name: int(table.requested[0, table.row_of[name]]) for name in ours}
    yield from _differences("use of nodes", {name: world.used(name) for name in ours}, used)
    promised = {info.uid for node in queue.nominator.nodes() for info in queue.nominator.nominated_on(node)}
    yield from (f"a promise to {uid}, which does not wait" for uid in promised - set(waiting))


def _differences(what: str, true: dict[str, Any], ours: dict[str, Any]) -> Iterator[str]:
    for key in true.keys() | ours.keys():
        if true.get(key) != ours.get(key) or (key in true) != (key in ours):
            yield f"{what}: {key} is {true.get(key)!r} at the server and {ours.get(key)!r} here"


def _stuck(world: World, leader: Daemon) -> Iterator[str]:
    """Pods that wait although there is a node for them, or victims that would make room."""
    cluster = Cluster()
    for resource, (lister, kind) in LISTERS.items():
        for obj in world.server.store.list_objects(builtin(resource)):
            getattr(cluster.cache.listers, lister).put(kind.decoder.decode(msgspec.json.encode(obj)))
    for node in world.nodes():
        cluster.cache.set_node(kinds.NODE.decoder.decode(msgspec.json.encode(node)))
    pods = [kinds.POD.decoder.decode(msgspec.json.encode(pod)) for pod in world.pods() if not is_over(pod)]
    for pod in pods:
        if pod.spec.node_name:
            cluster.cache.set_pod(pod)
    version = version_of(cluster.cache.listers.storage_classes.get(PAPER))
    for pod in pods:
        if pod.spec.node_name or pod.spec.scheduling_gates or pod.is_terminating:
            continue
        if leader.ledger.is_waiting_for_paper(pod.uid, version):
            continue
        decision = cluster.schedule(pod)
        target = decision.node or (decision.post_filter.nominated if decision.post_filter is not None else "")
        if target:
            queued = leader.scheduler.queue.get(pod.uid) if leader.scheduler is not None else None
            where = f"in {queued.place.value}, refused by {sorted(queued.rejectors)}" if queued else "in no queue"
            yield f"{pod.key} waits {where}, and could go to {target}"
        if pod.status.nominated_node_name:
            yield f"{pod.key} waits with a promise of {pod.status.nominated_node_name}"


def _is_ending(pod: dict[str, Any]) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))
