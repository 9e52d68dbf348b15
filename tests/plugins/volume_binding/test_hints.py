"""Both answers of each hint."""

from __future__ import annotations

import pytest

from kube_pyscheduler.framework.cluster_event import Action, Resource
from kube_pyscheduler.plugins.volume_binding.plugin import VolumeBinding
from tests.builders import make_pod
from tests.plugins.asking import ask, registered
from tests.storage import (
    ZONE,
    claim_volumes,
    make_capacity,
    make_claim,
    make_class,
    make_csi_node,
    make_driver,
    make_volume,
)

PLUGIN = VolumeBinding()
EPHEMERAL = {"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
INLINE = {"name": "i", "csi": {"driver": "csi.example"}}
POD = make_pod(volumes=[*claim_volumes("c"), EPHEMERAL, INLINE])
CHANGE = Action.ADD | Action.UPDATE


def test_events() -> None:
    assert registered(PLUGIN) == {
        Resource.STORAGE_CLASS: CHANGE,
        Resource.PERSISTENT_VOLUME_CLAIM: CHANGE,
        Resource.PERSISTENT_VOLUME: CHANGE,
        Resource.NODE: Action.ADD | Action.UPDATE_NODE_LABEL,
        Resource.CSI_NODE: CHANGE,
        Resource.CSI_DRIVER: Action.UPDATE,
        Resource.CSI_STORAGE_CAPACITY: CHANGE,
    }


def test_whatever_happens_to_volumes_and_nodes_may_help() -> None:
    assert ask(PLUGIN, Resource.PERSISTENT_VOLUME, Action.UPDATE, POD, make_volume(), make_volume())
    assert ask(PLUGIN, Resource.NODE, Action.UPDATE_NODE_LABEL, POD, None, None)


def test_a_class_changed() -> None:
    narrow, wide = make_class(topologies=[{ZONE: ["z1"]}]), make_class()
    for old, new, helps in ((None, narrow, True), (narrow, wide, True), (narrow, narrow, False)):
        assert ask(PLUGIN, Resource.STORAGE_CLASS, Action.UPDATE, POD, old, new) is helps


@pytest.mark.parametrize(
    ("name", "namespace", "helps"),
    [("c", "default", True), ("p-e", "default", True), ("c", "other", False), ("p-i", "default", False)],
)
def test_a_claim_changed(name: str, namespace: str, helps: bool) -> None:
    claim = make_claim(name, namespace=namespace)
    assert ask(PLUGIN, Resource.PERSISTENT_VOLUME_CLAIM, Action.UPDATE, POD, claim, claim) is helps


def test_a_csi_node_changed() -> None:
    before, after = make_csi_node(), make_csi_node(migrated=("kubernetes.io/aws-ebs",))
    limited = make_csi_node(limits={"d": 1})
    for old, new, helps in ((None, before, True), (before, after, True), (before, limited, False)):
        assert ask(PLUGIN, Resource.CSI_NODE, Action.UPDATE, POD, old, new) is helps


def test_a_driver_changed() -> None:
    counted, uncounted = make_driver(storageCapacity=True), make_driver(storageCapacity=False)
    other = make_driver("other", storageCapacity=True), make_driver("other", storageCapacity=False)
    for old, new, helps in (
        (counted, uncounted, True),
        (uncounted, counted, False),
        (counted, counted, False),
        (*other, False),
    ):
        assert ask(PLUGIN, Resource.CSI_DRIVER, Action.UPDATE, POD, old, new) is helps


@pytest.mark.parametrize(
    ("before", "after", "helps"),
    [
        (("1Gi", None), ("2Gi", None), True),
        (("2Gi", None), ("1Gi", None), False),
        (("1Gi", None), ("1Gi", None), False),
        ((None, None), ("1Gi", None), True),
        (("1Gi", None), (None, None), False),
        (("1Gi", "1Gi"), ("2Gi", "1Gi"), False),
        (("1Gi", "1Gi"), ("1Gi", "2Gi"), True),
    ],
)
def test_a_capacity_changed(
    before: tuple[str | None, str | None], after: tuple[str | None, str | None], helps: bool
) -> None:
    old, new = (make_capacity(capacity=capacity, largest=largest) for capacity, largest in (before, after))
    assert ask(PLUGIN, Resource.CSI_STORAGE_CAPACITY, Action.UPDATE, POD, old, new) is helps
    assert ask(PLUGIN, Resource.CSI_STORAGE_CAPACITY, Action.ADD, POD, None, new)
