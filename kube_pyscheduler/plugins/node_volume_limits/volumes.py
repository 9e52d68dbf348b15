"""The volumes of pods under the names that CSI drivers have for them.

Source: filterAttachableVolumes and getCSIDriverInfo in pkg/scheduler/framework/plugins/nodevolumelimits/csi.go.
"""

from __future__ import annotations

from typing import NamedTuple

from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.objects.csi_translation import (
    BY_NAME,
    TranslationError,
    in_tree_plugin,
    inline_handle,
    translated,
)
from kube_pyscheduler.objects.pod import Pod, Volume
from kube_pyscheduler.objects.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    claim_class,
    claim_use,
    ownership_problem,
)

NO_NAME = "PersistentVolumeClaim had no name"


class DriverVolume(NamedTuple):
    """A volume as its driver knows it. Volumes that do not exist yet go by their claim."""

    driver: str
    handle: str


class Counted(NamedTuple):
    """A volume that counts. ``is_in_tree``: only on nodes with a CSINode, whatever that says of migration."""

    volume: DriverVolume
    is_in_tree: bool = False


class Broken(NamedTuple):
    """A volume that makes the attempt fail. ``is_in_tree``: it does so only on nodes with a CSINode."""

    message: str
    is_in_tree: bool = False


class ClaimRef(NamedTuple):
    """A volume that stands for a claim. ``owner`` and ``owner_uid``: the pod that the claim of an ephemeral volume must
    be made for."""

    key: str
    owner: str = ""
    owner_uid: str = ""


Use = ClaimRef | Counted | Broken
"""What a pod has a volume for."""


def may_count(pod: Pod) -> bool:
    """Whether the pod has a volume of a kind that drivers may attach."""
    return any(claim_use(pod, volume) is not None or in_tree_plugin(volume) is not None for volume in pod.spec.volumes)


def must_be_registered(listers: Listers, driver: str) -> bool:
    """Whether nodes without the driver take none of its volumes."""
    csi_driver = listers.csi_drivers.get(driver)
    return csi_driver is not None and csi_driver.spec.prevent_pod_scheduling_if_missing


def uses_of(pod: Pod) -> tuple[Use, ...]:
    """The volumes of a pod that may count."""
    uses = [_use_of(pod, volume) for volume in pod.spec.volumes]
    return tuple([use for use in uses if use is not None])


def _use_of(pod: Pod, volume: Volume) -> Use | None:
    claim = claim_use(pod, volume)
    if claim is not None:
        if not claim.name:
            return Broken(NO_NAME)
        key = f"{pod.namespace}/{claim.name}"
        return ClaimRef(key, pod.key, pod.uid) if claim.is_ephemeral else ClaimRef(key)
    plugin = in_tree_plugin(volume)
    if plugin is None or not plugin.migrated:
        return None
    try:
        return Counted(DriverVolume(plugin.driver, inline_handle(volume)), True)
    except TranslationError as error:
        return Broken(f"converting volume({volume.name}) from inline to csi: {error}", True)


def volume_of_claim(listers: Listers, ref: ClaimRef, claim: PersistentVolumeClaim) -> Counted | Broken | None:
    """What counts for a claim; None where its volume is not a driver's, or not known yet."""
    if ref.owner and (problem := ownership_problem(claim, ref.owner, ref.owner_uid)):
        return Broken(problem)
    volume = listers.persistent_volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
    return _of_class(listers, claim) if volume is None else _of_volume(volume)


def _of_volume(volume: PersistentVolume) -> Counted | None:
    is_in_tree = volume.spec.csi is None
    if is_in_tree:
        plugin = in_tree_plugin(volume.spec)
        if plugin is None or not plugin.migrated:
            return None
        try:
            volume = translated(volume)
        except TranslationError:
            return None
    source = volume.spec.csi
    if source is None or not source.driver or not source.volume_handle:
        return None
    return Counted(DriverVolume(source.driver, source.volume_handle), is_in_tree)


def _of_class(listers: Listers, claim: PersistentVolumeClaim) -> Counted | None:
    """A claim without a volume counts as one of its class's provisioner."""
    storage_class = listers.storage_classes.get(claim_class(claim))
    if storage_class is None or not storage_class.provisioner:
        return None
    # No driver has such a handle, so it is never taken for an existing volume.
    handle = f"\0{claim.key}"
    plugin = BY_NAME.get(storage_class.provisioner)
    if plugin is None:
        return Counted(DriverVolume(storage_class.provisioner, handle))
    return Counted(DriverVolume(plugin.driver, handle), True) if plugin.migrated else None
