"""Random clusters for the classic policies: nodes with conditions, annotations and zones, services and controllers."""

from __future__ import annotations

import json
import random
from typing import Any

import msgspec

from kube_pyscheduler.framework.interfaces import RowChange
from kube_pyscheduler.framework.listers import Lister
from kube_pyscheduler.objects import kinds
from kube_pyscheduler.objects.group import ReplicationController, Service
from kube_pyscheduler.objects.kinds import Kind
from kube_pyscheduler.objects.node import Node, NodeCondition
from kube_pyscheduler.objects.pod import Pod
from tests.builders import make_pod
from tests.clusters import Cluster
from tests.plugins.classic.reference import AVOID
from tests.plugins.pod_world import DELETED, NAMESPACES, PodWorld, random_labels

CONDITIONS = {
    "Ready": ["True", "True", "True", "False", "Unknown"],
    "OutOfDisk": ["False", "False", "True", "Unknown"],
    "NetworkUnavailable": ["False", "False", "False", "True", "Unknown"],
    "MemoryPressure": ["False", "False", "True", "Unknown"],
    "DiskPressure": ["False", "False", "True"],
    "PIDPressure": ["False", "False", "True"],
}
LABELS = {
    "failure-domain.beta.kubernetes.io/region": ["r1", "r2", ""],
    "failure-domain.beta.kubernetes.io/zone": ["z1", "z2", ""],
    "topology.kubernetes.io/region": ["r1", "r3"],
    "topology.kubernetes.io/zone": ["z1", "z2", "z3"],
    "rack": ["k1", "k2", ""],
    "room": ["m1", "m2"],
    "retiring": ["2026-01-01"],
}
OWNERS = [("ReplicationController", "web"), ("ReplicaSet", "web-1"), ("StatefulSet", "db"), ("ReplicaSet", "db-2")]


def decoded(kind: Kind[Any], document: dict[str, Any]) -> Any:
    return kind.decoder.decode(msgspec.json.encode(document))


