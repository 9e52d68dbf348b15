"""Both answers of each hint."""

from __future__ import annotations

from typing import Any

import pytest

from kube_pyscheduler.framework.cluster_event import Action, Resource
from kube_pyscheduler.plugins.volume_restrictions.plugin import VolumeRestrictions
from tests.builders import make_pod
from tests.plugins.asking import ask, registered
from tests.storage import claim_volumes, make_claim

PLUGIN = VolumeRestrictions()
GCE = {"name": "d", "gcePersistentDisk": {"pdName": "disk"}}
GCE_READ_ONLY = {"name": "d", "gcePersistentDisk": {"pdName": "disk", "readOnly": True}}
OTHER_GCE = {"name": "d", "gcePersistentDisk": {"pdName": "another"}}
CLAIM = claim_volumes("c")[0]


def test_events() -> None:
    assert registered(PLUGIN) == {
        Resource.POD: Action.DELETE,
        Resource.NODE: Action.ADD,
        Resource.PERSISTENT_VOLUME_CLAIM: Action.ADD,
    }


@pytest.mark.parametrize(
    ("mine", "theirs", "namespace", "helps"),
    [
        (GCE, GCE, "default", True),
        (GCE, GCE_READ_ONLY, "default", True),
        (GCE_READ_ONLY, GCE_READ_ONLY, "default", False),
        (GCE, OTHER_GCE, "default", False),
        (GCE, GCE, "other", False),
        (CLAIM, CLAIM, "default", True),
        (CLAIM, CLAIM, "other", False),
        (CLAIM, claim_volumes("d")[0], "default", False),
        (CLAIM, GCE, "default", False),
    ],
)
def test_a_pod_went(mine: dict[str, Any], theirs: dict[str, Any], namespace: str, helps: bool) -> None:
    gone = make_pod("gone", namespace=namespace, node="n1", volumes=[theirs])
    assert ask(PLUGIN, Resource.POD, Action.DELETE, make_pod(volumes=[mine]), gone, None) is helps


@pytest.mark.parametrize(
    ("name", "namespace", "helps"), [("c", "default", True), ("c", "other", False), ("d", "default", False)]
)
def test_a_claim_came(name: str, namespace: str, helps: bool) -> None:
    claim = make_claim(name, namespace=namespace)
    pod = make_pod(volumes=[GCE, CLAIM])
    assert ask(PLUGIN, Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, pod, None, claim) is helps


def test_a_node_came() -> None:
    assert ask(PLUGIN, Resource.NODE, Action.ADD, make_pod(volumes=[GCE]), None, None)
