"""From the decision to bound claims, and all that can go wrong on the way."""

from __future__ import annotations

from typing import Any

import pytest

from kube_pyscheduler.config.args import VolumeBindingArgs
from kube_pyscheduler.framework.status import SKIP
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.objects.storage import PersistentVolume, PersistentVolumeClaim
from kube_pyscheduler.plugins.volume_binding.plugin import VolumeBinding
from tests.builders import make_node, make_pod
from tests.clusters import Cluster
from tests.plugins.volume_binding.memory import Attempt, MemoryHandle
from tests.storage import (
    BOUND,
    HOSTNAME,
    SELECTED_NODE,
    ZONE,
    claim_volumes,
    make_claim,
    make_class,
    make_csi_node,
    make_volume,
)

CLAIM = make_claim("c", size="2Gi")
SMALL, LARGE = make_volume("small", size="3Gi"), make_volume("large", size="4Gi")
TOO_SMALL = make_volume("a-too-small", size="1Gi")
SELECTED = {SELECTED_NODE: "n1"}


class Scene:
    """A cluster with two nodes, one class, these objects, and a pod that uses some claims."""

    def __init__(self, *stored: Any, claims: tuple[str, ...] = ("c",), timeout: int = 600) -> None:
        self.cluster = Cluster()
        nodes = [make_node("n1", labels={ZONE: "z1"}), make_node("n2", labels={ZONE: "z2"})]
        self.api = MemoryHandle(self.cluster, *nodes, make_class(), *stored)
        self.plugin = VolumeBinding(VolumeBindingArgs(bind_timeout_seconds=timeout))
        self.pod: Pod = make_pod(volumes=claim_volumes(*claims))

    def attempt(self, pod: Pod | None = None) -> Attempt:
        return Attempt(self.cluster, self.plugin, pod or self.pod)

    def reserved(self, node: str = "n1") -> Attempt:
        attempt = self.attempt()
        assert attempt.reserve(node) is None
        assert attempt.pre_flight(node) is None
        return attempt

    def bound(self, claim: PersistentVolumeClaim, volume: str) -> None:
        """The controllers agree."""
        annotations = self.api.stored["PersistentVolumeClaim", claim.key].metadata.annotations
        self.api.change(claim, spec__volumeName=volume, metadata__annotations={**annotations, **BOUND})

    def latest_volume(self, name: str) -> PersistentVolume:
        found = self.cluster.cache.listers.persistent_volumes.latest(name)
        assert found is not None
        return found

    def latest_claim(self, key: str = "default/c") -> PersistentVolumeClaim:
        found = self.cluster.cache.listers.persistent_volume_claims.latest(key)
        assert found is not None
        return found


def provisioned(scene: Scene, **options: Any) -> PersistentVolume:
    """The provisioner made a volume for the claim."""
    volume = make_volume("made", claim=CLAIM, **options)
    scene.api.stored["PersistentVolume", "made"] = volume
    return volume


# Static volumes


async def test_a_claim_gets_the_smallest_volume_that_suits_it() -> None:
    scene = Scene(CLAIM, LARGE, SMALL, TOO_SMALL)
    attempt = scene.reserved()
    assert scene.latest_volume("small").spec.claim_ref is not None
    scene.api.steps = [lambda: scene.api.tell(SMALL), lambda: scene.bound(CLAIM, "small")]
    assert await attempt.pre_bind(scene.api, "n1") == ""
    reference = {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": "default",
        "name": "c",
        "uid": CLAIM.metadata.uid,
        "resourceVersion": "1",
    }
    metadata = {"resourceVersion": "1", "annotations": {"pv.kubernetes.io/bound-by-controller": "yes"}}
    patch = {"metadata": metadata, "spec": {"claimRef": reference}}
    assert scene.api.patches == [("PersistentVolume", "small", patch)]


