"""Answers that depend on more than the event."""

from __future__ import annotations

import pytest

from kube_pyscheduler.framework.cluster_event import Action, Resource
from tests.builders import make_node, make_pod
from tests.plugins.hints import Case, answer
from tests.storage import ZONE, claim_volumes, make_capacity, make_claim, make_class, make_csi_node, make_volume

POD = make_pod(volumes=claim_volumes("c"))
EPHEMERAL = make_pod(volumes=[{"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}])


@pytest.mark.parametrize(
    ("before", "after", "helps"),
    [
        (("1Gi", None), ("2Gi", None), True),
        (("2Gi", None), ("1Gi", None), False),
        (("2Gi", None), ("3Gi", None), False),
        ((None, None), ("2Gi", None), True),
        (("1Gi", None), (None, None), False),
        (("1Gi", "1Gi"), ("2Gi", "1Gi"), False),
        (("1Gi", "1Gi"), ("1Gi", "2Gi"), True),
    ],
)
def test_room_helps_where_it_becomes_enough(
    before: tuple[str | None, str | None], after: tuple[str | None, str | None], helps: bool
) -> None:
    old, new = (make_capacity(capacity=capacity, largest=largest) for capacity, largest in (before, after))
    known = (make_claim(size="2Gi"), make_class())
    resource = Resource.CSI_STORAGE_CAPACITY
    assert answer(Case("VolumeBinding", resource, Action.UPDATE, POD, old, new, helps, known)) is helps


def test_claims_of_ephemeral_volumes_are_waited_for_by_their_names() -> None:
    for name, helps in (("p-e", True), ("e", False)):
        case = Case(
            "VolumeBinding", Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, EPHEMERAL, None, make_claim(name), helps
        )
        assert answer(case) is helps


def test_nothing_about_nodes_or_volumes_helps_before_all_claims_are_ready() -> None:
    known = (make_claim(), make_class(mode="Immediate"))
    for resource, new in ((Resource.NODE, make_node()), (Resource.PERSISTENT_VOLUME, make_volume())):
        assert not answer(Case("VolumeBinding", resource, Action.ADD, POD, None, new, False, known))


def test_labels_matter_that_volumes_waiting_for_a_claim_ask_for() -> None:
    known = (make_claim(), make_class(), make_volume(nodes={"rack": ["r1"]}))
    for labels, helps in (({"rack": "r1"}, True), ({ZONE: "z1"}, False)):
        old, new = make_node(), make_node(labels=labels)
        case = Case("VolumeBinding", Resource.NODE, Action.UPDATE_NODE_LABEL, POD, old, new, helps, known)
        assert answer(case) is helps


def test_volumes_of_drivers_do_not_care_what_is_migrated() -> None:
    claim = make_claim(volume="v")
    new = make_csi_node(migrated=("kubernetes.io/aws-ebs",))
    case = Case(
        "VolumeBinding", Resource.CSI_NODE, Action.ADD, POD, None, new, False, (claim, make_volume(claim=claim))
    )
    assert not answer(case)
