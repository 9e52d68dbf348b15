"""The plain twin: one node at a time, all its pods looked at."""

from __future__ import annotations

from collections.abc import Iterable

from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.framework.status import Status, error, unresolvable, unschedulable
from kube_pyscheduler.objects.csi_translation import TranslationError, inline_handle, translated
from kube_pyscheduler.objects.pod import Pod, Volume, VolumeSources
from kube_pyscheduler.objects.storage import CSINode, PersistentVolumeClaim, VolumeAttachment, claim_class, claim_use

EXCEEDED = "node(s) exceed max volume count"
DRIVERS = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
}
NEVER = ("kubernetes.io/azure-file", "kubernetes.io/vsphere-volume")

Found = dict[str, str]
"""``driver/handle`` → driver."""


class Broken(Exception):
    """The volumes of a pod cannot be told. ``missing``: for want of a claim."""

    def __init__(self, text: str, *, missing: bool = False) -> None:
        super().__init__(text)
        self.missing = missing


def plugin_of(volume: VolumeSources) -> str:
    if volume.aws_elastic_block_store is not None:
        return "kubernetes.io/aws-ebs"
    if volume.gce_persistent_disk is not None:
        return "kubernetes.io/gce-pd"
    if volume.azure_disk is not None:
        return "kubernetes.io/azure-disk"
    return "kubernetes.io/azure-file" if volume.azure_file is not None else ""


def is_skipped(pod: Pod) -> bool:
    return not any(claim_use(pod, volume) or plugin_of(volume) for volume in pod.spec.volumes)


def volumes_of(pod: Pod, csi_node: CSINode | None, listers: Listers, *, is_new: bool) -> Found:
    """The volumes of a pod that take a place on the node. Raises Broken."""
    found: Found = {}
    for volume in pod.spec.volumes:
        use = claim_use(pod, volume)
        if use is None:
            _add_inline(found, volume, csi_node)
            continue
        key = f"{pod.namespace}/{use.name}"
        claim = listers.persistent_volume_claims.get(key)
        if claim is None:
            if is_new:
                raise Broken(f'looking up PVC {key}: persistentvolumeclaim "{use.name}" not found', missing=True)
            continue
        owners = [owner.uid for owner in claim.metadata.owner_references if owner.controller]
        if use.is_ephemeral and owners != [pod.uid]:
            raise Broken(f"PVC {key} was not created for pod {pod.key} (pod is not owner)")
        driver, handle = _of_claim(claim, csi_node, listers)
        if driver and handle:
            found[f"{driver}/{handle}"] = driver
    return found


def _add_inline(found: Found, volume: Volume, csi_node: CSINode | None) -> None:
    driver = DRIVERS.get(plugin_of(volume))
    if driver is None or csi_node is None:
        return
    try:
        found[f"{driver}/{inline_handle(volume)}"] = driver
    except TranslationError as problem:
        raise Broken(f"converting volume({volume.name}) from inline to csi: {problem}") from None


def _of_claim(claim: PersistentVolumeClaim, csi_node: CSINode | None, listers: Listers) -> tuple[str, str]:
    volume = listers.persistent_volumes.get(claim.spec.volume_name)
    if volume is None:
        storage_class = listers.storage_classes.get(claim_class(claim))
        if storage_class is None:
            return "", ""
        driver = storage_class.provisioner
        if driver in DRIVERS:
            driver = DRIVERS[driver] if csi_node is not None else ""
        elif driver in NEVER:
            driver = ""
        return driver, f"claim-{claim.key}"
    if volume.spec.csi is None:
        if plugin_of(volume.spec) not in DRIVERS or csi_node is None:
            return "", ""
        try:
            volume = translated(volume)
        except TranslationError:
            return "", ""
    assert volume.spec.csi is not None
    return volume.spec.csi.driver, volume.spec.csi.volume_handle


def attached(node: str, attachments: Iterable[VolumeAttachment], listers: Listers) -> Found:
    """What VolumeAttachments say of a node."""
    found: Found = {}
    for attachment in attachments:
        volume = listers.persistent_volumes.get(attachment.spec.source.persistent_volume_name)
        driver = attachment.spec.attacher
        if attachment.spec.node_name == node and driver and volume is not None and volume.spec.csi is not None:
            found[f"{driver}/{volume.spec.csi.volume_handle}"] = driver
    return found


def refusal(
    pod: Pod, node: str, there: Iterable[Pod], attachments: Iterable[VolumeAttachment], listers: Listers
) -> Status | None:
    """Why a node with the pods ``there`` is refused."""
    csi_node = listers.csi_nodes.get(node)
    try:
        new = volumes_of(pod, csi_node, listers, is_new=True)
    except Broken as broken:
        return unresolvable(str(broken)) if broken.missing else error(str(broken))
    registered = {driver.name for driver in csi_node.spec.drivers} if csi_node is not None else set()
    for driver in sorted(set(new.values())):
        csi_driver = listers.csi_drivers.get(driver)
        wanted = csi_driver is not None and csi_driver.spec.prevent_pod_scheduling_if_missing
        if wanted and driver not in registered:
            return unschedulable(f"{driver} CSI driver is not installed on the node")
    limits = {
        driver.name: driver.allocatable.count
        for driver in (csi_node.spec.drivers if csi_node is not None else ())
        if driver.allocatable is not None and driver.allocatable.count is not None
    }
    if not new or not limits:
        return None
    old: Found = {}
    for other in there:
        try:
            old.update(volumes_of(other, csi_node, listers, is_new=False))
        except Broken as broken:
            return error(str(broken))
    taken = {**attached(node, attachments, listers), **old}
    brought = [driver for name, driver in new.items() if name not in old]
    for driver in set(brought):
        count = sum(other == driver for other in taken.values())
        if driver in limits and count + brought.count(driver) > limits[driver]:
            return unschedulable(EXCEEDED)
    return None
