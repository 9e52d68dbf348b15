"""The plain twin: one node, one claim and one volume at a time."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.objects.csi_translation import TranslationError, translated
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.quantity import parse_milli
from kube_pyscheduler.objects.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    claim_class,
    volume_class,
)

NODE = "node(s) didn't match PersistentVolume's node affinity"
BIND = "node(s) didn't find available persistent volumes to bind"
SPACE = "node(s) did not have enough free storage"
GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
SELECTED = "volume.kubernetes.io/selected-node"


class Failed(Exception):
    """The attempt ends with an error."""


@dataclass
class Found:
    """``failure``: the error that ends the attempt. ``reasons``: why not, in order."""

    failure: str = ""
    reasons: list[str] = field(default_factory=list)
    static: dict[str, str] = field(default_factory=dict)
    dynamic: list[str] = field(default_factory=list)


def find(
    bound: Iterable[PersistentVolumeClaim], delayed: Iterable[PersistentVolumeClaim], node: Node, listers: Listers
) -> Found:
    """What becomes of the claims on one node."""
    found = Found()
    try:
        first = _bound(bound, node, listers)
    except Failed as failed:
        found.failure = str(failed)
        return found
    second = _delayed(list(delayed), node, listers, found)
    found.reasons = [reason for reason in (NODE, BIND, SPACE, GONE) if reason in (first, second)]
    return found


def reaches(volume: PersistentVolume, node: Node) -> bool:
    affinity = volume.spec.node_affinity
    return affinity is None or affinity.required is None or affinity.required.matches(node.metadata.labels, "")


def _bound(claims: Iterable[PersistentVolumeClaim], node: Node, listers: Listers) -> str | None:
    csi_node = listers.csi_nodes.get(node.name)
    migrated = csi_node.metadata.annotations.get(MIGRATED, "").split(",") if csi_node is not None else []
    for claim in claims:
        volume = listers.persistent_volumes.latest(claim.spec.volume_name)
        if volume is None:
            return GONE
        spec = volume.spec
        in_tree = [
            plugin
            for plugin, source in (
                ("kubernetes.io/aws-ebs", spec.aws_elastic_block_store),
                ("kubernetes.io/gce-pd", spec.gce_persistent_disk),
                ("kubernetes.io/azure-disk", spec.azure_disk),
            )
            if source is not None and plugin in migrated
        ]
        if in_tree:
            try:
                volume = translated(volume)
            except TranslationError as problem:
                raise Failed(f"could not translate pv: {problem}") from None
        if not reaches(volume, node):
            return NODE
    return None


def _delayed(claims: list[PersistentVolumeClaim], node: Node, listers: Listers, found: Found) -> str | None:
    if any(claim.metadata.annotations.get(SELECTED, node.name) != node.name for claim in claims):
        return BIND
    to_provision = [claim for claim in claims if SELECTED in claim.metadata.annotations]
    chosen: set[str] = set()
    for claim in sorted(claims, key=_size):
        if SELECTED in claim.metadata.annotations:
            continue
        volume = _match(claim, node, listers, chosen)
        if volume is None:
            to_provision.append(claim)
        else:
            chosen.add(volume.name)
            found.static[claim.name] = volume.name
    for claim in to_provision:
        problem = _provision(claim, node, listers)
        if problem is not None:
            return problem
        found.dynamic.append(claim.name)
    return None


def _size(claim: PersistentVolumeClaim) -> int:
    return parse_milli(claim.spec.resources.requests.get("storage", 0))


def _capacity(volume: PersistentVolume) -> tuple[int, str]:
    return parse_milli(volume.spec.capacity.get("storage", 0)), volume.name


def _match(claim: PersistentVolumeClaim, node: Node, listers: Listers, chosen: set[str]) -> PersistentVolume | None:
    volumes = [listers.persistent_volumes.latest(volume.name) for volume in listers.persistent_volumes]
    of_class = [v for v in volumes if v is not None and volume_class(v) == claim_class(claim)]
    usable = [
        volume
        for volume in of_class
        if volume.name not in chosen
        and _capacity(volume)[0] >= _size(claim)
        and (volume.spec.volume_mode or "Filesystem") == (claim.spec.volume_mode or "Filesystem")
        and volume.spec.volume_attributes_class_name == claim.spec.volume_attributes_class_name
        and not volume.metadata.deletion_timestamp
    ]
    for volume in sorted(usable, key=lambda volume: volume.name):
        ref = volume.spec.claim_ref
        if ref is None or f"{ref.namespace}/{ref.name}" != claim.key:
            continue
        if ref.uid in ("", claim.metadata.uid):
            return volume if reaches(volume, node) else None
    for volume in sorted(usable, key=_capacity):
        selector = claim.spec.selector
        if (
            volume.spec.claim_ref is None
            and volume.status.phase == "Available"
            and (selector is None or selector.matches(volume.metadata.labels))
            and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
            and reaches(volume, node)
        ):
            return volume
    return None


def _provision(claim: PersistentVolumeClaim, node: Node, listers: Listers) -> str | None:
    storage_class = listers.storage_classes.get(claim_class(claim))
    assert storage_class is not None
    if storage_class.provisioner in ("", "kubernetes.io/no-provisioner"):
        return BIND
    labels = node.metadata.labels
    terms = storage_class.allowed_topologies
    if terms and not any(
        term.match_label_expressions and all(labels.get(r.key) in r.values for r in term.match_label_expressions)
        for term in terms
    ):
        return BIND
    driver = listers.csi_drivers.get(storage_class.provisioner)
    if driver is None or not driver.spec.storage_capacity:
        return None
    return None if _room(storage_class.name, node, listers) >= _bytes(_size(claim)) else SPACE


def _bytes(milli: int) -> int:
    return -(-milli // 1000)


def _room(storage_class: str, node: Node, listers: Listers) -> int:
    """The largest volume that can be made, in bytes; −1 for none."""
    found = [-1]
    for capacity in listers.csi_storage_capacities:
        limit = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
        topology = capacity.node_topology
        if capacity.storage_class_name != storage_class or limit is None or topology is None:
            continue
        if not topology.problem() and topology.matches(node.metadata.labels):
            found.append(_bytes(parse_milli(limit)))
    return max(found)


def score(
    bindings: Iterable[tuple[PersistentVolume, PersistentVolumeClaim]],
    provisions: Iterable[PersistentVolumeClaim],
    node: Node,
    listers: Listers,
) -> int:
    """By how empty the storage stays: 100 for 0 % in use, 0 for 100 %."""
    classes: dict[str, tuple[int, int]] = {}
    for volume, claim in bindings:
        requested, capacity = classes.get(claim_class(claim), (0, 0))
        classes[claim_class(claim)] = requested + _bytes(_size(claim)), capacity + _bytes(_capacity(volume)[0])
    for claim in () if classes else provisions:
        storage_class = listers.storage_classes.get(claim_class(claim))
        assert storage_class is not None
        driver = listers.csi_drivers.get(storage_class.provisioner)
        if driver is not None and driver.spec.storage_capacity:
            requested, _capacity_before = classes.get(storage_class.name, (0, 0))
            room = _room(storage_class.name, node, listers)
            classes[storage_class.name] = requested + _bytes(_size(claim)), room
    scores = [
        0 if not capacity or requested > capacity else 100 - requested * 100 // capacity
        for requested, capacity in classes.values()
    ]
    return math.floor(sum(scores) / len(scores) + 0.5) if scores else 0
