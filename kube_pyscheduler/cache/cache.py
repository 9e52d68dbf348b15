"""The live truth: nodes and the pods on them, assumed ones included, and what plugins look up.

The life of a pod here::

    (unknown) --assume--> assumed --set_pod--> added --remove_pod--> (unknown)
        |                    |                   ^
        |                    +--forget--> (unknown)
        +--------------set_pod-------------------+

``assume`` counts a decided pod before the API server agrees; ``finish_binding`` starts the clock after which an
assumed pod that nobody confirmed is ``overdue``; ``forget`` takes an assumed pod back. ``set_pod`` is what the API
server says, and always wins. Pods are known by uid, so a pod that was deleted and made again under its name is
another one. Pods may name nodes that do not exist: they are charged, and found again when the node comes (back).
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from kube_pyscheduler.cache.errors import CacheInvariantError
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod

CONFIRMATION_SECONDS = 60.0
"""How long after a successful binding the watch may stay silent before an assumed pod counts as overdue."""


@dataclass(slots=True)
class PodEntry:
    """A pod on a node. ``deadline``: monotonic seconds, for assumed pods whose binding was sent; else None."""

    info: PodInfo
    node: str
    assumed: bool
    deadline: float | None = None


class Cache:
    """See the module. Owns the node table and the listers and is their only writer."""

    def __init__(self) -> None:
        self.table = NodeTable()
        self._pods: dict[str, PodEntry] = {}
        self._assumed: dict[str, PodInfo] = {}
        self.listers = Listers(self.table, self._assumed)

    # Nodes

    def set_node(self, node: Node) -> None:
        """Add or replace a node."""
        self.table.set_node(node)

    def remove_node(self, node: Node) -> None:
        """The node is gone; pods that were on it stay charged to its name until they go themselves."""
        self.table.remove_node(node.name)

    def has_node(self, name: str) -> bool:
        """Whether there is such a node now."""
        row = self.table.row_of.get(name)
        return row is not None and bool(self.table.alive[row])

    # Pods

    def set_pod(self, pod: Pod) -> None:
        """The API server says that ``pod`` is on ``spec.nodeName``: adds, confirms what was assumed, or updates."""
        node = pod.spec.node_name
        info = PodInfo(pod)
        entry = self._pods.get(pod.uid)
        if entry is None:
            self.table.add_pod(info, node)
            self._pods[pod.uid] = PodEntry(info, node, assumed=False)
            return
        if entry.node == node and _same_charge(entry.info, info):
            self.table.swap_pod(info, node)
        else:
            self.table.remove_pod(entry.info, entry.node)
            self.table.add_pod(info, node)
            entry.node = node
        entry.info = info
        entry.assumed = False
        entry.deadline = None
        self._assumed.pop(pod.uid, None)

    def remove_pod(self, uid: str) -> None:
        """The pod is gone, or uses nothing any more. Unknown uids are ignored."""
        entry = self._pods.pop(uid, None)
        if entry is not None:
            self._assumed.pop(uid, None)
            self.table.remove_pod(entry.info, entry.node)

    def assume(self, info: PodInfo, node: str) -> PodInfo:
        """Charge a decided pod to its node; returns it as it will be, with ``spec.nodeName``.

        Raises CacheInvariantError if the pod is on a node already.
        """
        if info.uid in self._pods:
            entry = self._pods[info.uid]
            raise CacheInvariantError(f"pod {info.key} ({info.uid}) cannot be assumed: it is on node {entry.node}")
        pod = info.pod
        spec = msgspec.structs.replace(pod.spec, node_name=node)
        assumed = info.on_node(msgspec.structs.replace(pod, spec=spec))
        self.table.add_pod(assumed, node)
        self._pods[info.uid] = PodEntry(assumed, node, assumed=True)
        self._assumed[info.uid] = assumed
        return assumed

    def finish_binding(self, uid: str, now: float) -> None:
        """The binding was sent and accepted: the watch should say so soon. ``now``: monotonic seconds."""
        entry = self._pods.get(uid)
        if entry is not None and entry.assumed:
            entry.deadline = now + CONFIRMATION_SECONDS

    def forget(self, uid: str) -> None:
        """Take an assumed pod back. Pods that are not assumed (any more) are left alone."""
        if uid in self._assumed:
            self.remove_pod(uid)

    def overdue(self, now: float) -> list[PodInfo]:
        """Assumed pods that should have been confirmed by ``now``. Whoever asks must find out and ``forget`` them, or
        call ``finish_binding`` again."""
        found = []
        for uid in self._assumed:
            entry = self._pods[uid]
            if entry.deadline is not None and entry.deadline <= now:
                found.append(entry.info)
        return found

    def is_assumed(self, uid: str) -> bool:
        return uid in self._assumed

    def pod(self, uid: str) -> PodEntry | None:
        """The pod with this uid, if it is on a node."""
        return self._pods.get(uid)

    def pods(self) -> list[PodEntry]:
        """All pods on nodes."""
        return list(self._pods.values())

    def counts(self) -> dict[str, int]:
        """For ``scheduler_cache_size``: nodes, pods and assumed pods."""
        return {"nodes": self.table.node_count, "pods": len(self._pods), "assumed_pods": len(self._assumed)}


def _same_charge(old: PodInfo, new: PodInfo) -> bool:
    return old.demand.charges_as(new.demand) and old.host_ports == new.host_ports
