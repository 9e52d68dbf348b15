from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kube_pyscheduler.objects import kinds
from kube_pyscheduler.objects.csi_translation import (
    TranslationError,
    in_tree_plugin,
    inline_handle,
    migrated_plugins,
    translated,
)
from kube_pyscheduler.objects.meta import ObjectMeta
from kube_pyscheduler.objects.pod import Volume
from kube_pyscheduler.objects.storage import CSINode, PersistentVolume

ZONE, BETA_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
REGION, BETA_REGION = "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"
EBS_ZONE = "topology.ebs.csi.aws.com/zone"


def volume(
    source: dict[str, Any], labels: dict[str, str] | None = None, affinity: list[dict[str, Any]] | None = None
) -> PersistentVolume:
    spec = dict(source)
    if affinity is not None:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": affinity}]}}
    document = {"metadata": {"name": "pv", "labels": labels or {}}, "spec": spec}
    found: PersistentVolume = kinds.PERSISTENT_VOLUME.decoder.decode(msgspec.json.encode(document))
    return found


def requirement(key: str, *values: str, operator: str = "In") -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def affinity_of(found: PersistentVolume) -> list[tuple[str, str, tuple[str, ...]]]:
    affinity = found.spec.node_affinity
    if affinity is None or affinity.required is None:
        return []
    return [
        (r.key, r.operator, r.values) for term in affinity.required.node_selector_terms for r in term.match_expressions
    ]


EBS = {"awsElasticBlockStore": {"volumeID": "vol-1"}}


@pytest.mark.parametrize(
    ("source", "labels", "handle"),
    [
        (EBS, {}, "vol-1"),
        ({"awsElasticBlockStore": {"volumeID": "aws://eu-1a/vol-2"}}, {}, "vol-2"),
        ({"gcePersistentDisk": {"pdName": "d"}}, {}, "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"),
        ({"gcePersistentDisk": {"pdName": "d"}}, {ZONE: "eu-1-a"}, "projects/UNSPECIFIED/zones/eu-1-a/disks/d"),
        (
            {"gcePersistentDisk": {"pdName": "d"}},
            {ZONE: "no", BETA_ZONE: "eu-1-a__eu-1-b"},
            "projects/UNSPECIFIED/regions/eu-1/disks/d",
        ),
        ({"azureDisk": {"diskName": "d", "diskURI": "/uri/d", "kind": "Managed"}}, {}, "/uri/d"),
        ({"cinder": {"volumeID": "c"}}, {}, "c"),
        ({"portworxVolume": {"volumeID": "p"}}, {}, "p"),
    ],
)
def test_the_handle_of_a_volume(source: dict[str, Any], labels: dict[str, str], handle: str) -> None:
    found = translated(volume(source, labels))
    plugin = in_tree_plugin(volume(source).spec)
    assert found.spec.csi is not None
    assert plugin is not None
    assert (found.spec.csi.driver, found.spec.csi.volume_handle) == (plugin.driver, handle)
    assert in_tree_plugin(found.spec) is None


@pytest.mark.parametrize(
    ("source", "handle"),
    [
        (EBS, "vol-1"),
        ({"gcePersistentDisk": {"pdName": "d"}}, "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"),
        ({"cinder": {"volumeID": "c"}}, "c"),
    ],
)
def test_the_handle_of_an_inline_volume(source: dict[str, Any], handle: str) -> None:
    assert inline_handle(msgspec.convert({"name": "v", **source}, Volume)) == handle


@pytest.mark.parametrize(
    ("source", "labels", "problem"),
    [
        (
            {"awsElasticBlockStore": {"volumeID": "aws://eu-1a/disk"}},
            {},
            r"Invalid format for AWS volume \(aws://eu-1a/disk\)",
        ),
        ({"gcePersistentDisk": {"pdName": "d"}}, {ZONE: "eu-1-a__us-1-a"}, "multiple or no regions"),
        ({"gcePersistentDisk": {"pdName": "d"}}, {ZONE: "a__b"}, "zone in unexpected format"),
        (
            {"azureDisk": {"diskName": "d", "diskURI": "/uri/d"}},
            {},
            r"kind\(Shared\) is not supported in csi migration",
        ),
        ({"csi": {"driver": "d", "volumeHandle": "h"}}, {}, "could not find in-tree plugin translation logic"),
        ({"azureFile": {"shareName": "s"}}, {}, "no source of a migrated plugin"),
    ],
)
def test_what_cannot_be_translated(source: dict[str, Any], labels: dict[str, str], problem: str) -> None:
    with pytest.raises(TranslationError, match=problem):
        translated(volume(source, labels))


@pytest.mark.parametrize(
    ("labels", "affinity", "expected"),
    [
        ({}, None, []),
        ({ZONE: "a"}, None, [(EBS_ZONE, "In", ("a",))]),
        ({ZONE: "b__a"}, None, [(EBS_ZONE, "In", ("a", "b"))]),
        ({BETA_ZONE: "a"}, None, [(EBS_ZONE, "In", ("a",))]),
        ({ZONE: "ignored"}, [requirement(ZONE, "a")], [(EBS_ZONE, "In", ("a",))]),
        (
            {},
            [requirement(BETA_ZONE, "a"), requirement(BETA_REGION, "r")],
            [(EBS_ZONE, "In", ("a",)), (REGION, "In", ("r",))],
        ),
        ({ZONE: "a"}, [requirement("disk", "ssd")], [("disk", "In", ("ssd",)), (EBS_ZONE, "In", ("a",))]),
        (
            {ZONE: "a"},
            [requirement(ZONE, operator="Exists")],
            [(ZONE, "Exists", ()), (EBS_ZONE, "In", ("a",))],
        ),
        ({ZONE: " __ "}, None, []),
    ],
)
def test_the_topology_of_a_volume(
    labels: dict[str, str], affinity: list[dict[str, Any]] | None, expected: list[tuple[str, str, tuple[str, ...]]]
) -> None:
    assert affinity_of(translated(volume(EBS, labels, affinity))) == expected


def test_some_drivers_have_no_topology_of_their_own() -> None:
    found = translated(volume({"portworxVolume": {"volumeID": "p"}}, {ZONE: "a"}, [requirement(ZONE, "b")]))
    assert affinity_of(found) == [(ZONE, "In", ("b",))]


@pytest.mark.parametrize(("text", "expected"), [(None, set()), ("", set()), ("a,b", {"a", "b"})])
def test_migrated_plugins(text: str | None, expected: set[str]) -> None:
    annotations = {} if text is None else {"storage.alpha.kubernetes.io/migrated-plugins": text}
    assert migrated_plugins(CSINode(metadata=ObjectMeta(name="n", annotations=annotations))) == expected
