"""A pod's claims by what is still to be done about them.

Source: podHasPVCs in volumebinding/volume_binding.go, and GetPodVolumeClaims in binder.go.
"""

from __future__ import annotations

from dataclasses import dataclass

from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.framework.status import Status, error, unresolvable
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.objects.storage import (
    WAIT_FOR_FIRST_CONSUMER,
    ClaimUse,
    PersistentVolumeClaim,
    claim_class,
    ownership_problem,
)

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
"""Annotation of claims that are bound for good."""

SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""Annotation of claims whose volume is to be provisioned for a node."""


@dataclass(frozen=True, slots=True)
class PodClaims:
    """``bound``: have their volumes. ``delayed``: get them with the pod's node. In the order of the pod's volumes."""

    bound: tuple[PersistentVolumeClaim, ...] = ()
    delayed: tuple[PersistentVolumeClaim, ...] = ()


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether claim and volume agree on each other."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def claims_of(listers: Listers, pod: Pod, uses: tuple[ClaimUse, ...]) -> PodClaims | Status:
    """The claims of ``uses`` sorted out, or what keeps the pod waiting."""
    for use in uses:
        problem = _problem(listers, pod, use)
        if problem:
            return unresolvable(problem)
    bound: list[PersistentVolumeClaim] = []
    delayed: list[PersistentVolumeClaim] = []
    is_late = False
    for use in uses:
        claim = listers.persistent_volume_claims.latest(f"{pod.namespace}/{use.name}")
        assert claim is not None
        if is_fully_bound(claim):
            bound.append(claim)
            continue
        mode = _binding_mode(listers, claim)
        if isinstance(mode, Status):
            return mode
        if mode == WAIT_FOR_FIRST_CONSUMER and not claim.spec.volume_name:
            delayed.append(claim)
        else:
            is_late = True
    if is_late:
        return unresolvable("pod has unbound immediate PersistentVolumeClaims")
    return PodClaims(tuple(bound), tuple(delayed))


def _problem(listers: Listers, pod: Pod, use: ClaimUse) -> str:
    claim = listers.persistent_volume_claims.get(f"{pod.namespace}/{use.name}")
    if claim is None:
        if use.is_ephemeral:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{use.name}"'
        return f'persistentvolumeclaim "{use.name}" not found'
    if claim.status.phase == "Lost":
        return f'persistentvolumeclaim "{use.name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
    if claim.metadata.deletion_timestamp:
        return f'persistentvolumeclaim "{use.name}" is being deleted'
    return ownership_problem(claim, pod.key, pod.uid) if use.is_ephemeral else ""


def _binding_mode(listers: Listers, claim: PersistentVolumeClaim) -> str | Status:
    """``volumeBindingMode`` of the claim's class; "" where there is no class. Source: IsDelayBindingMode."""
    name = claim_class(claim)
    storage_class = listers.storage_classes.get(name)
    if storage_class is None:
        return ""
    if not storage_class.volume_binding_mode:
        return error(f'VolumeBindingMode not set for StorageClass "{name}"')
    return storage_class.volume_binding_mode
