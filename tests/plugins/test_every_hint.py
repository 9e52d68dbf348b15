"""Both answers of every hint: for each plugin and each event that it asks for there is one that helps and one that does
not. ``test_nothing_is_left_out`` compares the cases with what the plugins ask for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from kube_pyscheduler.framework.cluster_event import Action, Resource
from kube_pyscheduler.framework.interfaces import Filter, NodeFilter, Permit, PreEnqueue, PreFilter, Reserve
from kube_pyscheduler.objects import kinds
from kube_pyscheduler.objects.group import Namespace, Service
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.plugins import IN_TREE
from tests.builders import make_node, make_pod
from tests.plugins.dynamic_resources import world as dra
from tests.plugins.hints import Case, actions_of, answer, plugin_of
from tests.storage import (
    SELECTED_NODE,
    ZONE,
    claim_volumes,
    make_attachment,
    make_capacity,
    make_claim,
    make_class,
    make_csi_node,
    make_driver,
    make_volume,
)

ADD, DELETE, UPDATE = Action.ADD, Action.DELETE, Action.UPDATE
NODE, POD = Resource.NODE, Resource.POD
ALLOCATABLE, LABEL, TAINT = Action.UPDATE_NODE_ALLOCATABLE, Action.UPDATE_NODE_LABEL, Action.UPDATE_NODE_TAINT
CONDITION, FEATURE = Action.UPDATE_NODE_CONDITION, Action.UPDATE_NODE_DECLARED_FEATURE
POD_LABEL, TOLERATION, SCALE_DOWN = (
    Action.UPDATE_POD_LABEL,
    Action.UPDATE_POD_TOLERATION,
    Action.UPDATE_POD_SCALE_DOWN,
)
OTHER = Action.UPDATE_POD_OTHER
GATES, CLAIMS_MADE = Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM
Known = tuple[Any, ...]

ALWAYS = {
    ("NodePorts", NODE, ADD): "no port is taken on a new node",
    ("ServiceAffinity", NODE, ADD): "a new node may have the labels of the others, or be the first",
    ("MaxEBSVolumeCount", NODE, ADD): "a new node has no disks",
    ("MaxGCEPDVolumeCount", NODE, ADD): "a new node has no disks",
    ("MaxAzureDiskVolumeCount", NODE, ADD): "a new node has no disks",
    ("MaxCinderVolumeCount", NODE, ADD): "a new node has no disks",
}
"""Events that have no hint, so that they always queue."""

NEVER = {("DefaultPreemption", POD, DELETE): "the event only opens its gate; whether it helps, other plugins know"}
"""Events whose hint never queues."""


def both(
    plugin: str, resource: Resource, action: Action, helping: Known, useless: Known, known: Known = (), args: Any = None
) -> Iterator[Case]:
    """``helping`` and ``useless``: pod, old, new, and perhaps what else is known in that case."""
    for (pod, old, new, *more), queues in ((helping, True), (useless, False)):
        yield Case(plugin, resource, action, pod, old, new, queues, (*known, *more), args)


def condition_node(name: str = "n1", **statuses: str) -> Any:
    node = make_node(name)
    conditions = [{"type": kind, "status": status} for kind, status in statuses.items()]
    status = {**msgspec.to_builtins(node.status), "conditions": conditions}
    return kinds.NODE.decoder.decode(msgspec.json.encode({**msgspec.to_builtins(node), "status": status}))


# Nodes

WAITING = make_pod("waiting", requests={"cpu": "3"}, priority=5)
TOLERANT = make_pod("waiting", requests={"cpu": "3"}, tolerations=[{"key": "k", "operator": "Exists"}])
CORDON_TOLERANT = make_pod("waiting", tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}])
OPEN, CORDONED = make_node(), make_node(unschedulable=True)
TAINTED = make_node(taints=[{"key": "k", "effect": "NoSchedule"}])
TWICE_TAINTED = make_node(taints=[{"key": "k", "effect": "NoSchedule"}, {"key": "l", "effect": "NoExecute"}])
NAMING = make_pod("waiting", node="n1")
SELECTIVE = make_pod("waiting", nodeSelector={"disk": "ssd"})
SSD, SSD_AND_MORE = make_node(labels={"disk": "ssd"}), make_node(labels={"disk": "ssd", "x": "y"})
PORT = make_pod("waiting", containers=[{"name": "c", "ports": [{"hostPort": 80}]}])
SAME_PORT = make_pod("gone", node="n1", containers=[{"name": "c", "ports": [{"hostPort": 80}]}])
OTHER_PORT = make_pod("gone", node="n1", containers=[{"name": "c", "ports": [{"hostPort": 81}]}])
FEATURED = make_pod("waiting", hostNetwork=True, hostUsers=False)
HAS_FEATURE = make_node(features=["UserNamespacesHostNetworkSupport"])
OTHER_FEATURE = make_node(features=["Other"])
GATED, FREE = make_pod("waiting", schedulingGates=[{"name": "x"}]), make_pod("waiting")

NODES = (
    *both("SchedulingGates", POD, GATES, (FREE, GATED, FREE), (FREE, GATED, make_pod("another"))),
    *both("NodeUnschedulable", NODE, ADD, (WAITING, None, OPEN), (WAITING, None, CORDONED)),
    *both("NodeUnschedulable", NODE, TAINT, (WAITING, CORDONED, OPEN), (WAITING, TAINTED, OPEN)),
    *both(
        "NodeUnschedulable",
        POD,
        TOLERATION,
        (CORDON_TOLERANT, WAITING, CORDON_TOLERANT),
        (TOLERANT, WAITING, TOLERANT),
    ),
    *both("NodeName", NODE, ADD, (NAMING, None, OPEN), (NAMING, None, make_node("n2"))),
    *both("TaintToleration", NODE, ADD, (TOLERANT, None, TAINTED), (WAITING, None, TAINTED)),
    *both("TaintToleration", NODE, TAINT, (WAITING, TAINTED, OPEN), (WAITING, TWICE_TAINTED, TAINTED)),
    *both("TaintToleration", POD, TOLERATION, (TOLERANT, WAITING, TOLERANT), (WAITING, None, make_pod("another"))),
    *both("NodeAffinity", NODE, ADD, (SELECTIVE, None, SSD), (SELECTIVE, None, OPEN)),
    *both("NodeAffinity", NODE, LABEL, (SELECTIVE, OPEN, SSD), (SELECTIVE, SSD, SSD_AND_MORE)),
    *both("NodePorts", POD, DELETE, (PORT, SAME_PORT, None), (PORT, OTHER_PORT, None)),
    *both("NodeDeclaredFeatures", NODE, ADD, (FEATURED, None, HAS_FEATURE), (FEATURED, None, OPEN)),
    *both("NodeDeclaredFeatures", NODE, FEATURE, (FEATURED, OPEN, HAS_FEATURE), (FEATURED, OPEN, OTHER_FEATURE)),
    *(
        case
        for action in (POD_LABEL, SCALE_DOWN, TOLERATION, GATES, CLAIMS_MADE, OTHER)
        for case in both("NodeDeclaredFeatures", POD, action, (FREE, FEATURED, FREE), (FEATURED, FREE, make_pod("q")))
    ),
    Case("DefaultPreemption", POD, DELETE, WAITING, SAME_PORT, None, queues=False),
)

# Resources

HOLDER = make_pod("holder", node="n1", requests={"cpu": "2"}, priority=5)
HELD_ONE = make_pod("holder", node="n1", requests={"cpu": "1"}, priority=5)
TINY = make_pod("tiny", node="n1", requests={"cpu": "100m"})
STAYS = make_pod("stays", node="n1", requests={"cpu": "2"}, priority=5)
SMALL_NODE, LARGE_NODE = make_node(allocatable={"cpu": "2"}), make_node(allocatable={"cpu": "8"})
GPU = "example.com/gpu"
WANTS_GPU = make_pod("waiting", requests={GPU: "1"})
OFFERS_GPU, OFFERS_NOTHING = dra.make_class(extended=GPU), dra.make_class()

RESOURCES = (
    *both("NodeResourcesFit", POD, DELETE, (WAITING, HOLDER, None), (WAITING, TINY, None, STAYS), (OPEN,)),
    *both(
        "NodeResourcesFit", POD, SCALE_DOWN, (WAITING, HOLDER, HELD_ONE), (WAITING, HOLDER, HELD_ONE, STAYS), (OPEN,)
    ),
    *both("NodeResourcesFit", NODE, ADD, (WAITING, None, OPEN), (WAITING, None, SMALL_NODE)),
    *both("NodeResourcesFit", NODE, ALLOCATABLE, (WAITING, SMALL_NODE, OPEN), (WAITING, LARGE_NODE, OPEN)),
    *both("NodeResourcesFit", Resource.DEVICE_CLASS, ADD, (WANTS_GPU, None, OFFERS_GPU), (WAITING, None, OFFERS_GPU)),
    *both(
        "NodeResourcesFit",
        Resource.DEVICE_CLASS,
        UPDATE,
        (WANTS_GPU, OFFERS_NOTHING, OFFERS_GPU),
        (WANTS_GPU, OFFERS_GPU, dra.make_class("gpu", "true", extended=GPU)),
    ),
)

# Other pods

ZONE_A, ZONE_B, NOWHERE = make_node(labels={ZONE: "a"}), make_node(labels={ZONE: "b"}), make_node()


def term(app: str, **more: Any) -> dict[str, Any]:
    return {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": app}}, **more}


def affine(kind: str, *terms: dict[str, Any], name: str = "waiting", node: str = "", app: str = "web") -> Pod:
    affinity = {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}
    return make_pod(name, node=node, labels={"app": app}, affinity=affinity)


def placed(app: str, **more: Any) -> Pod:
    return make_pod("other", node="n1", labels={"app": app}, **more)


def spreading(**more: Any) -> Pod:
    constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", **more}
    constraint["labelSelector"] = {"matchLabels": {"app": "web"}}
    return make_pod("waiting", labels={"app": "web"}, topologySpreadConstraints=[constraint])


def namespace(name: str, **labels: str) -> Namespace:
    decoded: Namespace = kinds.NAMESPACE.decoder.decode(
        msgspec.json.encode({"metadata": {"name": name, "labels": labels}})
    )
    return decoded


NEAR, FAR, PLAIN = affine("podAffinity", term("db")), affine("podAntiAffinity", term("db")), placed("web")
FAR_FROM_TWO = affine("podAntiAffinity", term("db"), term("cache"))
UNLABELLED = make_pod("waiting", labels={})
HATES_WEB = affine("podAntiAffinity", term("web"), name="other", node="n1", app="db")
UNASSUMING = make_pod("waiting", labels={"app": "web"})
NEAR_RED = affine("podAffinity", term("db", namespaceSelector={"matchLabels": {"team": "red"}}))
FAR_FROM_RED = affine("podAntiAffinity", term("db", namespaceSelector={"matchLabels": {"team": "red"}}))
FIRST_OF_ITS_KIND = affine("podAffinity", term("web"))
RED, BLUE, NEW_BLUE = namespace("ns", team="red"), namespace("ns", team="blue"), namespace("ns", team="blue", new="x")
SPREAD, HONORING = spreading(), spreading(nodeTaintsPolicy="Honor")
HONORING_TOLERANT = msgspec.structs.replace(
    HONORING, spec=msgspec.structs.replace(HONORING.spec, tolerations=TOLERANT.spec.tolerations)
)
SPREAD_TOLERANT = msgspec.structs.replace(
    SPREAD, spec=msgspec.structs.replace(SPREAD.spec, tolerations=TOLERANT.spec.tolerations)
)
ENDING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
ZONE_A_TAINTED = make_node(labels={ZONE: "a"}, taints=[{"key": "k", "effect": "NoSchedule"}])

MINOR = make_pod("minor", namespace="elsewhere", node="far-away", priority=-1)
"""A pod that the waiting ones may send away, so that it does not matter which nodes take them now."""

OTHER_PODS = (
    *both("InterPodAffinity", POD, ADD, (NEAR, None, placed("db")), (NEAR, None, placed("web"))),
    *both("InterPodAffinity", POD, DELETE, (FAR_FROM_TWO, placed("db"), None), (FAR_FROM_TWO, PLAIN, None)),
    *both("InterPodAffinity", POD, DELETE, (UNASSUMING, HATES_WEB, None), (UNLABELLED, HATES_WEB, None)),
    *both("InterPodAffinity", POD, DELETE, (FIRST_OF_ITS_KIND, PLAIN, None), (NEAR, placed("db"), None)),
    *both("InterPodAffinity", POD, POD_LABEL, (NEAR, PLAIN, placed("db")), (NEAR, placed("db"), PLAIN)),
    *both("InterPodAffinity", NODE, ADD, (UNASSUMING, None, ZONE_A), (NEAR, None, NOWHERE)),
    *both(
        "InterPodAffinity", NODE, LABEL, (NEAR, ZONE_A, ZONE_B), (NEAR, ZONE_A, make_node(labels={ZONE: "a", "x": "y"}))
    ),
    *both("InterPodAffinity", NODE, LABEL, (UNASSUMING, ZONE_A, ZONE_B), (UNLABELLED, ZONE_A, ZONE_B), (HATES_WEB,)),
    *both("InterPodAffinity", NODE, DELETE, (FAR, ZONE_A, None), (NEAR, ZONE_A, None)),
    *both("InterPodAffinity", Resource.NAMESPACE, ADD, (NEAR_RED, None, RED), (NEAR_RED, None, BLUE)),
    *both("InterPodAffinity", Resource.NAMESPACE, UPDATE, (NEAR_RED, BLUE, RED), (NEAR_RED, BLUE, NEW_BLUE)),
    *both("InterPodAffinity", Resource.NAMESPACE, DELETE, (FAR_FROM_RED, RED, None), (FAR_FROM_RED, BLUE, None)),
    *both("PodTopologySpread", POD, ADD, (SPREAD, None, PLAIN), (SPREAD, None, placed("db"))),
    *both("PodTopologySpread", POD, DELETE, (SPREAD, PLAIN, None), (SPREAD, placed("db"), None)),
    *both("PodTopologySpread", POD, POD_LABEL, (SPREAD, PLAIN, placed("db")), (SPREAD, placed("x"), placed("db"))),
    *both(
        "PodTopologySpread",
        POD,
        TOLERATION,
        (HONORING_TOLERANT, HONORING, HONORING_TOLERANT),
        (SPREAD_TOLERANT, SPREAD, SPREAD_TOLERANT),
    ),
    *both(
        "PodTopologySpread",
        POD,
        OTHER,
        (SPREAD, PLAIN, placed("web", metadata=ENDING)),
        (SPREAD, PLAIN, placed("web", metadata={"annotations": {"x": "y"}})),
    ),
    *both("PodTopologySpread", NODE, ADD, (SPREAD, None, ZONE_A), (SPREAD, None, NOWHERE)),
    *both("PodTopologySpread", NODE, DELETE, (SPREAD, ZONE_A, None), (SPREAD, NOWHERE, None)),
    *both(
        "PodTopologySpread",
        NODE,
        LABEL,
        (SPREAD, ZONE_A, ZONE_B),
        (SPREAD, ZONE_A, make_node(labels={ZONE: "a", "x": "y"})),
    ),
    *both("PodTopologySpread", NODE, TAINT, (HONORING, ZONE_A_TAINTED, ZONE_A), (SPREAD, ZONE_A_TAINTED, ZONE_A)),
)

STAYS_IN_ZONE = make_pod("stays", node="n1", labels={"app": "db"})

IN_B = make_node("n2", labels={ZONE: "b"})
FULL_B = make_pod("b", node="n2", labels={"app": "web"})
EMPTY_B = make_pod("b", node="n2", labels={"app": "db"})
OWN_DB = msgspec.structs.replace(SPREAD, metadata=msgspec.structs.replace(SPREAD.metadata, labels={"app": "db"}))

# Where there is nobody to send away, some node must take the pod now.
WELCOME = (
    *both(
        "InterPodAffinity", POD, DELETE, (FAR, placed("db"), None), (FAR, placed("db"), None, STAYS_IN_ZONE), (ZONE_A,)
    ),
    *both("InterPodAffinity", POD, ADD, (NEAR, None, placed("db"), ZONE_A), (NEAR, None, placed("db"), NOWHERE)),
    *both("PodTopologySpread", POD, DELETE, (SPREAD, PLAIN, None, ZONE_A), (SPREAD, PLAIN, None, NOWHERE)),
    *both("PodTopologySpread", POD, ADD, (SPREAD, None, PLAIN, FULL_B), (SPREAD, None, PLAIN, EMPTY_B), (ZONE_A, IN_B)),
    *both("PodTopologySpread", POD, POD_LABEL, (OWN_DB, SPREAD, OWN_DB), (SPREAD, SPREAD, SPREAD)),
)

# Volumes

DISK = make_pod("waiting", volumes=[{"name": "d", "gcePersistentDisk": {"pdName": "disk"}}])
DISK_ELSEWHERE = make_pod(
    "gone", namespace="other", node="n1", volumes=[{"name": "d", "gcePersistentDisk": {"pdName": "disk"}}]
)
USER = make_pod("waiting", volumes=claim_volumes("c"))
OLD_USER = make_pod("gone", node="n1", volumes=claim_volumes("c"))
USER_OF_D = make_pod("gone", node="n1", volumes=claim_volumes("d"))
EXCLUSIVE, SHARED = make_claim(modes=("ReadWriteOncePod",)), make_claim()
UNBOUND, BOUND, OTHER_CLAIM = make_claim(), make_claim(volume="v"), make_claim("d")
BOUND_D = make_claim("d", volume="w")
VOLUME, OTHER_VOLUME = make_volume(claim=BOUND), make_volume("w")
CLASS, OTHER_CLASS = make_class(), make_class("fast", provisioner="fast.example")
FAST_CLAIM, FAST_VOLUME = (
    make_claim("d", volume="w", storage_class="fast"),
    make_volume("w", source={"csi": {"driver": "fast.example", "volumeHandle": "w"}}),
)
ONE, TWO = make_csi_node(limits={"csi.example": 1}), make_csi_node(limits={"csi.example": 2})
NO_PLACE = make_csi_node(limits={"csi.example": 0})
OTHERS_MORE = make_csi_node(limits={"csi.example": 1, "fast.example": 9})
NEEDED, NOT_NEEDED = make_driver(preventPodSchedulingIfMissing=True), make_driver()
HAS_DRIVER, HAS_NO_DRIVER = make_csi_node(limits={"csi.example": None}), make_csi_node()

LIMITS = (
    *both("VolumeRestrictions", POD, DELETE, (DISK, DISK_ELSEWHERE, None), (DISK, OLD_USER, None)),
    *both("VolumeRestrictions", POD, DELETE, (USER, OLD_USER, None, EXCLUSIVE), (USER, OLD_USER, None, SHARED)),
    *both("VolumeRestrictions", NODE, ADD, (DISK, None, OPEN), (USER, None, OPEN), (EXCLUSIVE,)),
    *both(
        "VolumeRestrictions",
        NODE,
        DELETE,
        (USER, OPEN, None, OLD_USER),
        (USER, OPEN, None, make_node("n2"), make_pod("another", node="n2", volumes=claim_volumes("c"))),
        (EXCLUSIVE,),
    ),
    *both(
        "VolumeRestrictions", Resource.PERSISTENT_VOLUME_CLAIM, ADD, (USER, None, UNBOUND), (USER, None, OTHER_CLAIM)
    ),
    *both("NodeVolumeLimits", NODE, ADD, (USER, None, OPEN, ONE), (USER, None, OPEN, NO_PLACE), (UNBOUND, CLASS)),
    *both(
        "NodeVolumeLimits",
        Resource.CSI_NODE,
        ADD,
        (USER, None, HAS_DRIVER),
        (USER, None, HAS_NO_DRIVER),
        (UNBOUND, CLASS, NEEDED),
    ),
    *both("NodeVolumeLimits", Resource.CSI_NODE, UPDATE, (USER, ONE, TWO), (USER, ONE, OTHERS_MORE), (UNBOUND, CLASS)),
    *both("NodeVolumeLimits", Resource.CSI_NODE, UPDATE, (USER, ONE, HAS_DRIVER), (USER, TWO, ONE), (UNBOUND, CLASS)),
    *both(
        "NodeVolumeLimits",
        Resource.CSI_NODE,
        DELETE,
        (USER, ONE, None),
        (USER, HAS_DRIVER, None),
        (UNBOUND, CLASS),
    ),
    *both(
        "NodeVolumeLimits",
        Resource.CSI_DRIVER,
        UPDATE,
        (USER, NEEDED, NOT_NEEDED),
        (USER, NOT_NEEDED, NEEDED),
        (UNBOUND, CLASS),
    ),
    *both(
        "NodeVolumeLimits",
        Resource.CSI_DRIVER,
        DELETE,
        (USER, NEEDED, None),
        (USER, NOT_NEEDED, None),
        (UNBOUND, CLASS),
    ),
    *both(
        "NodeVolumeLimits",
        POD,
        ADD,
        (USER, None, OLD_USER),
        (USER, None, USER_OF_D),
        (BOUND, VOLUME, BOUND_D, OTHER_VOLUME),
    ),
    *both(
        "NodeVolumeLimits",
        POD,
        DELETE,
        (USER, USER_OF_D, None, BOUND_D, OTHER_VOLUME),
        (USER, USER_OF_D, None, FAST_CLAIM, FAST_VOLUME),
        (BOUND, VOLUME),
    ),
    *both(
        "NodeVolumeLimits", Resource.PERSISTENT_VOLUME, ADD, (USER, None, VOLUME), (USER, None, OTHER_VOLUME), (BOUND,)
    ),
    *both("NodeVolumeLimits", Resource.PERSISTENT_VOLUME_CLAIM, ADD, (USER, None, UNBOUND), (USER, None, OTHER_CLAIM)),
    *both(
        "NodeVolumeLimits",
        Resource.VOLUME_ATTACHMENT,
        DELETE,
        (USER, make_attachment("a", "n1", "x"), None),
        (USER, make_attachment("a", "n1", "x", "fast.example"), None),
        (UNBOUND, CLASS),
    ),
)

NARROW = make_class(topologies=[{ZONE: ["z1"]}])
ANNOTATED = make_claim(metadata={"annotations": {"volume.kubernetes.io/storage-provisioner": "csi.example"}})
SELECTED = make_claim(metadata={"annotations": {SELECTED_NODE: "n1"}})
RELEASED, AVAILABLE = make_volume("w", phase="Released"), make_volume("w")
LARGE_CLAIM, LARGE_VOLUME = make_claim(size="5Gi"), make_volume("w", size="5Gi")
ZONAL = make_volume(claim=BOUND, nodes={ZONE: ["z1"]})
HERE, THERE = make_node(labels={ZONE: "z1"}), make_node(labels={ZONE: "z2"})
EBS = make_volume(claim=BOUND, source={"awsElasticBlockStore": {"volumeID": "vol-1"}})
MIGRATED, OTHER_MIGRATED = (
    make_csi_node(migrated=("kubernetes.io/aws-ebs",)),
    make_csi_node(migrated=("kubernetes.io/cinder",)),
)
TELLS, SILENT = make_driver(storageCapacity=True), make_driver(storageCapacity=False)
FAST_TELLS, FAST_SILENT = (make_driver("fast.example", storageCapacity=tells) for tells in (True, False))
ROOM, NO_ROOM, FAST_ROOM = (
    make_capacity(capacity="9Gi"),
    make_capacity(capacity="1Mi"),
    make_capacity(storage_class="fast", capacity="9Gi"),
)
ZONE_LABELLED, RELABELLED = (
    make_volume(claim=BOUND, labels={ZONE: "z1"}),
    make_volume(claim=BOUND, labels={ZONE: "z1", "x": "y"}),
)
MOVED = make_volume(claim=BOUND, labels={ZONE: "z2"})
WAITS, IMMEDIATE_CLASS = make_class(), make_class(mode="Immediate")
PV, PVC = Resource.PERSISTENT_VOLUME, Resource.PERSISTENT_VOLUME_CLAIM

VOLUMES = (
    *both("VolumeBinding", Resource.STORAGE_CLASS, ADD, (USER, None, CLASS), (USER, None, OTHER_CLASS), (UNBOUND,)),
    *both("VolumeBinding", Resource.STORAGE_CLASS, UPDATE, (USER, NARROW, CLASS), (USER, CLASS, CLASS), (UNBOUND,)),
    *both("VolumeBinding", PVC, ADD, (USER, None, UNBOUND), (USER, None, OTHER_CLAIM)),
    *both("VolumeBinding", PVC, UPDATE, (USER, UNBOUND, BOUND), (USER, UNBOUND, ANNOTATED)),
    *both("VolumeBinding", PVC, UPDATE, (USER, SELECTED, UNBOUND), (USER, OTHER_CLAIM, BOUND_D)),
    *both("VolumeBinding", PV, ADD, (USER, None, LARGE_VOLUME), (USER, None, AVAILABLE), (LARGE_CLAIM, CLASS)),
    *both("VolumeBinding", PV, ADD, (USER, None, VOLUME), (USER, None, OTHER_VOLUME), (BOUND,)),
    *both("VolumeBinding", PV, UPDATE, (USER, RELEASED, AVAILABLE), (USER, AVAILABLE, RELEASED), (UNBOUND, CLASS)),
    *both("VolumeBinding", NODE, ADD, (USER, None, HERE), (USER, None, THERE), (BOUND, ZONAL)),
    *both("VolumeBinding", NODE, LABEL, (USER, THERE, HERE), (USER, HERE, THERE), (BOUND, ZONAL)),
    *both(
        "VolumeBinding",
        NODE,
        LABEL,
        (USER, THERE, HERE),
        (USER, HERE, make_node(labels={ZONE: "z1", "x": "y"})),
        (UNBOUND, NARROW),
    ),
    *both("VolumeBinding", Resource.CSI_NODE, ADD, (USER, None, MIGRATED), (USER, None, OTHER_MIGRATED), (BOUND, EBS)),
    *both("VolumeBinding", Resource.CSI_NODE, UPDATE, (USER, HAS_NO_DRIVER, MIGRATED), (USER, ONE, TWO), (BOUND, EBS)),
    *both("VolumeBinding", Resource.CSI_NODE, DELETE, (USER, MIGRATED, None), (USER, ONE, None), (BOUND, EBS)),
    *both(
        "VolumeBinding",
        Resource.CSI_DRIVER,
        UPDATE,
        (USER, TELLS, SILENT),
        (USER, FAST_TELLS, FAST_SILENT),
        (UNBOUND, CLASS),
    ),
    *both("VolumeBinding", Resource.CSI_DRIVER, DELETE, (USER, TELLS, None), (USER, SILENT, None), (UNBOUND, CLASS)),
    *both(
        "VolumeBinding", Resource.CSI_STORAGE_CAPACITY, ADD, (USER, None, ROOM), (USER, None, NO_ROOM), (UNBOUND, CLASS)
    ),
    *both(
        "VolumeBinding",
        Resource.CSI_STORAGE_CAPACITY,
        ADD,
        (USER, None, ROOM),
        (USER, None, FAST_ROOM),
        (UNBOUND, CLASS),
    ),
    *both(
        "VolumeBinding",
        Resource.CSI_STORAGE_CAPACITY,
        UPDATE,
        (USER, NO_ROOM, ROOM),
        (USER, ROOM, NO_ROOM),
        (UNBOUND, CLASS),
    ),
    *both(
        "VolumeBinding",
        POD,
        DELETE,
        (USER, USER_OF_D, None, OTHER_CLAIM),
        (USER, USER_OF_D, None, BOUND_D),
        (UNBOUND, CLASS),
    ),
    *both("VolumeZone", Resource.STORAGE_CLASS, ADD, (USER, None, WAITS), (USER, None, IMMEDIATE_CLASS), (UNBOUND,)),
    *both("VolumeZone", NODE, ADD, (USER, None, HERE), (USER, None, THERE), (BOUND, ZONE_LABELLED)),
    *both("VolumeZone", NODE, LABEL, (USER, THERE, HERE), (USER, HERE, THERE), (BOUND, ZONE_LABELLED)),
    *both("VolumeZone", PVC, ADD, (USER, None, BOUND), (USER, None, OTHER_CLAIM)),
    *both("VolumeZone", PVC, UPDATE, (USER, UNBOUND, BOUND), (USER, UNBOUND, ANNOTATED)),
    *both("VolumeZone", PV, ADD, (USER, None, VOLUME), (USER, None, OTHER_VOLUME), (BOUND,)),
    *both("VolumeZone", PV, UPDATE, (USER, ZONE_LABELLED, MOVED), (USER, ZONE_LABELLED, RELABELLED), (BOUND,)),
)

# Devices

CLAIM, SLICE = Resource.RESOURCE_CLAIM, Resource.RESOURCE_SLICE
MODEL = f'device.attributes["{dra.DRIVER}"].model'
LACKING = dra.make_claim("c", dra.ask("a", f'{MODEL} == "large"'))
USES_CLAIM = dra.make_pod("p", "c")
MINE_HELD = dra.make_claim("c", status=dra.allocation(("n1", "x"), on="n1"))
TAKEN, GIVEN_BACK = dra.make_claim("other", status=dra.allocation(("n1", "x"))), dra.make_claim("other")
LARGE, SMALL = (dra.make_slice("n1", [dra.device("x", attributes={"model": m})], node="n1") for m in ("large", "small"))
MORE_SMALL = dra.make_slice("n1", [dra.device(name, attributes={"model": "small"}) for name in "xy"], node="n1")
SHARED_LARGE = dra.make_slice(
    "shared",
    [dra.device("x", attributes={"model": "large"})],
    nodeSelector={"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["z1"]}]}]},
)
GPU_CLASS, OTHER_DEVICES = dra.make_class(), dra.make_class("others")
CHANGED_CLASS = dra.make_class("gpu", "true")
WANTS_BOTH = dra.make_pod("p", requests={GPU: "1"})
GPU_LEFT, NO_GPU = make_node(allocatable={GPU: "1"}), make_node(allocatable={GPU: "0"})
UNMADE, MADE = dra.make_pod("p", templates={"c": ...}), dra.make_pod("p", templates={"c": None})
GAVE_UP = dra.make_pod("gone", "other", node="n1")

DEVICES = (
    *both(
        "DynamicResources",
        NODE,
        ADD,
        (USES_CLAIM, None, OPEN, LARGE),
        (USES_CLAIM, None, OPEN, SMALL),
        (GPU_CLASS, LACKING),
    ),
    *both(
        "DynamicResources",
        NODE,
        LABEL,
        (USES_CLAIM, THERE, HERE),
        (USES_CLAIM, HERE, make_node(labels={ZONE: "z1", "x": "y"})),
        (GPU_CLASS, LACKING, SHARED_LARGE),
    ),
    *both(
        "DynamicResources",
        NODE,
        ALLOCATABLE,
        (WANTS_BOTH, GPU_LEFT, NO_GPU),
        (USES_CLAIM, GPU_LEFT, NO_GPU),
        (OFFERS_GPU, LACKING, LARGE),
    ),
    *both("DynamicResources", CLAIM, ADD, (USES_CLAIM, None, LACKING), (USES_CLAIM, None, GIVEN_BACK, LACKING)),
    *both(
        "DynamicResources",
        CLAIM,
        UPDATE,
        (USES_CLAIM, TAKEN, GIVEN_BACK, LARGE),
        (USES_CLAIM, TAKEN, GIVEN_BACK, SMALL),
        (OPEN, GPU_CLASS, LACKING),
    ),
    *both(
        "DynamicResources",
        CLAIM,
        UPDATE,
        (USES_CLAIM, LACKING, MINE_HELD),
        (USES_CLAIM, LACKING, dra.make_claim("c", finalizers=["x"])),
    ),
    *both(
        "DynamicResources",
        CLAIM,
        DELETE,
        (USES_CLAIM, TAKEN, None, LARGE),
        (USES_CLAIM, GIVEN_BACK, None, LARGE),
        (OPEN, GPU_CLASS, LACKING),
    ),
    *both(
        "DynamicResources",
        POD,
        CLAIMS_MADE,
        (MADE, UNMADE, MADE),
        (MADE, None, dra.make_pod("q", templates={"c": None})),
    ),
    *both(
        "DynamicResources",
        POD,
        DELETE,
        (USES_CLAIM, GAVE_UP, None, GIVEN_BACK),
        (USES_CLAIM, GAVE_UP, None, TAKEN),
        (OPEN, GPU_CLASS, LACKING, LARGE),
    ),
    *both(
        "DynamicResources",
        Resource.DEVICE_CLASS,
        ADD,
        (USES_CLAIM, None, GPU_CLASS),
        (USES_CLAIM, None, OTHER_DEVICES),
        (OPEN, LACKING, LARGE),
    ),
    *both(
        "DynamicResources",
        Resource.DEVICE_CLASS,
        UPDATE,
        (USES_CLAIM, GPU_CLASS, CHANGED_CLASS, LARGE),
        (USES_CLAIM, GPU_CLASS, CHANGED_CLASS, SMALL),
        (OPEN, LACKING),
    ),
    *both(
        "DynamicResources",
        Resource.DEVICE_CLASS,
        DELETE,
        (WANTS_BOTH, OFFERS_GPU, None),
        (WANTS_BOTH, OTHER_DEVICES, None),
    ),
    *both(
        "DynamicResources", SLICE, ADD, (USES_CLAIM, None, LARGE), (USES_CLAIM, None, SMALL), (OPEN, GPU_CLASS, LACKING)
    ),
    *both(
        "DynamicResources",
        SLICE,
        UPDATE,
        (USES_CLAIM, SMALL, LARGE),
        (USES_CLAIM, SMALL, MORE_SMALL),
        (OPEN, GPU_CLASS, LACKING),
    ),
    *both(
        "DynamicResources",
        SLICE,
        DELETE,
        (USES_CLAIM, SMALL, None, dra.make_slice("large", [dra.device("y", attributes={"model": "large"})], node="n1")),
        (USES_CLAIM, LARGE, None),
        (OPEN, GPU_CLASS, LACKING),
    ),
)

# Policies of old


def service(name: str = "s", **selector: str) -> Service:
    document = {"metadata": {"name": name, "namespace": "default"}, "spec": {"selector": selector}}
    decoded: Service = kinds.SERVICE.decoder.decode(msgspec.json.encode(document))
    return decoded


PRESENT = {"presentLabels": ["disk"]}
RACKS = {"affinityLabels": ["rack"]}
RACK_1, RACK_2 = make_node(labels={"rack": "1"}), make_node(labels={"rack": "2"})
READY, UNREADY = condition_node(Ready="True"), condition_node(Ready="False")
DISKS = {
    "MaxEBSVolumeCount": ({"awsElasticBlockStore": {"volumeID": "vol-1"}}, "kubernetes.io/aws-ebs", "aws-ebs"),
    "MaxGCEPDVolumeCount": ({"gcePersistentDisk": {"pdName": "disk"}}, "kubernetes.io/gce-pd", "gce-pd"),
    "MaxAzureDiskVolumeCount": (
        {"azureDisk": {"diskName": "d", "diskURI": "/d"}},
        "kubernetes.io/azure-disk",
        "azure-disk",
    ),
    "MaxCinderVolumeCount": ({"cinder": {"volumeID": "vol-1"}}, "kubernetes.io/cinder", "cinder"),
}


def disks(plugin: str, source: dict[str, Any], migrated: str, kind: str) -> Iterator[Case]:
    pod = make_pod("waiting", volumes=[{"name": "d", **source}])
    gone = make_pod("gone", node="n1", volumes=[{"name": "d", **source}])
    taken_over = make_csi_node(migrated=(migrated,))
    few, many = (make_node(allocatable={f"attachable-volumes-{kind}": count}) for count in ("1", "2"))
    yield from both(plugin, Resource.CSI_NODE, ADD, (pod, None, taken_over), (pod, None, make_csi_node()))
    yield from both(
        plugin, Resource.CSI_NODE, UPDATE, (pod, make_csi_node(), taken_over), (pod, taken_over, make_csi_node())
    )
    yield from both(plugin, NODE, ALLOCATABLE, (pod, few, many), (pod, many, few))
    yield from both(plugin, POD, DELETE, (pod, gone, None), (pod, OLD_USER_OF_NOTHING, None))


OLD_USER_OF_NOTHING = make_pod("gone", node="n1", volumes=[{"name": "e", "emptyDir": {}}])

CLASSIC = (
    *both("NodeLabel", NODE, ADD, (WAITING, None, SSD), (WAITING, None, OPEN), args=PRESENT),
    *both("NodeLabel", NODE, LABEL, (WAITING, OPEN, SSD), (WAITING, SSD, OPEN), args=PRESENT),
    *both("ServiceAffinity", POD, ADD, (UNASSUMING, None, PLAIN), (UNASSUMING, None, placed("db")), args=RACKS),
    *both("ServiceAffinity", POD, DELETE, (UNASSUMING, PLAIN, None), (UNASSUMING, placed("db"), None), args=RACKS),
    *both(
        "ServiceAffinity",
        POD,
        POD_LABEL,
        (UNASSUMING, PLAIN, placed("db")),
        (UNASSUMING, placed("x"), placed("db")),
        args=RACKS,
    ),
    *both("ServiceAffinity", NODE, LABEL, (UNASSUMING, RACK_1, RACK_2), (UNASSUMING, ZONE_A, ZONE_B), args=RACKS),
    *(
        case
        for action, old, new, old_other, new_other in (
            (ADD, None, service(app="web"), None, service(app="db")),
            (UPDATE, service(app="db"), service(app="web"), service(app="db"), service(app="cache")),
            (DELETE, service(app="web"), None, service(app="db"), None),
        )
        for case in both(
            "ServiceAffinity",
            Resource.SERVICE,
            action,
            (UNASSUMING, old, new),
            (UNASSUMING, old_other, new_other),
            args=RACKS,
        )
    ),
    *both("CheckNodeCondition", NODE, ADD, (WAITING, None, READY), (WAITING, None, UNREADY)),
    *both("CheckNodeCondition", NODE, CONDITION, (WAITING, UNREADY, READY), (WAITING, READY, UNREADY)),
    *both("CheckNodeCondition", NODE, TAINT, (WAITING, CORDONED, READY), (WAITING, CORDONED, UNREADY)),
    *(
        case
        for plugin, kind in (
            ("CheckNodeMemoryPressure", "MemoryPressure"),
            ("CheckNodeDiskPressure", "DiskPressure"),
            ("CheckNodePIDPressure", "PIDPressure"),
        )
        for pressed, calm in ((condition_node(**{kind: "True"}), condition_node(**{kind: "False"})),)
        for case in (
            *both(plugin, NODE, ADD, (WAITING, None, calm), (WAITING, None, pressed)),
            *both(plugin, NODE, CONDITION, (WAITING, pressed, calm), (WAITING, calm, pressed)),
        )
    ),
    *(case for plugin, (source, migrated, kind) in DISKS.items() for case in disks(plugin, source, migrated, kind)),
)

WITH_MINOR = tuple([replace(case, known=(*case.known, MINOR)) for case in OTHER_PODS])
CASES = (*NODES, *RESOURCES, *WITH_MINOR, *WELCOME, *LIMITS, *VOLUMES, *DEVICES, *CLASSIC)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_answers(case: Case) -> None:
    assert answer(case) is case.queues


def test_nothing_is_left_out() -> None:
    """Each event that a plugin asks for has cases of both answers, unless it is said why it has not; and nothing else
    has any."""
    answers: dict[tuple[str, Resource, Action], set[bool]] = {}
    for case in CASES:
        answers.setdefault((case.plugin, case.resource, case.action), set()).add(case.queues)
    expected: dict[tuple[str, Resource, Action], set[bool]] = {}
    always = set()
    for name in IN_TREE:
        for registration in plugin_of(name).events():
            for action in actions_of(registration.event):
                key = (name, registration.event.resource, action)
                if registration.hint is None:
                    always.add(key)
                else:
                    expected[key] = {False} if key in NEVER else {False, True}
    assert answers == expected
    assert always == set(ALWAYS)
    assert set(NEVER) <= set(expected)


def test_whoever_refuses_says_what_helps() -> None:
    refusing = (PreEnqueue, PreFilter, NodeFilter, Filter, Reserve, Permit)
    plugins = [plugin_of(name) for name in IN_TREE]
    assert [plugin.name for plugin in plugins if isinstance(plugin, refusing) and not plugin.events()] == []
