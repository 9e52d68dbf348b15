"""Random clusters with storage: the same events into a real cache, and what is there as plain dictionaries."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np

from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.framework.interfaces import CycleContext, FilterKernel, NodeFilter, PreFilter, RowChange
from kube_pyscheduler.framework.row_changes import StatedChanges
from kube_pyscheduler.framework.status import Status
from kube_pyscheduler.objects.meta import Object
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.objects.storage import PersistentVolume, PersistentVolumeClaim
from tests.builders import make_node, make_pod
from tests.clusters import Cluster
from tests.storage import (
    BOUND,
    HOSTNAME,
    IMMEDIATE,
    SELECTED_NODE,
    WAIT,
    ZONE,
    claim_volumes,
    make_attachment,
    make_capacity,
    make_claim,
    make_class,
    make_csi_node,
    make_driver,
    make_volume,
    put,
    remove,
)

NODES = [f"n{number}" for number in range(7)]
ZONES = ["z1", "z2", "z3"]
NAMESPACES = ["default", "other"]
CLAIMS = [f"c{number}" for number in range(8)]
VOLUMES = [f"v{number}" for number in range(12)]
CLASSES = ["slow", "fast", "manual", ""]
DRIVERS = ["csi.example", "ebs.csi.aws.com", "pd.csi.storage.gke.io", "disk.csi.azure.com"]
IN_TREE = ["kubernetes.io/aws-ebs", "kubernetes.io/azure-file", "kubernetes.io/no-provisioner", ""]
PROVISIONERS = [*DRIVERS[:2] * 4, *IN_TREE]
SIZES = ["1Gi", "2Gi", "2048Mi", "3Gi", "1500m"]
MIGRATED = ["kubernetes.io/aws-ebs", "kubernetes.io/gce-pd", "kubernetes.io/azure-disk"]
BETA_ZONE, REGION = "failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/region"

Judged = Status | dict[str, Status | None]
"""What PreFilter said, or by node what Filter said."""


def judge(plugin: Any, ctx: CycleContext, info: PodInfo, changes: dict[str, RowChange] | None = None) -> Judged:
    """PreFilter and Filter of one plugin, in a world where nodes have other pods if ``changes`` say so."""
    assert isinstance(plugin, PreFilter)
    assert isinstance(plugin, NodeFilter)
    answer = plugin.pre_filter(ctx, info)
    if isinstance(answer, Status):
        return answer
    table = ctx.table
    rows = table.live_rows()
    found: dict[str, Status | None] = {table.names[row]: None for row in rows.tolist()}
    kernel = plugin.filter_kernel(ctx, info)
    if kernel is None:
        return found
    if changes is None:
        codes = kernel.codes(table, table.all_rows)[rows]
        assert codes.tolist() == kernel.codes(table, rows).tolist()
        for place, row in enumerate(rows.tolist()):
            alone = np.array([row], dtype=np.int64)
            assert kernel.codes(table, alone).tolist() == [codes[place]]
    else:
        by_row = StatedChanges({table.row_of[name]: change for name, change in changes.items()})
        codes = kernel.codes_if(table, rows, by_row)
    return {**found, **_explained(kernel, ctx, rows, codes)}


def _explained(kernel: FilterKernel, ctx: CycleContext, rows: Any, codes: Any) -> dict[str, Status | None]:
    refused = codes != 0
    explained = kernel.explain(ctx.table, rows[refused], codes[refused])
    return {ctx.table.names[row]: status for status, those in explained for row in those.tolist()}


class VolumeWorld:
    """``pods``: those on nodes, by uid; ``objects``: the storage objects, by (kind, key)."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.cluster = Cluster()
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.objects: dict[tuple[str, str], Object] = {}
        self._serial = 0
        for _ in range(60):
            self._change(self._claim())
            self._change(self._volume())
            self._change(self._other())

    def rebuilt(self) -> Cluster:
        """Another cluster that was told of everything in another order, once; but pods came in the same order."""
        cluster = Cluster()
        items: list[Object] = [*self.nodes.values(), *self.pods.values(), *self.objects.values()]
        self.rng.shuffle(items)
        pods = iter(self.pods.values())
        for item in items:
            if isinstance(item, Node):
                cluster.cache.set_node(item)
            elif isinstance(item, Pod):
                cluster.cache.set_pod(next(pods))
            else:
                put(cluster.cache.listers, item)
        return cluster

    def context(self, pod: Pod, cluster: Cluster | None = None) -> tuple[CycleContext, PodInfo]:
        """An attempt that has not begun."""
        cluster = cluster or self.cluster
        info = PodInfo(pod)
        cycle, _judged = cluster.engine.cycle(cluster.profile, info)
        return cycle.ctx, info

    def pods_on(self, node: str) -> list[Pod]:
        """In the order in which they came."""
        table = self.cluster.cache.table
        row = table.row_of.get(node)
        return [] if row is None else [info.pod for info in table.pods[row].values()]

    def attachments(self) -> Iterable[Any]:
        return [item for (kind, _key), item in self.objects.items() if kind == "VolumeAttachment"]

    def random_change(self, node: str) -> RowChange:
        """Some of the node's pods gone, and some new ones come."""
        there = [PodInfo(pod) for pod in self.pods_on(node)]
        removed = [info for info in there if self.rng.random() < 0.5]
        added = [PodInfo(self.new_pod()) for _ in range(self.rng.choice([0, 0, 0, 1, 2]))]
        return RowChange(tuple(added), tuple(removed))

    def new_pod(self, node: str = "") -> Pod:
        """A pod that is not in the cluster yet; some have the claims of their ephemeral volumes."""
        self._serial += 1
        rng = self.rng
        name = f"p{rng.randrange(4)}" if rng.random() < 0.2 else f"p{self._serial}"
        volumes = [{"name": f"v{number}", **self._source()} for number in range(rng.choice([0, 1, 1, 1, 2, 3]))]
        return make_pod(
            name, namespace=rng.choice(NAMESPACES), uid=f"uid-{self._serial}", node=node, requests={}, volumes=volumes
        )

    def new_claimant(self) -> Pod:
        """A pod that is not in the cluster yet, and uses claims that are."""
        self._serial += 1
        namespace = self.rng.choice(NAMESPACES)
        claims = [item for item in self.objects.values() if isinstance(item, PersistentVolumeClaim)]
        names = [claim.name for claim in claims if claim.namespace == namespace]
        volumes = claim_volumes(*[self.rng.choice(names) for _ in range(self.rng.choice([1, 1, 2, 2, 3])) if names])
        return make_pod(f"p{self._serial}", namespace=namespace, volumes=volumes)

    def _source(self) -> dict[str, Any]:
        rng = self.rng
        match rng.randrange(14):
            case 0 if rng.random() < 0.4:
                return {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
            case 1:
                return {"gcePersistentDisk": {"pdName": f"d{rng.randrange(3)}", "readOnly": rng.random() < 0.5}}
            case 2:
                broken = rng.random() < 0.03
                return {"awsElasticBlockStore": {"volumeID": "aws://z/bad" if broken else f"vol-{rng.randrange(3)}"}}
            case 3:
                return {"iscsi": {"iqn": f"q{rng.randrange(2)}", "readOnly": rng.random() < 0.5}}
            case 4:
                monitors = rng.sample(["m1", "m2", "m3"], rng.choice([1, 2]))
                return {"rbd": {"monitors": monitors, "image": "i", "readOnly": rng.random() < 0.5}}
            case 5:
                return {"csi": {"driver": "csi.example"}}
            case 6:
                return {"azureFile": {"shareName": "s"}}
            case 7:
                return {"emptyDir": {}}
        return {"persistentVolumeClaim": {"claimName": rng.choice([*CLAIMS * 6, "missing"])}}

    # Events

    def step(self) -> None:
        """One event."""
        rng = self.rng
        match rng.choice(
            ["node", "pod", "pod", "gone", "claim", "claim", "volume", "volume", "other", "other", "lose"]
        ):
            case "node":
                self._set_node()
            case "lose" if self.nodes and rng.random() < 0.3:
                self.cluster.cache.remove_node(self.nodes.pop(rng.choice(sorted(self.nodes))))
            case "pod":
                # Also on nodes that are not there (any more, or yet).
                pod = self.new_pod(rng.choice(NODES))
                self.pods[pod.uid] = pod
                self.cluster.cache.set_pod(pod)
            case "gone" if self.pods:
                uid = rng.choice(sorted(self.pods))
                del self.pods[uid]
                self.cluster.cache.remove_pod(uid)
            case "claim":
                self._change(self._claim())
            case "volume":
                self._change(self._volume())
            case "other":
                self._change(self._other())

    def _set_node(self) -> None:
        rng = self.rng
        labels = {}
        if rng.random() < 0.8:
            labels[ZONE] = rng.choice(ZONES)
        if rng.random() < 0.2:
            labels[BETA_ZONE] = rng.choice(ZONES)
        if rng.random() < 0.3:
            labels[REGION] = rng.choice(["r1", "r2"])
        if rng.random() < 0.5:
            labels["topology.ebs.csi.aws.com/zone"] = rng.choice(ZONES)
        if rng.random() < 0.3:
            labels["disk"] = rng.choice(["ssd", "hdd"])
        node = make_node(rng.choice(NODES), labels=labels)
        self.nodes[node.name] = node
        self.cluster.cache.set_node(node)

    def _change(self, item: Object) -> None:
        kind = (type(item).__name__, item.key)
        if kind in self.objects and self.rng.random() < 0.3:
            remove(self.cluster.cache.listers, self.objects.pop(kind))
        else:
            self.objects[kind] = item
            put(self.cluster.cache.listers, item)

    def _claim(self) -> PersistentVolumeClaim:
        rng = self.rng
        metadata: dict[str, Any] = {}
        annotations: dict[str, str] = {}
        volume = rng.choice([*VOLUMES * 2, "gone"]) if rng.random() < 0.4 else ""
        if volume and rng.random() < 0.9:
            annotations.update(BOUND)
        if not volume and rng.random() < 0.1:
            annotations[SELECTED_NODE] = rng.choice(NODES)
        if rng.random() < 0.05:
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        name, namespace = rng.choice(CLAIMS), rng.choice(NAMESPACES)
        if self.pods and rng.random() < 0.2:
            # The claim of an ephemeral volume, perhaps of another pod's of that name.
            pod = self.pods[rng.choice(sorted(self.pods))]
            name, namespace = f"{pod.name}-v{rng.randrange(2)}", pod.namespace
            owner = pod.uid if rng.random() < 0.7 else "somebody"
            metadata["ownerReferences"] = [{"kind": "Pod", "name": pod.name, "uid": owner, "controller": True}]
        more: dict[str, Any] = {}
        if rng.random() < 0.1:
            more["selector"] = {"matchLabels": {"tier": "a"}}
        if rng.random() < 0.05:
            more["volumeAttributesClassName"] = "gold"
        return make_claim(
            name,
            namespace=namespace,
            storage_class=rng.choice([*CLASSES, *CLASSES[:3] * 2, "unknown", None]),
            volume=volume,
            size=rng.choice(SIZES),
            modes=rng.choice([("ReadWriteOnce",), ("ReadWriteOncePod",), ("ReadWriteOnce", "ReadOnlyMany")]),
            metadata={"annotations": annotations, **metadata},
            status={"phase": "Lost"} if rng.random() < 0.03 else None,
            volumeMode="Block" if rng.random() < 0.1 else rng.choice(["", "Filesystem"]),
            **more,
        )

    def _volume(self) -> PersistentVolume:
        rng = self.rng
        claim = None
        if rng.random() < 0.3:
            claims = [item for item in self.objects.values() if isinstance(item, PersistentVolumeClaim)]
            claim = rng.choice(claims) if claims else make_claim("elsewhere")
            if rng.random() < 0.2:
                claim = msgspec.structs.replace(claim, metadata=msgspec.structs.replace(claim.metadata, uid="another"))
        labels = {}
        for key, values in ((ZONE, [*ZONES, "z1__z2", "z1__"]), (BETA_ZONE, ZONES), (REGION, ["r1"]), ("tier", ["a"])):
            if rng.random() < 0.35:
                labels[key] = rng.choice(values)
        nodes: dict[str, list[str]] = {}
        match rng.randrange(7):
            case 0:
                nodes[ZONE] = rng.sample(ZONES, rng.choice([1, 2]))
            case 1 | 2:
                nodes[HOSTNAME] = [rng.choice(NODES)]
            case 3:
                nodes = {ZONE: rng.sample(ZONES, 2), "disk": ["ssd"]}
        more: dict[str, Any] = {}
        if rng.random() < 0.1:
            terms = [
                {"matchFields": [{"key": "metadata.name", "operator": operator, "values": ["n1"]}]}
                for operator in rng.sample(["In", "NotIn"], rng.choice([1, 2]))
            ]
            more["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
            nodes = {}
        if rng.random() < 0.05:
            more["volumeAttributesClassName"] = "gold"
        return make_volume(
            rng.choice(VOLUMES),
            source=self._volume_source(),
            claim=claim,
            storage_class=rng.choice([*CLASSES, *CLASSES[:2]]),
            size=rng.choice(SIZES),
            modes=rng.choice([("ReadWriteOnce",), ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteOncePod")]),
            labels=labels,
            nodes=nodes,
            phase="Released" if rng.random() < 0.1 else "",
            metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"} if rng.random() < 0.05 else None,
            volumeMode="Block" if rng.random() < 0.1 else rng.choice(["", "Filesystem"]),
            **more,
        )

    def _volume_source(self) -> dict[str, Any]:
        rng = self.rng
        match rng.randrange(9):
            case 0:
                return {"gcePersistentDisk": {"pdName": f"d{rng.randrange(3)}"}}
            case 1:
                broken = rng.random() < 0.1
                return {"awsElasticBlockStore": {"volumeID": "aws://z/bad" if broken else f"vol-{rng.randrange(3)}"}}
            case 2:
                kind = rng.choice(["Managed", "Shared"])
                return {"azureDisk": {"diskName": "d", "diskURI": f"/d{rng.randrange(3)}", "kind": kind}}
            case 3:
                return {"azureFile": {"shareName": "s"}}
            case 4:
                return {"local": {"path": "/d"}}
        return {
            "csi": {"driver": rng.choice(DRIVERS[:2]), "volumeHandle": rng.choice(["vol-0", "vol-1", "h1", "h2", ""])}
        }

    def _other(self) -> Object:
        rng = self.rng
        match rng.randrange(7):
            case 0 | 1:
                limits = {driver: rng.choice([None, 0, 1, 2, 3, 3]) for driver in DRIVERS if rng.random() < 0.8}
                return make_csi_node(rng.choice(NODES), limits, tuple(rng.sample(MIGRATED, rng.randrange(4))))
            case 2 | 3:
                node = rng.choice([*NODES, "nowhere"])
                volume = rng.choice([*VOLUMES, None])
                return make_attachment(f"a{rng.randrange(12)}", node, volume, rng.choice([*DRIVERS, ""]))
            case 4:
                topologies: list[dict[str, list[str]]] | None = rng.choice(
                    [
                        None,
                        [{ZONE: ["z1", "z2"]}],
                        [{ZONE: ["z1"], "disk": ["ssd"]}, {HOSTNAME: ["n1"]}],
                        [{}],
                        [{ZONE: []}],
                    ]
                )
                return make_class(
                    rng.choice(CLASSES[:3]),
                    provisioner=rng.choice(PROVISIONERS),
                    mode=rng.choice([*[WAIT] * 6, IMMEDIATE, ""]),
                    topologies=topologies,
                )
            case 5:
                return make_driver(
                    rng.choice(DRIVERS[:2]),
                    storageCapacity=rng.random() < 0.7,
                    preventPodSchedulingIfMissing=rng.random() < 0.3,
                )
        topology = rng.choice(
            [
                None,
                {},
                {"matchLabels": {ZONE: rng.choice(ZONES)}},
                {"matchLabels": {HOSTNAME: rng.choice(NODES)}},
                {"matchLabels": {ZONE: "z1"}, "matchExpressions": [{"key": "disk", "operator": "DoesNotExist"}]},
                {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["z1", "z3"]}]},
                {"matchExpressions": [{"key": ZONE, "operator": "Maybe"}]},
            ]
        )
        return make_capacity(
            f"k{rng.randrange(6)}",
            storage_class=rng.choice(CLASSES[:3]),
            topology=topology,
            capacity=rng.choice([None, "1Gi", "2Gi", "5Gi"]),
            largest=rng.choice([None, None, "1Gi", "5Gi"]),
        )
