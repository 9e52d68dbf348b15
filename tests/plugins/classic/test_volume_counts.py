"""The limits of volumes by kind: which volumes count, which limit holds, and agreement with a plain twin."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np
import pytest

from kube_pyscheduler.framework.cluster_event import Resource
from kube_pyscheduler.framework.interfaces import RowChange
from kube_pyscheduler.framework.row_changes import StatedChanges
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod, VolumeSources
from kube_pyscheduler.objects.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from kube_pyscheduler.plugins import IN_TREE
from kube_pyscheduler.plugins.classic.volume_counts import LIMIT_VARIABLE, MaxEBSVolumeCount
from tests.builders import make_node, make_pod
from tests.clusters import Cluster
from tests.plugins.classic.world import profile_of
from tests.plugins.volume_world import VolumeWorld
from tests.storage import claim_volumes, make_claim, make_class, make_csi_node, make_volume, put

EXCEEDED = "node(s) exceed max volume count"
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
LIMIT = "attachable-volumes-aws-ebs"


class Twin:
    """MaxEBSVolumeCount as one loop over the pods of a node."""

    def __init__(self, world: VolumeWorld, usual: int) -> None:
        self._objects = world.objects
        self._usual = usual

    def refuses(self, pod: Pod, node: Node, pods: Iterable[Pod]) -> bool:
        wanted = self._disks(pod)
        csi_node = self._objects.get(("CSINode", node.name))
        if isinstance(csi_node, CSINode) and "kubernetes.io/aws-ebs" in csi_node.metadata.annotations.get(MIGRATED, ""):
            return False
        held = set().union(*[self._disks(other) for other in pods])
        limit = int(node.status.allocatable.get(LIMIT, self._usual))
        return bool(wanted) and len(held | wanted) > limit

    def _disks(self, pod: Pod) -> set[str]:
        found = set()
        for volume in pod.spec.volumes:
            if volume.aws_elastic_block_store is not None:
                found.add(volume.aws_elastic_block_store.volume_id)
            elif volume.persistent_volume_claim is not None:
                found |= self._of_claim(f"{pod.namespace}/{volume.persistent_volume_claim.claim_name}")
            elif volume.ephemeral is not None:
                found |= self._of_claim(f"{pod.namespace}/{pod.name}-{volume.name}")
        return found

    def _of_claim(self, key: str) -> set[str]:
        claim = self._objects.get(("PersistentVolumeClaim", key))
        if not isinstance(claim, PersistentVolumeClaim):
            return set()
        volume = self._objects.get(("PersistentVolume", claim.spec.volume_name))
        if isinstance(volume, PersistentVolume):
            source: VolumeSources = volume.spec
            return {source.aws_elastic_block_store.volume_id} if source.aws_elastic_block_store is not None else set()
        storage_class = self._objects.get(("StorageClass", claim.spec.storage_class_name or ""))
        if isinstance(storage_class, StorageClass) and storage_class.provisioner == "kubernetes.io/aws-ebs":
            return {f"claim {key}"}
        return set()


def state_limit(world: VolumeWorld) -> None:
    """One node says how many volumes it takes, or no longer does."""
    if not world.nodes:
        return
    node = world.nodes[world.rng.choice(sorted(world.nodes))]
    allocatable = {key: amount for key, amount in node.status.allocatable.items() if key != LIMIT}
    if world.rng.random() < 0.6:
        allocatable[LIMIT] = world.rng.choice(["0", "1", "3"])
    changed = msgspec.structs.replace(node, status=msgspec.structs.replace(node.status, allocatable=allocatable))
    world.nodes[node.name] = changed
    world.cluster.cache.set_node(changed)


@pytest.mark.parametrize("seed", range(3))
def test_counts_agree_with_the_plain_twin_after_any_events(seed: int) -> None:
    world = VolumeWorld(random.Random(seed))
    plugin, twin = MaxEBSVolumeCount({LIMIT_VARIABLE: "2"}), Twin(world, 2)
    refused = 0
    for step in range(3000):
        world.step()
        if step % 5 == 0:
            state_limit(world)
        if step % 3:
            continue
        pod = world.new_pod()
        ctx, info = world.context(pod)
        kernel = plugin.filter_kernel(ctx, info)
        names = sorted(world.nodes)
        expected = [twin.refuses(pod, world.nodes[name], world.pods_on(name)) for name in names]
        if kernel is None:
            assert not any(expected)
            continue
        refused += sum(expected)
        rows = np.array([ctx.table.row_of[name] for name in names], dtype=np.int64)
        assert kernel.codes(ctx.table, ctx.table.all_rows)[rows].tolist() == expected
        assert kernel.codes(ctx.table, rows).tolist() == expected
        changes = {name: world.random_change(name) for name in names if world.rng.random() < 0.7}
        changed = [twin.refuses(pod, world.nodes[name], pods_after(world, name, changes.get(name))) for name in names]
        stated = StatedChanges({ctx.table.row_of[name]: change for name, change in changes.items()})
        assert kernel.codes_if(ctx.table, rows, stated).tolist() == changed
    assert refused > 120


def pods_after(world: VolumeWorld, node: str, change: RowChange | None) -> list[Pod]:
    there = world.pods_on(node)
    if change is None:
        return there
    gone = {info.uid for info in change.removed}
    return [pod for pod in there if pod.uid not in gone] + [info.pod for info in change.added]


def disk(kind: str, number: int) -> dict[str, Any]:
    return {
        "MaxEBSVolumeCount": {"awsElasticBlockStore": {"volumeID": f"vol-{number}"}},
        "MaxGCEPDVolumeCount": {"gcePersistentDisk": {"pdName": f"disk-{number}"}},
        "MaxAzureDiskVolumeCount": {"azureDisk": {"diskName": f"disk-{number}", "diskURI": f"/{number}"}},
        "MaxCinderVolumeCount": {"cinder": {"volumeID": f"volume-{number}"}},
    }[kind]


def holder(kind: str, numbers: Iterable[int], node: str = "") -> Pod:
    volumes = [{"name": f"v{number}", **disk(kind, number)} for number in numbers]
    return make_pod("holder" if node else "p", node=node, volumes=volumes)


LIMITS = [
    ("MaxEBSVolumeCount", 39, {}),
    ("MaxEBSVolumeCount", 25, {"node.kubernetes.io/instance-type": "m5.large"}),
    ("MaxEBSVolumeCount", 25, {"beta.kubernetes.io/instance-type": "t3.small"}),
    ("MaxEBSVolumeCount", 39, {"node.kubernetes.io/instance-type": "m4.large"}),
    ("MaxGCEPDVolumeCount", 16, {}),
    ("MaxAzureDiskVolumeCount", 16, {}),
    ("MaxCinderVolumeCount", 256, {}),
]


@pytest.mark.parametrize(("kind", "limit", "labels"), LIMITS)
def test_the_usual_limit_of_each_kind(kind: str, limit: int, labels: dict[str, str]) -> None:
    node = make_node("n", labels=labels)
    cluster = Cluster([node], [holder(kind, range(limit - 1), "n")], profile_of(kind))
    assert cluster.fit(holder(kind, [limit])) == {"n"}
    assert cluster.fit(holder(kind, [0, 1, limit])) == {"n"}, "volumes that are there already count once"
    assert cluster.refusals(holder(kind, [limit, limit + 1]))["n"].reasons == (EXCEEDED,)


@pytest.mark.parametrize(("kind", "limit", "labels"), LIMITS)
def test_other_kinds_do_not_count(kind: str, limit: int, labels: dict[str, str]) -> None:
    other = "MaxCinderVolumeCount" if kind != "MaxCinderVolumeCount" else "MaxEBSVolumeCount"
    cluster = Cluster([make_node("n", labels=labels)], [holder(other, range(limit), "n")], profile_of(kind))
    assert cluster.fit(holder(kind, [1])) == {"n"}


def test_what_the_node_says_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, "2")
    kind = "MaxEBSVolumeCount"
    nodes = [make_node("silent"), make_node("small", allocatable={LIMIT: "1"})]
    cluster = Cluster(nodes, profile=profile_of(kind))
    assert cluster.fit(holder(kind, [1])) == {"silent", "small"}
    assert cluster.fit(holder(kind, [1, 2])) == {"silent"}
    assert cluster.fit(holder(kind, [1, 2, 3])) == set()


@pytest.mark.parametrize("text", ["", "0", "-3", "many"])
def test_an_environment_that_makes_no_sense_is_ignored(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, text)
    cluster = Cluster([make_node("n")], profile=profile_of("MaxGCEPDVolumeCount"))
    assert cluster.fit(holder("MaxGCEPDVolumeCount", range(16))) == {"n"}
    assert cluster.fit(holder("MaxGCEPDVolumeCount", range(17))) == set()


def test_nodes_whose_volumes_a_driver_took_over_are_left_to_it() -> None:
    kind = "MaxEBSVolumeCount"
    cluster = Cluster([make_node("n", allocatable={LIMIT: "1"})], profile=profile_of(kind))
    assert cluster.fit(holder(kind, [1, 2])) == set()
    put(cluster.cache.listers, make_csi_node("n", {"ebs.csi.aws.com": 1}, ("kubernetes.io/aws-ebs",)))
    assert cluster.fit(holder(kind, [1, 2])) == {"n"}


def test_a_claim_counts_as_the_volume_it_is_bound_to() -> None:
    source = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
    cluster = Cluster([make_node("n", allocatable={LIMIT: "1"})], profile=profile_of("MaxEBSVolumeCount"))
    listers = cluster.cache.listers
    claim = make_claim("c", volume="v")
    for item in (claim, make_volume("v", source=source, claim=claim), make_claim("d", storage_class="aws")):
        put(listers, item)
    cluster.cache.set_pod(holder("MaxEBSVolumeCount", [1], "n"))
    pending = make_pod("p", volumes=claim_volumes("c"))
    assert cluster.fit(pending) == {"n"}, "the same volume"
    waiting = make_pod("p", volumes=claim_volumes("d"))
    assert cluster.fit(waiting) == {"n"}, "a claim of no known class is not of this kind"
    put(listers, make_class("aws", provisioner="kubernetes.io/aws-ebs"))
    assert cluster.fit(waiting) == set()


def test_a_pod_that_leaves_helps_if_it_had_such_a_volume() -> None:
    plugin = IN_TREE["MaxEBSVolumeCount"](None)
    (hint,) = [registration.hint for registration in plugin.events() if registration.event.resource == Resource.POD]
    assert hint is not None
    waiting = holder("MaxEBSVolumeCount", [9])
    view: Any = None
    assert hint(waiting, holder("MaxEBSVolumeCount", [1], "n"), None, view).value == "Queue"
    assert hint(waiting, make_pod("q", node="n", volumes=claim_volumes("c")), None, view).value == "Queue"
    assert hint(waiting, holder("MaxEBSVolumeCount", [1]), None, view).value == "QueueSkip"
    assert hint(waiting, holder("MaxCinderVolumeCount", [1], "n"), None, view).value == "QueueSkip"


def test_plugins_that_come_and_go_leave_nothing_behind() -> None:
    cluster = Cluster([make_node("n1")])
    attached = []
    for _ in range(2):
        cluster.add_filter(MaxEBSVolumeCount({}))
        cluster.engine.prepare([cluster.profile])
        attached.append(len(cluster.cache.table._attached))
    assert attached[0] == attached[1]