async def test_a_volume_that_a_user_meant_for_the_claim_wins_over_smaller_ones() -> None:
    meant = make_volume("meant", size="9Gi", claimRef={"namespace": "default", "name": "c"})
    scene = Scene(CLAIM, SMALL, meant)
    attempt = scene.reserved()
    scene.api.steps = [lambda: scene.api.tell(meant), lambda: scene.bound(CLAIM, "meant")]
    assert await attempt.pre_bind(scene.api, "n1") == ""
    assert [(kind, name) for kind, name, _patch in scene.api.patches] == [("PersistentVolume", "meant")]
    assert "annotations" not in scene.api.patches[0][2]["metadata"]


def test_an_assumed_volume_is_not_given_to_another_claim_until_it_is_given_back() -> None:
    other = make_claim("d", size="2Gi")
    scene = Scene(CLAIM, other, SMALL, make_class(provisioner="kubernetes.io/no-provisioner"))
    first = scene.reserved()
    second = make_pod("q", volumes=claim_volumes("d"))
    assert scene.attempt(second).fits == set()
    first.unreserve("n1")
    assert scene.latest_volume("small").spec.claim_ref is None
    assert scene.attempt(second).fits == {"n1", "n2"}


def test_what_the_watch_tells_wins_over_what_is_assumed() -> None:
    scene = Scene(CLAIM, SMALL)
    first = scene.reserved()
    scene.api.change(SMALL, metadata__labels={"new": "label"})
    assert scene.latest_volume("small").spec.claim_ref is None
    first.unreserve("n1")
    assert scene.latest_volume("small").metadata.labels == {"new": "label"}


async def test_a_volume_that_changed_meanwhile_is_not_overwritten() -> None:
    other = make_claim("d")
    scene = Scene(CLAIM, other, SMALL, make_volume("z-other", size="2Gi"), claims=("c", "d"))
    attempt = scene.reserved()
    scene.api.change(SMALL, told=False, metadata__labels={"new": "label"})
    assert await attempt.pre_bind(scene.api, "n1") == "the object small has been modified"
    assert [name for _kind, name, _patch in scene.api.patches] == ["z-other", "small"]
    attempt.unreserve("n1")
    assert scene.latest_volume("small").spec.claim_ref is None
    # What was written stays so, until the watch says otherwise.
    assert scene.latest_volume("z-other").spec.claim_ref is not None


async def test_a_binding_that_was_undone_ends_the_wait() -> None:
    scene = Scene(CLAIM, SMALL)
    attempt = scene.reserved()
    scene.api.steps = [lambda: scene.api.tell(SMALL), lambda: scene.api.change(SMALL, spec__claimRef=None)]
    assert await attempt.pre_bind(scene.api, "n1") == 'binding volumes: ClaimRef got reset for pv "small"'


async def test_a_volume_that_cannot_be_reached_any_more_ends_the_wait() -> None:
    local = make_volume("local", size="2Gi", nodes={HOSTNAME: ["n1"]})
    scene = Scene(CLAIM, local)
    attempt = scene.reserved()
    scene.api.steps = [
        lambda: scene.api.tell(local),
        lambda: scene.cluster.cache.set_node(make_node("n1", labels={HOSTNAME: "other"})),
    ]
    problem = await attempt.pre_bind(scene.api, "n1")
    assert problem == (
        'binding volumes: pv "local" node affinity doesn\'t match node "n1": no matching NodeSelectorTerms'
    )


# Provisioning


async def test_bc_41_the_claim_names_the_node_and_the_pod_waits_for_its_volume() -> None:
    scene = Scene(CLAIM)
    attempt = scene.reserved()
    assert scene.latest_claim().metadata.annotations == SELECTED
    waited: list[str] = []

    def provision() -> None:
        waited.append("provisioning")
        scene.api.tell(CLAIM)
        provisioned(scene)
        scene.bound(CLAIM, "made")

    scene.api.steps = [provision, lambda: scene.api.tell(scene.api.stored["PersistentVolume", "made"])]
    assert await attempt.pre_bind(scene.api, "n1") == ""
    assert waited == ["provisioning"]
    patch = {"metadata": {"resourceVersion": "1", "annotations": SELECTED}}
    assert scene.api.patches == [("PersistentVolumeClaim", "default/c", patch)]


