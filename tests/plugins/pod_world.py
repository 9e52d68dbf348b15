"""Random clusters for plugins that look at other pods: the same events into a real cache and into dictionaries."""

from __future__ import annotations

import random
from typing import Any

import msgspec

from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.framework.interfaces import CycleContext, RowChange
from kube_pyscheduler.objects import kinds
from kube_pyscheduler.objects.group import Namespace
from kube_pyscheduler.objects.node import Node, Taint
from kube_pyscheduler.objects.pod import Pod
from tests.builders import make_node, make_pod
from tests.clusters import Cluster

NODE_NAMES = [f"n{number}" for number in range(9)]
KNOWN_NAMESPACES = ["ns-a", "ns-b", "ns-c"]
NAMESPACES = [*KNOWN_NAMESPACES, "ns-unknown"]
KEYS = ["kubernetes.io/hostname", "topology.kubernetes.io/zone", "rack"]
TAINTS = [{"key": "a", "effect": "NoSchedule"}, {"key": "b", "effect": "NoExecute"}]
DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def only(*plugins: str, args: dict[str, Any] | None = None) -> dict[str, Any]:
    """A profile with these plugins alone."""
    enabled = [{"name": name} for name in ("PrioritySort", *plugins, "DefaultBinder")]
    profile: dict[str, Any] = {"plugins": {"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled}}}
    if args is not None:
        profile["pluginConfig"] = [{"name": plugins[0], "args": args}]
    return profile


def random_labels(rng: random.Random) -> dict[str, str]:
    labels = {"app": rng.choice(["web", "db", "cache"])}
    if rng.random() < 0.5:
        labels["tier"] = rng.choice(["front", "back", ""])
    if rng.random() < 0.3:
        labels["hash"] = rng.choice(["h1", "h2"])
    return labels


def random_selector(rng: random.Random) -> dict[str, Any]:
    kind = rng.randrange(8)
    if kind == 0:
        return {}
    if kind < 4:
        return {"matchLabels": {"app": rng.choice(["web", "db", "cache"])}}
    expression = rng.choice(
        [
            {"key": "app", "operator": "In", "values": ["web", "db"]},
            {"key": "tier", "operator": "NotIn", "values": ["front"]},
            {"key": "tier", "operator": "Exists"},
            {"key": "hash", "operator": "DoesNotExist"},
        ]
    )
    selector: dict[str, Any] = {"matchExpressions": [expression]}
    if kind == 7:
        selector["matchLabels"] = {"tier": "back"}
    return selector


def random_node(rng: random.Random, name: str) -> Node:
    labels = {}
    if rng.random() < 0.85:
        labels["topology.kubernetes.io/zone"] = rng.choice(["z1", "z2", "z3", ""])
    if rng.random() < 0.7:
        labels["rack"] = rng.choice(["r1", "r2"])
    if rng.random() < 0.5:
        labels["disk"] = rng.choice(["ssd", "hdd"])
    if rng.random() < 0.1:
        labels["kubernetes.io/hostname"] = "shared"
    node = make_node(name, labels=labels, taints=rng.sample(TAINTS, rng.choice([0, 0, 0, 1])))
    if rng.random() < 0.1:
        bare = {key: value for key, value in node.metadata.labels.items() if key != "kubernetes.io/hostname"}
        node = msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, labels=bare))
    return node


def random_namespace(rng: random.Random, name: str) -> Namespace:
    labels = {"team": rng.choice(["red", "blue"])} if rng.random() < 0.7 else {}
    document = {"metadata": {"name": name, "labels": labels}}
    namespace: Namespace = kinds.NAMESPACE.decoder.decode(msgspec.json.encode(document))
    return namespace


