"""The plugin. Source: pkg/scheduler/framework/plugins/volumerestrictions."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial

import numpy as np

from kube_pyscheduler.columns.arrays import Codes, Ints, RowIndex, Rows
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.framework.cluster_event import (
    Action,
    ClusterEvent,
    EventRegistration,
    QueueingHint,
    Resource,
    queue_if,
)
from kube_pyscheduler.framework.cycle_state import StateKey
from kube_pyscheduler.framework.interfaces import (
    CycleContext,
    FilterKernel,
    NodeFilter,
    PreFilter,
    PreFilterResult,
    RowChanges,
)
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.framework.status import SKIP, Status, unresolvable, unschedulable
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.objects.storage import PersistentVolumeClaim
from kube_pyscheduler.plugins.volume_restrictions.use import Disk, VolumeUse, uses_of

DISK_CONFLICT, CLAIM_CONFLICT = 1, 2

KERNEL: StateKey[VolumeRestrictionsKernel] = StateKey("VolumeRestrictions")


class VolumeRestrictionsKernel(FilterKernel):
    """Cost: the rows where one of the pod's disks is in use.

    ``exclusive``: names of the claims that admit this pod only, and ``claimed``: how many of these are in use
    somewhere, which refuses all rows.
    """

    statuses = (
        unschedulable("node(s) had no available disk"),
        unschedulable(
            "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
            "another pod"
        ),
    )

    def __init__(self, use: VolumeUse, disks: tuple[Disk, ...], exclusive: frozenset[str], claimed: int) -> None:
        self._use = use
        self._disks = disks
        self._exclusive = exclusive
        self._claimed = claimed
        self._writes = [partial(_uses_of_disk, disk=disk, read_only=False) for disk in disks]
        self._reads = [partial(_uses_of_disk, disk=disk, read_only=True) for disk in disks]

    def codes(self, table: NodeTable, rows: Rows) -> Codes:
        codes = np.full(table.high, CLAIM_CONFLICT if self._claimed > 0 else 0, dtype=np.uint8)
        for disk in self._disks:
            for row, users in self._use.users(disk).items():
                if users.exclude(disk):
                    codes[row] = DISK_CONFLICT
        return codes[rows]

    def codes_if(self, table: NodeTable, rows: RowIndex, changes: RowChanges) -> Codes:
        codes = np.zeros(len(rows), dtype=np.uint8)
        if self._exclusive:
            claimed = self._claimed + changes.sums(rows, self._claims)
            codes[claimed > 0] = CLAIM_CONFLICT
        for disk, writes, reads in zip(self._disks, self._writes, self._reads, strict=True):
            writers, readers = self._users(table, disk)
            taken = writers[rows] + changes.sums(rows, writes) > 0
            if not disk.read_only:
                taken |= readers[rows] + changes.sums(rows, reads) > 0
            codes[taken] = DISK_CONFLICT
        return codes

    def _users(self, table: NodeTable, disk: Disk) -> tuple[Ints, Ints]:
        """int64[high] each: uses that write, and those that only read."""
        writers, readers = np.zeros((2, table.high), dtype=np.int64)
        for row, users in self._use.users(disk).items():
            writers[row], readers[row] = users.writers, users.readers
        return writers, readers

    def _claims(self, info: PodInfo) -> int:
        """How many uses of the exclusive claims the pod has. As upstream, claims of other namespaces count when they
        have the name of one of ours."""
        return sum(name in self._exclusive for name in info.derived(uses_of).claims)


def _uses_of_disk(info: PodInfo, *, disk: Disk, read_only: bool) -> int:
    uses = info.derived(uses_of).disks
    return sum(other.identity == disk.identity and other.read_only == read_only for other in uses)


class VolumeRestrictions(PreFilter, NodeFilter):
    name = "VolumeRestrictions"

    def prepare(self, ctx: CycleContext) -> None:
        ctx.table.attached(VolumeUse.over)

    def pre_filter(self, ctx: CycleContext, pod: PodInfo) -> PreFilterResult | Status | None:
        uses = pod.derived(uses_of)
        exclusive = set()
        for name in uses.claims:
            claim = ctx.listers.persistent_volume_claims.get(f"{pod.pod.namespace}/{name}")
            if claim is None:
                return unresolvable(f'persistentvolumeclaim "{name}" not found')
            if "ReadWriteOncePod" in claim.spec.access_modes:
                exclusive.add(name)
        if not uses.disks and not exclusive:
            return SKIP
        use = ctx.table.attached(VolumeUse.over)
        claimed = sum(use.is_claimed(ctx.table, f"{pod.pod.namespace}/{name}") for name in exclusive)
        if not uses.disks and not claimed:
            return SKIP
        ctx.state.write(KERNEL, VolumeRestrictionsKernel(use, uses.disks, frozenset(exclusive), claimed))
        return None

    def filter_kernel(self, ctx: CycleContext, pod: PodInfo) -> FilterKernel | None:
        return ctx.state.read(KERNEL)

    def events(self) -> Sequence[EventRegistration]:
        return (
            EventRegistration(ClusterEvent(Resource.POD, Action.DELETE), _pod_gone, _waiting_for),
            EventRegistration(ClusterEvent(Resource.NODE, Action.ADD | Action.DELETE), _node_changed, _waiting_for),
            EventRegistration(ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD), _claim_added, _waiting_for),
        )


def _waiting_for(pod: Pod) -> Hashable:
    """What the hints read of a waiting pod."""
    return pod.namespace, uses_of(pod)


def _pod_gone(pod: Pod, old: Pod, new: Pod | None, view: Listers) -> QueueingHint:
    """Upstream skips disks that pods of different namespaces share, and wakes for any claim they share."""
    wanted, freed = uses_of(pod), uses_of(old)
    disk_freed = any(
        mine.identity == theirs.identity and not (mine.read_only and theirs.read_only)
        for mine in wanted.disks
        for theirs in freed.disks
    )
    if disk_freed or old.namespace != pod.namespace:
        return queue_if(disk_freed)
    shared = set(wanted.claims).intersection(freed.claims)
    return queue_if(bool(_exclusive(pod, view) & shared))


def _exclusive(pod: Pod, view: Listers) -> set[str]:
    """Names of the pod's claims that admit one pod only."""
    found = [view.persistent_volume_claims.get(f"{pod.namespace}/{name}") for name in uses_of(pod).claims]
    return {claim.name for claim in found if claim is not None and "ReadWriteOncePod" in claim.spec.access_modes}


def _node_changed(pod: Pod, old: Node | None, new: Node | None, view: Listers) -> QueueingHint:
    """A node that comes has none of the disks. One that goes does not use claims any more; upstream waits until its
    pods are gone."""
    if new is not None:
        return queue_if(bool(uses_of(pod).disks))
    use = view.nodes.attached(VolumeUse.over)
    claimed = [use.is_claimed(view.nodes, f"{pod.namespace}/{name}") for name in _exclusive(pod, view)]
    return queue_if(not all(claimed))


def _claim_added(pod: Pod, old: None, new: PersistentVolumeClaim, view: Listers) -> QueueingHint:
    return queue_if(new.namespace == pod.namespace and new.name in uses_of(pod).claims)
