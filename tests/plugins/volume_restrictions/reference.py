"""The plain twin: one node and one pair of volumes at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.objects.pod import Pod, Volume

DISK = "node(s) had no available disk"
CLAIM = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)


def collide(mine: Volume, theirs: Volume) -> bool:
    """Whether a node cannot have both."""
    if mine.gce_persistent_disk is not None and theirs.gce_persistent_disk is not None:
        a, b = mine.gce_persistent_disk, theirs.gce_persistent_disk
        return a.pd_name == b.pd_name and not (a.read_only and b.read_only)
    if mine.aws_elastic_block_store is not None and theirs.aws_elastic_block_store is not None:
        return mine.aws_elastic_block_store.volume_id == theirs.aws_elastic_block_store.volume_id
    if mine.iscsi is not None and theirs.iscsi is not None:
        return mine.iscsi.iqn == theirs.iscsi.iqn and not (mine.iscsi.read_only and theirs.iscsi.read_only)
    if mine.rbd is not None and theirs.rbd is not None:
        share_a_monitor = bool(set(mine.rbd.monitors) & set(theirs.rbd.monitors))
        same_image = (mine.rbd.pool, mine.rbd.image) == (theirs.rbd.pool, theirs.rbd.image)
        return share_a_monitor and same_image and not (mine.rbd.read_only and theirs.rbd.read_only)
    return False


def claims(pod: Pod) -> list[str]:
    """Names of the claims, one a volume."""
    return [v.persistent_volume_claim.claim_name for v in pod.spec.volumes if v.persistent_volume_claim is not None]


def has_disks(pod: Pod) -> bool:
    return any(v.gce_persistent_disk or v.aws_elastic_block_store or v.iscsi or v.rbd for v in pod.spec.volumes)


def missing_claim(pod: Pod, listers: Listers) -> str | None:
    """The first claim of the pod that does not exist."""
    return next(
        (name for name in claims(pod) if listers.persistent_volume_claims.get(f"{pod.namespace}/{name}") is None), None
    )


def exclusive_claims(pod: Pod, listers: Listers) -> set[str]:
    found = set()
    for name in claims(pod):
        claim = listers.persistent_volume_claims.get(f"{pod.namespace}/{name}")
        if claim is not None and "ReadWriteOncePod" in claim.spec.access_modes:
            found.add(name)
    return found


def in_use(pod: Pod, names: Iterable[str], pods_by_node: Mapping[str, list[Pod]]) -> int:
    """How many of these claims of the pod's namespace are in use on some node."""
    used = {(other.namespace, name) for pods in pods_by_node.values() for other in pods for name in claims(other)}
    return sum((pod.namespace, name) in used for name in names)


def refusal(
    pod: Pod, there: Iterable[Pod], conflicts: int, exclusive: set[str], come: Iterable[Pod], gone: Iterable[Pod]
) -> str | None:
    """Why a node with the pods ``there`` is refused; ``come`` and ``gone`` are the differences to how it really is."""
    if any(collide(mine, theirs) for mine in pod.spec.volumes for other in there for theirs in other.spec.volumes):
        return DISK
    conflicts += sum(name in exclusive for other in come for name in claims(other))
    conflicts -= sum(name in exclusive for other in gone for name in claims(other))
    return CLAIM if conflicts > 0 else None
