"""The four kinds of in-tree volumes whose number a node limits.

Source: pkg/scheduler/framework/plugins/nodevolumelimits/non_csi.go of 1.22, and NewMaxPDVolumeCountPredicate before.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod, VolumeSources
from kube_pyscheduler.objects.quantity import parse_milli, to_units
from kube_pyscheduler.objects.storage import claim_class, claim_use

INSTANCE_TYPE_LABELS = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_NITRO = re.compile("^[cmr]5.*|t3|z1d")
"""Instance types that take fewer EBS volumes. Source: pkg/volume/util/attach_limit.go."""


class Disk(NamedTuple):
    """A volume that counts, by its name, or a ``claim`` for which there is no volume yet."""

    name: str
    claim: str = ""


class ClaimKey(NamedTuple):
    """A volume that stands for a claim."""

    key: str


Use = Disk | ClaimKey
"""What a pod has a volume for."""


@dataclass(frozen=True, slots=True, eq=False)
class DiskKind:
    """``plugin``: the provisioner in storage classes. ``identify``: name of a volume of this kind, or None.
    ``limit_resource``: what nodes say in ``status.allocatable``; ``usual_limit`` is for those that say nothing."""

    plugin: str
    identify: Callable[[VolumeSources], str | None]
    limit_resource: str
    usual_limit: Callable[[Node], int]

    def uses_of(self, pod: Pod) -> tuple[Use, ...]:
        """The distinct volumes of a pod that are of this kind, or may be."""
        uses: dict[Use, None] = {}
        for volume in pod.spec.volumes:
            name = self.identify(volume)
            if name is not None:
                uses[Disk(name)] = None
                continue
            claim = claim_use(pod, volume)
            if claim is not None and claim.name:
                uses[ClaimKey(f"{pod.namespace}/{claim.name}")] = None
        return tuple(uses)

    def meaning(self, listers: Listers, use: Use) -> Disk | None:
        """What a use counts as; None is nothing."""
        if isinstance(use, Disk):
            return use
        claim = listers.persistent_volume_claims.get(use.key)
        if claim is None:
            return None
        volume = listers.persistent_volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
        if volume is not None:
            name = self.identify(volume.spec)
            return None if name is None else Disk(name)
        storage_class = listers.storage_classes.get(claim_class(claim))
        is_ours = storage_class is not None and storage_class.provisioner == self.plugin
        return Disk("", use.key) if is_ours else None

    def limit(self, node: Node, usual: int | None) -> int:
        """How many volumes of this kind the node takes. ``usual`` replaces the usual limit."""
        stated = node.status.allocatable.get(self.limit_resource)
        if stated is not None:
            return to_units(parse_milli(stated))
        return self.usual_limit(node) if usual is None else usual


def _usual_ebs_limit(node: Node) -> int:
    labels = node.metadata.labels
    instance_type = next((labels[key] for key in INSTANCE_TYPE_LABELS if key in labels), "")
    return 25 if _NITRO.search(instance_type) else 39


EBS = DiskKind(
    "kubernetes.io/aws-ebs",
    lambda volume: volume.aws_elastic_block_store.volume_id if volume.aws_elastic_block_store is not None else None,
    "attachable-volumes-aws-ebs",
    _usual_ebs_limit,
)
GCE_PD = DiskKind(
    "kubernetes.io/gce-pd",
    lambda volume: volume.gce_persistent_disk.pd_name if volume.gce_persistent_disk is not None else None,
    "attachable-volumes-gce-pd",
    lambda _node: 16,
)
AZURE_DISK = DiskKind(
    "kubernetes.io/azure-disk",
    lambda volume: volume.azure_disk.disk_name if volume.azure_disk is not None else None,
    "attachable-volumes-azure-disk",
    lambda _node: 16,
)
CINDER = DiskKind(
    "kubernetes.io/cinder",
    lambda volume: volume.cinder.volume_id if volume.cinder is not None else None,
    "attachable-volumes-cinder",
    lambda _node: 256,
)
