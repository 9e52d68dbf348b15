"""From a decision to volumes and claims as they will be, and back.

Source: AssumePodVolumes and RevertAssumedPodVolumes in volumebinding/binder.go.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.objects.storage import ObjectReference, PersistentVolume, PersistentVolumeClaim
from kube_pyscheduler.plugins.volume_binding.claims import SELECTED_NODE
from kube_pyscheduler.plugins.volume_binding.index import is_bound_to
from kube_pyscheduler.plugins.volume_binding.kernel import Binding, PodVolumes

BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
"""Annotation of volumes and claims that were not bound by a user."""


@dataclass(slots=True)
class Assumed:
    """``bindings``: volumes that name their claim. ``provisions``: claims that name their node. Each entry is replaced
    by what the API server made of it."""

    bindings: list[Binding] = field(default_factory=list)
    provisions: list[PersistentVolumeClaim] = field(default_factory=list)


def assume(listers: Listers, volumes: PodVolumes, node: str) -> Assumed:
    """Count the volumes as bound and the claims as waiting for ``node``. Raises LookupError, with nothing assumed."""
    assumed = Assumed()
    try:
        for binding in volumes.bindings:
            bound = bound_volume(binding.volume, binding.claim)
            if bound is not binding.volume:
                listers.persistent_volumes.assume(bound)
            assumed.bindings.append(Binding(bound, binding.claim))
        for claim in volumes.provisions:
            annotations = {**claim.metadata.annotations, SELECTED_NODE: node}
            waiting = msgspec.structs.replace(
                claim, metadata=msgspec.structs.replace(claim.metadata, annotations=annotations)
            )
            listers.persistent_volume_claims.assume(waiting)
            assumed.provisions.append(waiting)
    except LookupError:
        restore(listers, assumed)
        raise
    return assumed


def restore(listers: Listers, assumed: Assumed) -> None:
    """Take everything back that the API server was not told of."""
    for binding in assumed.bindings:
        listers.persistent_volumes.restore(binding.volume)
    for claim in assumed.provisions:
        listers.persistent_volume_claims.restore(claim)


def bound_volume(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """The volume as it is when it is bound to the claim; itself if it is already. Source: GetBindVolumeToClaim."""
    wanted = ObjectReference(claim.namespace, claim.name, claim.metadata.uid)
    annotations = volume.metadata.annotations
    if not is_bound_to(volume, claim) and BOUND_BY_CONTROLLER not in annotations:
        annotations = {**annotations, BOUND_BY_CONTROLLER: "yes"}
    if volume.spec.claim_ref == wanted and annotations is volume.metadata.annotations:
        return volume
    return msgspec.structs.replace(
        volume,
        metadata=msgspec.structs.replace(volume.metadata, annotations=annotations),
        spec=msgspec.structs.replace(volume.spec, claim_ref=wanted),
    )