class PodWorld:
    """``spec(rng)`` makes what pods ask for. ``pods`` are those on nodes, known or not, by uid."""

    def __init__(self, rng: random.Random, profile: dict[str, Any], spec: Any) -> None:
        self.rng = rng
        self.cluster = Cluster(profile=profile)
        self.nodes: dict[str, Node] = {}
        self.namespaces: dict[str, Namespace] = {}
        self.pods: dict[str, Pod] = {}
        self._spec = spec
        self._assumed: list[str] = []
        self._serial = 0

    def new_pod(self, node: str = "") -> Pod:
        """A pod that is not in the cluster yet."""
        self._serial += 1
        rng = self.rng
        return make_pod(
            f"p{self._serial}",
            namespace=rng.choice(NAMESPACES),
            node=node,
            labels=random_labels(rng),
            metadata=DELETED if node and rng.random() < 0.1 else None,
            **self._spec(rng),
        )

    def context(self, pod: Pod) -> tuple[CycleContext, PodInfo]:
        """An attempt that has not begun."""
        info = PodInfo(pod)
        cycle, _judged = self.cluster.engine.cycle(self.cluster.profile, info)
        return cycle.ctx, info

    def random_change(self, row: int) -> RowChange:
        """Some of the row's pods gone, and some new ones come."""
        there = list(self.cluster.cache.table.pods[row].values())
        removed = [info for info in there if self.rng.random() < 0.4]
        added = [PodInfo(self.new_pod()) for _ in range(self.rng.choice([0, 0, 1, 2]))]
        return RowChange(tuple(added), tuple(removed))

    def step(self) -> None:
        """One event."""
        cache, rng = self.cluster.cache, self.rng
        match rng.choice(
            ["node", "taint", "lose", "pod", "pod", "pod", "assume", "settle", "change", "gone", "gone", "space"]
        ):
            case "node":
                node = random_node(rng, rng.choice(NODE_NAMES))
                self.nodes[node.name] = node
                cache.set_node(node)
            case "taint" if self.nodes:
                node = self.nodes[rng.choice(sorted(self.nodes))]
                taints = tuple(Taint(**taint) for taint in rng.sample(TAINTS, rng.choice([0, 1])))
                node = msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, taints=taints))
                self.nodes[node.name] = node
                cache.set_node(node)
            case "lose" if self.nodes and rng.random() < 0.4:
                cache.remove_node(self.nodes.pop(rng.choice(sorted(self.nodes))))
            case "pod":
                # Also on nodes that are not there (any more, or yet).
                pod = self.new_pod(rng.choice(NODE_NAMES))
                self.pods[pod.uid] = pod
                cache.set_pod(pod)
            case "assume":
                assumed = cache.assume(PodInfo(self.new_pod()), rng.choice(NODE_NAMES)).pod
                self.pods[assumed.uid] = assumed
                self._assumed.append(assumed.uid)
            case "settle" if self._assumed:
                uid = self._assumed.pop(rng.randrange(len(self._assumed)))
                if uid in self.pods and rng.random() < 0.5:
                    cache.set_pod(self.pods[uid])
                elif uid in self.pods:
                    del self.pods[uid]
                    cache.forget(uid)
            case "change" if self.pods:
                self._change_pod()
            case "gone" if self.pods:
                uid = rng.choice(sorted(self.pods))
                del self.pods[uid]
                cache.remove_pod(uid)
            case "space":
                self._change_namespace()

    def _change_pod(self) -> None:
        rng = self.rng
        pod = self.pods[rng.choice(sorted(self.pods))]
        meta = msgspec.structs.replace(pod.metadata, labels=random_labels(rng))
        if rng.random() < 0.4:
            meta = msgspec.structs.replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
        changed = msgspec.structs.replace(pod, metadata=meta)
        self.pods[pod.uid] = changed
        if pod.uid in self._assumed:
            self._assumed.remove(pod.uid)
        self.cluster.cache.set_pod(changed)

    def _change_namespace(self) -> None:
        name = self.rng.choice(KNOWN_NAMESPACES)
        lister = self.cluster.cache.listers.namespaces
        if name in self.namespaces and self.rng.random() < 0.3:
            lister.remove(self.namespaces.pop(name))
        else:
            self.namespaces[name] = random_namespace(self.rng, name)
            lister.put(self.namespaces[name])

    def pods_on(self, node: str) -> list[Pod]:
        """The pods of one node."""
        return [pod for pod in self.pods.values() if pod.spec.node_name == node]