async def test_bc_41_a_pod_waits_ten_minutes_by_default() -> None:
    scene = Scene(CLAIM)
    scene.plugin = VolumeBinding()
    attempt = scene.reserved()
    assert await attempt.pre_bind(scene.api, "n1") == "binding volumes: context deadline exceeded"
    assert scene.api.time == 600


async def test_without_a_timeout_the_writes_are_sent_and_nothing_is_waited_for() -> None:
    scene = Scene(CLAIM, timeout=0)
    attempt = scene.reserved()
    scene.api.steps = [lambda: scene.bound(CLAIM, "made")]
    assert await attempt.pre_bind(scene.api, "n1") == "binding volumes: context deadline exceeded"
    assert len(scene.api.patches) == 1


@pytest.mark.parametrize(
    ("annotations", "problem"),
    [
        ({}, 'selectedNode annotation reset for PVC "c"'),
        ({"other": "annotation"}, 'provisioning failed for PVC "c"'),
        ({SELECTED_NODE: "n2"}, 'provisioning failed for PVC "c"'),
    ],
)
async def test_bc_80_where_provisioning_failed_another_node_is_tried_first(
    annotations: dict[str, str], problem: str
) -> None:
    scene = Scene(CLAIM)
    attempt = scene.reserved()
    scene.api.steps = [
        lambda: scene.api.tell(CLAIM),
        lambda: scene.api.change(CLAIM, metadata__annotations=annotations),
    ]
    assert await attempt.pre_bind(scene.api, "n1") == f"binding volumes: {problem}"
    attempt.unreserve("n1")
    scene.api.change(CLAIM, metadata__annotations={})
    again = scene.attempt()
    assert again.kernel is not None
    table = scene.cluster.cache.table
    assert [table.names[row] for row in again.kernel.last_resort] == ["n1"]


async def test_bc_80_the_next_attempt_goes_elsewhere_while_there_is_an_elsewhere() -> None:
    scene = Scene(CLAIM)
    plugin = next(found for found in scene.cluster.profile.reserve if isinstance(found, VolumeBinding))
    scene.plugin = plugin
    failed: list[str] = []
    for _ in range(4):
        decision = scene.cluster.schedule(scene.pod, seed=7)
        assert decision.node is not None
        attempt = scene.reserved(decision.node)
        scene.api.steps = [
            lambda: scene.api.tell(CLAIM),
            lambda: scene.api.change(CLAIM, metadata__annotations={}),
        ]
        assert await attempt.pre_bind(scene.api, decision.node) != ""
        attempt.unreserve(decision.node)
        failed.append(decision.node)
    assert sorted(failed[:2]) == ["n1", "n2"]
    assert failed[1] != failed[0]
    assert failed[3] != failed[2]


async def test_a_node_that_failed_once_is_forgotten_with_success() -> None:
    scene = Scene(CLAIM)
    attempt = scene.reserved("n1")
    scene.api.steps = [lambda: scene.api.tell(CLAIM), lambda: scene.api.change(CLAIM, metadata__annotations={})]
    assert await attempt.pre_bind(scene.api, "n1") != ""
    attempt.unreserve("n1")
    attempt = scene.reserved("n2")
    scene.api.steps = [
        lambda: scene.api.tell(provisioned(scene)),
        lambda: scene.bound(CLAIM, "made"),
    ]
    assert await attempt.pre_bind(scene.api, "n2") == ""
    kernel = scene.attempt().kernel
    assert kernel is not None
    assert list(kernel.last_resort) == []


async def test_a_volume_that_was_made_elsewhere_ends_the_wait() -> None:
    scene = Scene(CLAIM)
    attempt = scene.reserved()
    scene.api.steps = [
        lambda: scene.api.tell(provisioned(scene, nodes={ZONE: ["z2"]})),
        lambda: scene.bound(CLAIM, "made"),
    ]
    assert 'pv "made" node affinity doesn\'t match node "n1"' in await attempt.pre_bind(scene.api, "n1")


