"""What helps pods with volumes of all kinds."""

from __future__ import annotations

from typing import Any

import pytest

from kube_pyscheduler.framework.cluster_event import Action, Resource
from tests.builders import make_pod
from tests.plugins.hints import Case, answer
from tests.storage import claim_volumes, make_attachment, make_claim, make_class, make_csi_node

CLAIM = claim_volumes("c")[0]
EPHEMERAL = {"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
EBS = {"name": "d", "awsElasticBlockStore": {"volumeID": "vol-1"}}
EMPTY = {"name": "x", "emptyDir": {}}
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-default-p", "controller": True}
KNOWN = (make_class(), make_claim(), make_claim("p-e", metadata={"ownerReferences": [OWNER]}))


@pytest.mark.parametrize(
    ("before", "after", "helps"),
    [
        ({"csi.example": 1}, {"csi.example": 2}, True),
        ({"csi.example": 2}, {"csi.example": 1}, False),
        ({"csi.example": 1}, {"csi.example": 1}, False),
        ({"csi.example": 0}, {"csi.example": 1}, True),
        # No driver, or none that limits: any number.
        ({}, {"csi.example": 1}, False),
        ({"csi.example": 1}, {}, True),
        ({"csi.example": 1}, {"csi.example": None}, True),
        ({"csi.example": None}, {"csi.example": 1}, False),
        ({"csi.example": 1}, {"csi.example": 1, "other": 5}, False),
    ],
)
def test_a_csi_node_changed(before: dict[str, int | None], after: dict[str, int | None], helps: bool) -> None:
    old, new = make_csi_node(limits=before), make_csi_node(limits=after)
    pod = make_pod(volumes=[CLAIM])
    case = Case("NodeVolumeLimits", Resource.CSI_NODE, Action.UPDATE, pod, old, new, helps, KNOWN)
    assert answer(case) is helps


@pytest.mark.parametrize(
    ("volume", "node", "nominated", "helps"),
    [
        (CLAIM, "n1", "", True),
        (EBS, "n1", "", False),
        (EMPTY, "n1", "", False),
        # Its claim is gone already: nobody knows what it was.
        (EPHEMERAL, "n1", "", True),
        (CLAIM, "", "n1", True),
        (CLAIM, "", "", False),
    ],
)
def test_a_pod_went(volume: dict[str, Any], node: str, nominated: str, helps: bool) -> None:
    gone = make_pod("gone", node=node, volumes=[volume], status={"nominatedNodeName": nominated})
    case = Case("NodeVolumeLimits", Resource.POD, Action.DELETE, make_pod(volumes=[CLAIM]), gone, None, helps, KNOWN)
    assert answer(case) is helps


@pytest.mark.parametrize(
    ("volume", "attacher", "helps"),
    [
        (CLAIM, "csi.example", True),
        (CLAIM, "any.driver", False),
        (EBS, "ebs.csi.aws.com", True),
        (EBS, "any.driver", False),
        (EPHEMERAL, "csi.example", True),
        (EPHEMERAL, "any.driver", False),
        (EMPTY, "csi.example", False),
    ],
)
def test_a_volume_was_detached(volume: dict[str, Any], attacher: str, helps: bool) -> None:
    gone = make_attachment("a", "n1", "v", attacher)
    pod = make_pod(volumes=[volume])
    case = Case("NodeVolumeLimits", Resource.VOLUME_ATTACHMENT, Action.DELETE, pod, gone, None, helps, KNOWN)
    assert answer(case) is helps
