"""Pods that were promised a node. A promise counts from the moment it is made, not when the API server has it.

Source: pkg/scheduler/backend/queue/nominator.go.
"""

from __future__ import annotations

from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.objects.pod import Pod


class Nominator:
    """Promises by node and by pod.

    What the scheduler decided itself is newer than the status of the pods it sees, until a watch event changes that
    status. So it also remembers promises it took back while the status still names them.
    """

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, PodInfo]] = {}
        self._node_of: dict[str, str] = {}
        self.generation = 0
        """Grows with every change."""

    def __len__(self) -> int:
        """Promises in force."""
        return sum(len(pods) for pods in self._by_node.values())

    def nominated_on(self, node: str) -> list[PodInfo]:
        """The pods promised ``node``."""
        return list(self._by_node.get(node, {}).values())

    def nodes(self) -> list[str]:
        """Nodes with promises."""
        return list(self._by_node)

    def node_of(self, uid: str) -> str:
        """The node promised to the pod, or ""."""
        return self._node_of.get(uid, "")

    def promised(self, pod: Pod) -> str:
        """The node promised to the pod, or "": the last word of the scheduler, else what the pod's status says."""
        return self._node_of.get(pod.metadata.uid, pod.status.nominated_node_name)

    def nominate(self, info: PodInfo, node: str) -> str:
        """Promise ``node`` to the pod, or with "" take the promise back. Returns the node that was given up, or ""."""
        given_up = self._take(info.uid)
        if node:
            self._node_of[info.uid] = node
            self._by_node.setdefault(node, {})[info.uid] = info
            self.generation += 1
        elif info.pod.status.nominated_node_name:
            self._node_of[info.uid] = ""
        return given_up if given_up != node else ""

    def adopt(self, info: PodInfo) -> None:
        """A pod that enters the queue brings the promise in its status, unless there is a newer word on it."""
        promised = info.pod.status.nominated_node_name
        if promised and info.uid not in self._node_of:
            self.nominate(info, promised)

    def follow(self, old: Pod, info: PodInfo) -> str:
        """The pod was updated. Returns the node that was given up, or ""."""
        promised = info.pod.status.nominated_node_name
        if promised == old.status.nominated_node_name and info.uid in self._node_of:
            promised = self._node_of[info.uid]
        if promised or info.uid in self._node_of:
            return self.nominate(info, promised)
        return ""

    def drop(self, uid: str) -> str:
        """The pod is assumed, bound or gone. Returns the node that had been promised to it, or ""."""
        return self._take(uid)

    def _take(self, uid: str) -> str:
        node = self._node_of.pop(uid, "")
        if node:
            pods = self._by_node[node]
            del pods[uid]
            self.generation += 1
            if not pods:
                del self._by_node[node]
        return node
