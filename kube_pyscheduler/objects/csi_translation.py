"""What in-tree volumes are called by the CSI drivers that took them over.

Source: staging/src/k8s.io/csi-translation-lib.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

import msgspec

from kube_pyscheduler.objects.pod import CSIVolume, VolumeSources
from kube_pyscheduler.objects.selectors import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kube_pyscheduler.objects.storage import CSINode, PersistentVolume, VolumeNodeAffinity

MIGRATED_PLUGINS_ANNOTATION = "storage.alpha.kubernetes.io/migrated-plugins"
"""On CSINodes: comma-separated names of in-tree plugins whose volumes CSI drivers handle there."""

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE, BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"

_ZONE_DELIMITER = "__"
_UNSPECIFIED = "UNSPECIFIED"


@dataclass(frozen=True, slots=True)
class InTreePlugin:
    """``source``: the field of the volume source. ``topology_key``: label of nodes that replaces the zone label in node
    affinities, "" where they stay as they are. ``migrated``: whether schedulers count its volumes as the driver's."""

    name: str
    source: str
    driver: str
    topology_key: str = ""
    migrated: bool = True


PLUGINS = (
    InTreePlugin(
        "kubernetes.io/aws-ebs", "aws_elastic_block_store", "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone"
    ),
    InTreePlugin("kubernetes.io/gce-pd", "gce_persistent_disk", "pd.csi.storage.gke.io", "topology.gke.io/zone"),
    InTreePlugin("kubernetes.io/azure-disk", "azure_disk", "disk.csi.azure.com"),
    InTreePlugin(
        "kubernetes.io/cinder", "cinder", "cinder.csi.openstack.org", "topology.cinder.csi.openstack.org/zone"
    ),
    InTreePlugin("kubernetes.io/portworx-volume", "portworx_volume", "pxd.portworx.com"),
    InTreePlugin("kubernetes.io/azure-file", "azure_file", "file.csi.azure.com", migrated=False),
    InTreePlugin("kubernetes.io/vsphere-volume", "vsphere_volume", "csi.vsphere.vmware.com", migrated=False),
)

BY_NAME = {plugin.name: plugin for plugin in PLUGINS}


class TranslationError(ValueError):
    """The volume cannot be expressed as one of the driver's."""


def in_tree_plugin(volume: VolumeSources) -> InTreePlugin | None:
    """The plugin whose source the volume has, if there is a driver for it."""
    for plugin in PLUGINS:
        if getattr(volume, plugin.source) is not None:
            return plugin
    return None


def migrated_plugins(csi_node: CSINode) -> frozenset[str]:
    """The in-tree plugins that are migrated on a node. Source: isPluginMigratedToCSIOnNode."""
    return frozenset(csi_node.metadata.annotations.get(MIGRATED_PLUGINS_ANNOTATION, "").split(",")) - {""}


def inline_handle(volume: VolumeSources) -> str:
    """The driver's handle of a volume that a pod names itself; its plugin must be migrated. Raises TranslationError."""
    if volume.gce_persistent_disk is not None:
        return _gce_handle("zones", _UNSPECIFIED, volume.gce_persistent_disk.pd_name)
    return _plain_handle(volume)


def translated(volume: PersistentVolume) -> PersistentVolume:
    """An in-tree volume as the driver's, with the driver's topology; its plugin must be migrated. Raises
    TranslationError."""
    plugin = in_tree_plugin(volume.spec)
    if plugin is None:
        raise TranslationError(f'could not find in-tree plugin translation logic for "{volume.name}"')
    if volume.spec.gce_persistent_disk is not None:
        handle = _gce_volume_handle(volume, volume.spec.gce_persistent_disk.pd_name)
    else:
        handle = _plain_handle(volume.spec)
    affinity = volume.spec.node_affinity
    if plugin.topology_key:
        affinity = _driver_affinity(volume, plugin.topology_key)
    changes = {plugin.source: None, "csi": CSIVolume(plugin.driver, handle), "node_affinity": affinity}
    return msgspec.structs.replace(volume, spec=msgspec.structs.replace(volume.spec, **changes))


