"""Both answers of each hint."""

from __future__ import annotations

import pytest

from kube_pyscheduler.framework.cluster_event import Action, Resource
from kube_pyscheduler.plugins.volume_zone.plugin import VolumeZone
from tests.builders import make_pod
from tests.plugins.asking import ask, registered
from tests.storage import IMMEDIATE, WAIT, ZONE, claim_volumes, make_claim, make_class, make_volume

PLUGIN = VolumeZone()
POD = make_pod(volumes=claim_volumes("c"))


def test_events() -> None:
    assert registered(PLUGIN) == {
        Resource.STORAGE_CLASS: Action.ADD,
        Resource.NODE: Action.ADD | Action.UPDATE_NODE_LABEL,
        Resource.PERSISTENT_VOLUME_CLAIM: Action.ADD | Action.UPDATE,
        Resource.PERSISTENT_VOLUME: Action.ADD | Action.UPDATE,
    }


@pytest.mark.parametrize(("mode", "helps"), [(WAIT, True), (IMMEDIATE, False), ("", False)])
def test_a_class_came(mode: str, helps: bool) -> None:
    assert ask(PLUGIN, Resource.STORAGE_CLASS, Action.ADD, POD, None, make_class(mode=mode)) is helps


@pytest.mark.parametrize(
    ("name", "namespace", "helps"), [("c", "default", True), ("c", "other", False), ("d", "default", False)]
)
def test_a_claim_changed(name: str, namespace: str, helps: bool) -> None:
    claim = make_claim(name, namespace=namespace)
    assert ask(PLUGIN, Resource.PERSISTENT_VOLUME_CLAIM, Action.UPDATE, POD, claim, claim) is helps


def test_a_volume_changed() -> None:
    here, there = make_volume(labels={ZONE: "z1", "a": "b"}), make_volume(labels={ZONE: "z2"})
    unlabelled = make_volume()
    for old, new, helps in ((None, here, True), (here, there, True), (here, unlabelled, True), (here, here, False)):
        assert ask(PLUGIN, Resource.PERSISTENT_VOLUME, Action.UPDATE, POD, old, new) is helps


def test_a_node_changed() -> None:
    assert ask(PLUGIN, Resource.NODE, Action.UPDATE_NODE_LABEL, POD, None, None)