async def test_an_in_tree_volume_is_looked_for_where_its_driver_says() -> None:
    ebs = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
    for zone, succeeds in (("z1", True), ("z2", False)):
        csi_node = make_csi_node("n1", migrated=("kubernetes.io/aws-ebs",))
        node = make_node("n1", labels={ZONE: "z1", "topology.ebs.csi.aws.com/zone": zone})
        scene = Scene(CLAIM, csi_node, node)
        attempt = scene.reserved()
        scene.api.steps = [
            lambda scene=scene: scene.api.tell(provisioned(scene, source=ebs, nodes={ZONE: ["z1"]})),
            lambda scene=scene: scene.bound(CLAIM, "made"),
        ]
        assert (await attempt.pre_bind(scene.api, "n1") == "") is succeeds


@pytest.mark.parametrize(
    ("what", "problem"),
    [
        ("claim", 'failed to check provisioning pvc: persistentvolumeclaims "default/c" not found'),
        ("node", 'failed to get node "n1": node "n1" not found'),
    ],
)
async def test_what_went_away_ends_the_wait(what: str, problem: str) -> None:
    scene = Scene(CLAIM)
    attempt = scene.reserved()
    scene.api.steps = [lambda: scene.api.lose(CLAIM if what == "claim" else make_node("n1"))]
    assert await attempt.pre_bind(scene.api, "n1") == f"binding volumes: {problem}"


@pytest.mark.parametrize(
    ("gone", "problem"),
    [(SMALL, 'persistentvolumes "small" not found'), (CLAIM, 'persistentvolumeclaims "default/c" not found')],
)
async def test_what_went_away_ends_the_wait_for_a_static_volume(gone: Any, problem: str) -> None:
    scene = Scene(CLAIM, SMALL)
    attempt = scene.reserved()
    scene.api.steps = [lambda: scene.api.lose(gone)]
    assert await attempt.pre_bind(scene.api, "n1") == f"binding volumes: failed to check binding: {problem}"


# Claims that pods share, and claims that need nothing


def test_a_claim_that_was_promised_to_a_node_takes_the_other_pods_there() -> None:
    scene = Scene(CLAIM)
    first = scene.reserved()
    second = scene.attempt(make_pod("q", volumes=claim_volumes("c")))
    assert second.fits == {"n1"}
    assert second.reserve("n1") is None
    first.unreserve("n1")
    second.unreserve("n1")
    assert scene.attempt().fits == {"n1", "n2"}


def test_a_pod_whose_claims_are_bound_needs_nothing() -> None:
    claim = make_claim("c", volume="v")
    scene = Scene(claim, make_volume("v", claim=claim))
    attempt = scene.attempt()
    assert attempt.reserve("n1") is None
    assert attempt.pre_flight("n1") is SKIP
    attempt.unreserve("n1")


async def test_a_pod_without_claims_needs_nothing() -> None:
    scene = Scene(claims=())
    attempt = scene.attempt()
    assert attempt.answer is SKIP
    assert attempt.reserve("n1") is None
    assert attempt.pre_flight("n1") is SKIP
    assert await attempt.pre_bind(scene.api, "n1") == ""


def test_nothing_is_assumed_when_one_volume_cannot_be() -> None:
    scene = Scene(CLAIM, make_claim("d"), SMALL, claims=("c", "d"))
    attempt = scene.attempt()
    # The smaller claim gets the volume, the other one is to be provisioned; but the watch moves on before Reserve.
    scene.api.change(CLAIM, metadata__labels={"new": "label"})
    status = attempt.reserve("n1")
    assert status is not None
    assert "out of sync" in status.message
    assert scene.latest_volume("small").spec.claim_ref is None
    assert scene.latest_claim().metadata.annotations == {}


def test_bc_40_the_next_attempt_reads_what_the_watch_told() -> None:
    scene = Scene()
    refused = scene.attempt()
    assert getattr(refused.answer, "reasons", None) == ('persistentvolumeclaim "c" not found',)
    scene.api.tell(CLAIM)
    assert scene.attempt().fits == {"n1", "n2"}
    bound = make_claim("c", volume="v", version="2")
    scene.api.tell(bound, make_volume("v", claim=bound, nodes={ZONE: ["z2"]}))
    assert scene.attempt().fits == {"n2"}
