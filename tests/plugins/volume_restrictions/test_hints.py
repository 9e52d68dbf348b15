"""Which pods that go free a disk or a claim."""

from __future__ import annotations

from typing import Any

import pytest

from kube_pyscheduler.framework.cluster_event import Action, Resource
from tests.builders import make_pod
from tests.plugins.hints import Case, answer
from tests.storage import claim_volumes, make_claim

GCE = {"name": "d", "gcePersistentDisk": {"pdName": "disk"}}
GCE_READ_ONLY = {"name": "d", "gcePersistentDisk": {"pdName": "disk", "readOnly": True}}
OTHER_GCE = {"name": "d", "gcePersistentDisk": {"pdName": "another"}}
CLAIM = claim_volumes("c")[0]


@pytest.mark.parametrize(
    ("mine", "theirs", "namespace", "helps"),
    [
        (GCE, GCE, "default", True),
        (GCE, GCE_READ_ONLY, "default", True),
        (GCE_READ_ONLY, GCE_READ_ONLY, "default", False),
        (GCE, OTHER_GCE, "default", False),
        (GCE, GCE, "other", True),
        (CLAIM, CLAIM, "default", True),
        (CLAIM, CLAIM, "other", False),
        (CLAIM, claim_volumes("d")[0], "default", False),
        (CLAIM, GCE, "default", False),
    ],
)
def test_a_pod_went(mine: dict[str, Any], theirs: dict[str, Any], namespace: str, helps: bool) -> None:
    gone = make_pod("gone", namespace=namespace, node="n1", volumes=[theirs])
    claims = tuple(make_claim(name, modes=("ReadWriteOncePod",)) for name in "cd")
    case = Case("VolumeRestrictions", Resource.POD, Action.DELETE, make_pod(volumes=[mine]), gone, None, helps, claims)
    assert answer(case) is helps