def _plain_handle(volume: VolumeSources) -> str:
    if volume.aws_elastic_block_store is not None:
        return _ebs_handle(volume.aws_elastic_block_store.volume_id)
    if volume.azure_disk is not None:
        kind = volume.azure_disk.kind
        if kind.lower() != "managed":
            raise TranslationError(f"kind({kind}) is not supported in csi migration")
        return volume.azure_disk.disk_uri
    if volume.cinder is not None:
        return volume.cinder.volume_id
    if volume.portworx_volume is not None:
        return volume.portworx_volume.volume_id
    raise TranslationError("no source of a migrated plugin")


def _ebs_handle(volume_id: str) -> str:
    """``aws://<zone>/<id>`` or the bare id. Source: KubernetesVolumeIDToEBSVolumeID."""
    if not volume_id.startswith("aws://"):
        return volume_id
    found = urlsplit(volume_id).path.strip("/")
    if not re.fullmatch(r"vol-[^/]*", found):
        raise TranslationError(
            f"failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({volume_id})"
        )
    return found


def _gce_handle(scope: str, place: str, disk: str) -> str:
    return f"projects/{_UNSPECIFIED}/{scope}/{place}/disks/{disk}"


def _gce_volume_handle(volume: PersistentVolume, disk: str) -> str:
    labels = volume.metadata.labels
    zones = (labels.get(BETA_ZONE) or labels.get(ZONE, "")).split(_ZONE_DELIMITER)
    if len(zones) > 1:
        return _gce_handle("regions", _gce_region(zones), disk)
    return _gce_handle("zones", zones[0] or _UNSPECIFIED, disk)


def _gce_region(zones: list[str]) -> str:
    """Source: gceGetRegionFromZones."""
    regions = set()
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            raise TranslationError(
                "failed to get region from zones: zone in unexpected format, expected: {locale}-{region}-{zone}, "
                f"got: {zone}"
            )
        regions.add("-".join(parts[:2]))
    if len(regions) != 1:
        raise TranslationError(
            f"failed to get region from zones: multiple or no regions gotten from zones, got: {sorted(regions)}"
        )
    return regions.pop()


def _driver_affinity(volume: PersistentVolume, key: str) -> VolumeNodeAffinity | None:
    """The node affinity with the zone label replaced by the driver's key; where it names no zone, the zone label of the
    volume itself is added. Source: translateTopologyFromInTreeToCSI."""
    affinity, labels = volume.spec.node_affinity, volume.metadata.labels
    required = affinity.required if affinity is not None else None
    terms = required.node_selector_terms if required is not None else ()
    named = {requirement.key for term in terms for requirement in term.match_expressions}
    valued = {requirement.key for term in terms for requirement in term.match_expressions if requirement.values}
    is_beta = ZONE not in named and (BETA_ZONE in named or (ZONE not in labels and BETA_ZONE in labels))
    zone = BETA_ZONE if is_beta else ZONE
    renamed = {BETA_REGION: REGION} if is_beta and BETA_REGION in valued else {}
    if zone in valued:
        renamed[zone] = key
    elif zone in labels:
        zones = tuple(sorted({part.strip() for part in labels[zone].split(_ZONE_DELIMITER)} - {""}))
        if zones:
            added = NodeSelectorRequirement(key, "In", zones)
            terms = tuple(
                NodeSelectorTerm((*term.match_expressions, added), term.match_fields)
                for term in terms or (NodeSelectorTerm(),)
            )
    if not terms:
        return affinity
    return VolumeNodeAffinity(NodeSelector(tuple(_with_keys(term, renamed) for term in terms)))


def _with_keys(term: NodeSelectorTerm, renamed: dict[str, str]) -> NodeSelectorTerm:
    expressions = tuple(
        NodeSelectorRequirement(renamed.get(r.key, r.key), r.operator, r.values) for r in term.match_expressions
    )
    return NodeSelectorTerm(expressions, term.match_fields)
