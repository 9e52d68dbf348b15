"""Which disks and claims the pods on each row use."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.objects.pod import Pod, Volume

Identity = Hashable
"""What makes two disks the same one."""


@dataclass(frozen=True, slots=True)
class Disk:
    """A disk that a pod names itself. One use that may write, and any other use, exclude each other on a node."""

    identity: Identity
    read_only: bool


@dataclass(frozen=True, slots=True)
class Uses:
    """``claims``: names of the claims the pod's volumes refer to, one entry a volume."""

    disks: tuple[Disk, ...]
    claims: tuple[str, ...]


@dataclass(slots=True)
class Users:
    """Uses of one disk on one row."""

    writers: int = 0
    readers: int = 0

    def exclude(self, disk: Disk) -> bool:
        """Whether one more use as ``disk`` says is too much."""
        return self.writers > 0 or (self.readers > 0 and not disk.read_only)


def uses_of(pod: Pod) -> Uses:
    """What of a pod's volumes matters here."""
    disks: list[Disk] = []
    claims: list[str] = []
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            claims.append(volume.persistent_volume_claim.claim_name)
        else:
            disks.extend(disks_of(volume))
    return Uses(tuple(disks), tuple(claims))


def disks_of(volume: Volume) -> list[Disk]:
    """The disks that a volume stands for. An RBD image is one disk for each of its monitors, so that images collide
    which share a monitor.

    Source: isVolumeConflict in pkg/scheduler/framework/plugins/volumerestrictions.
    """
    if (gce := volume.gce_persistent_disk) is not None:
        return [Disk(("gce", gce.pd_name), gce.read_only)]
    if (ebs := volume.aws_elastic_block_store) is not None:
        return [Disk(("ebs", ebs.volume_id), False)]
    if (iscsi := volume.iscsi) is not None:
        return [Disk(("iscsi", iscsi.iqn), iscsi.read_only)]
    if (rbd := volume.rbd) is not None:
        return [Disk(("rbd", monitor, rbd.pool, rbd.image), rbd.read_only) for monitor in rbd.monitors]
    return []


@dataclass(slots=True, eq=False)
class VolumeUse:
    """A watcher of pods: disk → row → its users, and claim (``namespace/name``) → row → uses."""

    disks: dict[Identity, dict[int, Users]] = field(default_factory=dict)
    claims: dict[str, dict[int, int]] = field(default_factory=dict)

    @classmethod
    def over(cls, table: NodeTable) -> VolumeUse:
        """Told of all pods of ``table`` from now on."""
        watcher = cls()
        table.watch_pods(watcher)
        return watcher

    def pod_added(self, row: int, info: PodInfo) -> None:
        if info.pod.spec.volumes:
            self._change(row, info, 1)

    def pod_removed(self, row: int, info: PodInfo) -> None:
        if info.pod.spec.volumes:
            self._change(row, info, -1)

    def users(self, disk: Disk) -> dict[int, Users]:
        """Rows where the disk is in use. Not to be changed."""
        return self.disks.get(disk.identity, {})

    def is_claimed(self, table: NodeTable, claim: str) -> bool:
        """Whether a pod on some node uses the claim. Pods on nodes that are gone do not count."""
        return any(table.alive[row] for row in self.claims.get(claim, ()))

    def _change(self, row: int, info: PodInfo, sign: int) -> None:
        uses = info.derived(uses_of)
        for disk in uses.disks:
            rows = self.disks.setdefault(disk.identity, {})
            users = rows.setdefault(row, Users())
            if disk.read_only:
                users.readers += sign
            else:
                users.writers += sign
            if not users.writers and not users.readers:
                del rows[row]
                if not rows:
                    del self.disks[disk.identity]
        for name in uses.claims:
            key = f"{info.pod.namespace}/{name}"
            counts = self.claims.setdefault(key, {})
            counts[row] = counts.get(row, 0) + sign
            if not counts[row]:
                del counts[row]
                if not counts:
                    del self.claims[key]