def profile_of(*plugins: str, args: dict[str, dict[str, Any]] | None = None) -> dict[str, Any]:
    """A profile with these plugins alone."""
    enabled = [{"name": name} for name in ("PrioritySort", *plugins, "DefaultBinder")]
    return {
        "plugins": {"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled}},
        "pluginConfig": [{"name": name, "args": given} for name, given in (args or {}).items()],
    }


def random_spec(rng: random.Random) -> dict[str, Any]:
    def resources() -> dict[str, Any]:
        return {
            kind: {
                name: rng.choice(amounts)
                for name, amounts in (("cpu", ["0", "100m", "900m", "3"]), ("memory", ["64Mi", "3Gi", "7900Mi"]))
                if rng.random() < 0.5
            }
            for kind in ("requests", "limits")
            if rng.random() < 0.6
        }

    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "i", "resources": resources()}]}
    if rng.random() < 0.2:
        spec["initContainers"] = [{"name": "i", "image": "i", "resources": resources()}]
    if rng.random() < 0.4:
        spec["nodeSelector"] = {
            key: rng.choice(LABELS[key]) for key in rng.sample(["rack", "room"], rng.choice([1, 2]))
        }
    if rng.random() < 0.1:
        constraint = {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway"}
        spec["topologySpreadConstraints"] = [constraint]
    return spec


class ClassicWorld(PodWorld):
    """``services`` and ``controllers`` by key."""

    def __init__(self, rng: random.Random, profile: dict[str, Any]) -> None:
        super().__init__(rng, profile, random_spec)
        self.services: dict[str, Service] = {}
        self.controllers: dict[str, ReplicationController] = {}

    def rebuilt(self, profile: dict[str, Any]) -> Cluster:
        """Another cluster that was told of everything once."""
        cluster = Cluster(self.nodes_by_row(), self.pods.values(), profile)
        for service in self.services.values():
            cluster.cache.listers.services.put(service)
        for controller in self.controllers.values():
            cluster.cache.listers.replication_controllers.put(controller)
        return cluster

    def nodes_by_row(self) -> list[Node]:
        row_of = self.cluster.cache.table.row_of
        return sorted(self.nodes.values(), key=lambda node: row_of[node.name])

    def new_pod(self, node: str = "") -> Pod:
        """A pod that is not in the cluster yet."""
        self._serial += 1
        rng = self.rng
        metadata: dict[str, Any] = {}
        if rng.random() < 0.6:
            kind, name = rng.choice(OWNERS)
            version = "v1" if kind == "ReplicationController" else "apps/v1"
            owner = {"apiVersion": version, "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}
            metadata["ownerReferences"] = [owner]
        if node and rng.random() < 0.1:
            metadata.update(DELETED)
        return make_pod(
            f"p{self._serial}",
            namespace=rng.choice(NAMESPACES[:2]),
            node=node,
            labels=random_labels(rng),
            metadata=metadata,
            **random_spec(rng),
        )

    def random_change(self, row: int) -> RowChange:
        """Some of the row's pods gone, or all of them, and some new ones come."""
        if self.rng.random() < 0.5:
            return super().random_change(row)
        return RowChange((), tuple(self.cluster.cache.table.pods[row].values()))

    def step(self) -> None:
        super().step()
        if self.nodes and self.rng.random() < 0.4:
            self._dress(self.nodes[self.rng.choice(sorted(self.nodes))])
        if self.rng.random() < 0.1:
            self._change(self.services, kinds.SERVICE, self.cluster.cache.listers.services)
        if self.rng.random() < 0.1:
            listers = self.cluster.cache.listers
            self._change(self.controllers, kinds.REPLICATION_CONTROLLER, listers.replication_controllers)

    def _dress(self, node: Node) -> None:
        rng, replace = self.rng, msgspec.structs.replace
        reported = rng.sample(sorted(CONDITIONS), rng.randrange(len(CONDITIONS) + 1))
        labels = {"kubernetes.io/hostname": node.name}
        labels.update((key, rng.choice(values)) for key, values in LABELS.items() if rng.random() < 0.4)
        allocatable = {"pods": "110", "cpu": rng.choice(["1", "4", "8"]), "memory": rng.choice(["2Gi", "8Gi"])}
        if rng.random() < 0.1:
            del allocatable[rng.choice(["cpu", "memory"])]
        changed = replace(
            node,
            metadata=replace(node.metadata, labels=labels, annotations=self._annotations()),
            spec=replace(node.spec, unschedulable=rng.random() < 0.15),
            status=replace(
                node.status,
                allocatable=allocatable,
                conditions=tuple(NodeCondition(kind, rng.choice(CONDITIONS[kind])) for kind in reported),
            ),
        )
        self.nodes[node.name] = changed
        self.cluster.cache.set_node(changed)

    def _annotations(self) -> dict[str, str]:
        rng = self.rng
        if rng.random() < 0.5:
            return {}
        if rng.random() < 0.2:
            return {AVOID: rng.choice(["{", "[]", "null", "", '{"preferAvoidPods": [{"podSignature": {}}]}'])}
        avoided = [
            {
                "podSignature": {"podController": {"kind": kind, "name": name, "uid": f"uid-{name}"}},
                "evictionTime": "2026-01-01T00:00:00Z",
            }
            for kind, name in rng.sample(OWNERS, rng.choice([1, 2]))
        ]
        return {AVOID: json.dumps({"preferAvoidPods": avoided}), "other": "x"}

    def _change(self, known: dict[str, Any], kind: Kind[Any], lister: Lister[Any]) -> None:
        rng = self.rng
        if known and rng.random() < 0.3:
            lister.remove(known.pop(rng.choice(sorted(known))))
            return
        labels = random_labels(rng)
        selector = {key: labels[key] for key in rng.sample(sorted(labels), rng.choice([0, 1, 1, 1, len(labels)]))}
        metadata = {"name": rng.choice(["web", "db", "all"]), "namespace": rng.choice(NAMESPACES[:2])}
        changed = decoded(kind, {"metadata": metadata, "spec": {"selector": selector}})
        known[changed.key] = changed
        lister.put(changed)
