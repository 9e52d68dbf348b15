"""Both answers of each hint."""

from __future__ import annotations

from typing import Any

import pytest

from kube_pyscheduler.framework.cluster_event import Action, Resource
from kube_pyscheduler.plugins.node_volume_limits.plugin import NodeVolumeLimits
from tests.builders import make_pod
from tests.plugins.asking import ask, registered
from tests.storage import claim_volumes, make_attachment, make_claim, make_csi_node

PLUGIN = NodeVolumeLimits()
CLAIM = claim_volumes("c")[0]
EPHEMERAL = {"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
EBS = {"name": "d", "awsElasticBlockStore": {"volumeID": "vol-1"}}
EMPTY = {"name": "x", "emptyDir": {}}


def test_events() -> None:
    assert registered(PLUGIN) == {
        Resource.CSI_NODE: Action.ADD | Action.UPDATE,
        Resource.POD: Action.DELETE,
        Resource.PERSISTENT_VOLUME_CLAIM: Action.ADD,
        Resource.VOLUME_ATTACHMENT: Action.DELETE,
    }


def test_a_csi_node_came() -> None:
    assert ask(PLUGIN, Resource.CSI_NODE, Action.ADD, make_pod(), None, make_csi_node())


@pytest.mark.parametrize(
    ("before", "after", "helps"),
    [
        ({"d": 1}, {"d": 2}, True),
        ({"d": 2}, {"d": 1}, False),
        ({"d": 1}, {"d": 1}, False),
        ({}, {"d": 1}, True),
        ({"d": None}, {"d": 1}, True),
        ({"d": 1}, {"d": None}, False),
        ({"d": 1}, {"d": 1, "e": None}, False),
    ],
)
def test_a_csi_node_changed(before: dict[str, int | None], after: dict[str, int | None], helps: bool) -> None:
    old, new = make_csi_node(limits=before), make_csi_node(limits=after)
    assert ask(PLUGIN, Resource.CSI_NODE, Action.UPDATE, make_pod(), old, new) is helps


@pytest.mark.parametrize(
    ("volume", "node", "nominated", "helps"),
    [
        (CLAIM, "n1", "", True),
        (EPHEMERAL, "n1", "", True),
        (EBS, "n1", "", True),
        (EMPTY, "n1", "", False),
        (CLAIM, "", "n1", True),
        (CLAIM, "", "", False),
    ],
)
def test_a_pod_went(volume: dict[str, Any], node: str, nominated: str, helps: bool) -> None:
    gone = make_pod("gone", node=node, volumes=[volume], status={"nominatedNodeName": nominated})
    assert ask(PLUGIN, Resource.POD, Action.DELETE, make_pod(volumes=[CLAIM]), gone, None) is helps


@pytest.mark.parametrize(
    ("name", "namespace", "helps"),
    [("c", "default", True), ("p-e", "default", True), ("c", "other", False), ("d", "default", False)],
)
def test_a_claim_came(name: str, namespace: str, helps: bool) -> None:
    pod = make_pod(volumes=[EMPTY, CLAIM, EPHEMERAL])
    claim = make_claim(name, namespace=namespace)
    assert ask(PLUGIN, Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, pod, None, claim) is helps


@pytest.mark.parametrize(
    ("volume", "attacher", "helps"),
    [
        (CLAIM, "any.driver", True),
        (EBS, "ebs.csi.aws.com", True),
        (EBS, "any.driver", False),
        (EPHEMERAL, "any.driver", False),
        (EMPTY, "any.driver", False),
    ],
)
def test_a_volume_was_detached(volume: dict[str, Any], attacher: str, helps: bool) -> None:
    gone = make_attachment("a", "n1", "v", attacher)
    assert ask(PLUGIN, Resource.VOLUME_ATTACHMENT, Action.DELETE, make_pod(volumes=[volume]), gone, None) is helps
