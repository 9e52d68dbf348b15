"""MaxEBSVolumeCount and its siblings: a node takes so many volumes of a kind, and no more.

Nodes where a CSI driver has taken the kind over are left to NodeVolumeLimits.

Source: pkg/scheduler/framework/plugins/nodevolumelimits/non_csi.go of 1.22, and NewMaxPDVolumeCountPredicate before.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kube_pyscheduler.columns.arrays import Codes, Ints, Mask, RowIndex, Rows
from kube_pyscheduler.columns.csi_nodes import CSINodeColumn
from kube_pyscheduler.columns.node_selector import row_numbers
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.columns.vocabulary import LookupTable
from kube_pyscheduler.framework.cluster_event import (
    Action,
    ClusterEvent,
    EventRegistration,
    QueueingHint,
    Resource,
    queue_if,
)
from kube_pyscheduler.framework.interfaces import CycleContext, FilterKernel, NodeFilter, RowChange, RowChanges
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.framework.row_changes import UNCHANGED
from kube_pyscheduler.framework.status import unschedulable
from kube_pyscheduler.objects.csi_translation import migrated_plugins
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.objects.storage import CSINode
from kube_pyscheduler.plugins.classic.attached_disks import AttachedDisks
from kube_pyscheduler.plugins.classic.disks import AZURE_DISK, CINDER, EBS, GCE_PD, Disk, DiskKind
from kube_pyscheduler.plugins.classic.node_facts import NodeFacts

LIMIT_VARIABLE = "KUBE_MAX_PD_VOLS"
"""Environment variable that replaces the limit of nodes that state none. Source: KubeMaxPDVols in non_csi.go."""


class VolumeCountKernel(FilterKernel):
    """``wanted``: the pod's disks. ``limits``: int32[high]. ``left_out``: bool[high], rows that take any number."""

    statuses = (unschedulable("node(s) exceed max volume count"),)

    def __init__(
        self,
        kind: DiskKind,
        listers: Listers,
        attached: AttachedDisks,
        wanted: frozenset[Disk],
        limits: Ints,
        left_out: Mask,
    ) -> None:
        self._kind = kind
        self._listers = listers
        self._wanted = wanted
        self._limits = limits
        self._left_out = left_out
        self._together: Ints = attached.counts[: len(limits)].astype(np.int64) + len(wanted)
        """Distinct disks on each row with the pod's."""
        for disk in wanted:
            self._together[list(attached.rows_of(disk))] -= 1

    def codes(self, table: NodeTable, rows: Rows) -> Codes:
        return self._codes(row_numbers(table, rows), self._together[rows])

    def codes_if(self, table: NodeTable, rows: RowIndex, changes: RowChanges) -> Codes:
        together = self._together[rows]
        for place, row in enumerate(rows.tolist()):
            change = changes.get(row, UNCHANGED)
            if any(info.derived(self._kind.uses_of) for info in (*change.added, *change.removed)):
                together[place] = self._together_if(table, row, change)
        return self._codes(rows, together)

    def _codes(self, rows: RowIndex, together: Ints) -> Codes:
        return ((together > self._limits[rows]) & ~self._left_out[rows]).astype(np.uint8)

    def _together_if(self, table: NodeTable, row: int, change: RowChange) -> int:
        gone = {info.uid for info in change.removed}
        pods = [*(info for uid, info in table.pods[row].items() if uid not in gone), *change.added]
        disks = {self._kind.meaning(self._listers, use) for info in pods for use in info.derived(self._kind.uses_of)}
        return len((disks - {None}) | self._wanted)


@dataclass(frozen=True, slots=True)
class _AttachedOf:
    """What is attached to a table for all plugins of one kind, whenever they come and go."""

    kind: DiskKind

    def __call__(self, table: NodeTable) -> AttachedDisks:
        return AttachedDisks(table, self.kind)


@dataclass(frozen=True, slots=True)
class _LimitsOf:
    """As above, by what replaces the usual limit."""

    kind: DiskKind
    usual: int | None

    def __call__(self, table: NodeTable) -> NodeFacts[int]:
        return NodeFacts(table, lambda node: self.kind.limit(node, self.usual))


class _MaxVolumeCount(NodeFilter):
    kind: ClassVar[DiskKind]

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        text = environment.get(LIMIT_VARIABLE, "")
        self._usual_limit = int(text) if text.isdecimal() and int(text) > 0 else None

    def prepare(self, ctx: CycleContext) -> None:
        self._synced(ctx)

    def filter_kernel(self, ctx: CycleContext, pod: PodInfo) -> FilterKernel | None:
        uses = pod.derived(self.kind.uses_of) if pod.pod.spec.volumes else ()
        meanings = [self.kind.meaning(ctx.listers, use) for use in uses]
        wanted = frozenset(disk for disk in meanings if disk is not None)
        if not wanted:
            return None
        table = ctx.table
        attached, limits, csi_nodes = self._synced(ctx)
        migrated = LookupTable(csi_nodes.vocabulary, lambda facts: self.kind.plugin in facts.migrated, False, np.bool_)
        values = np.array([*limits.vocabulary.values, 0], dtype=np.int64)
        return VolumeCountKernel(
            self.kind,
            ctx.listers,
            attached,
            wanted,
            values[limits.ids[: table.high]],
            migrated.take(csi_nodes.ids[: table.high]),
        )

    def _synced(self, ctx: CycleContext) -> tuple[AttachedDisks, NodeFacts[int], CSINodeColumn]:
        table = ctx.table
        attached = table.attached(_AttachedOf(self.kind))
        limits = table.attached(_LimitsOf(self.kind, self._usual_limit))
        csi_nodes = table.attached(CSINodeColumn)
        attached.sync(ctx.listers)
        limits.sync()
        csi_nodes.sync(ctx.listers.csi_nodes)
        return attached, limits, csi_nodes

    def events(self) -> Sequence[EventRegistration]:
        return (
            EventRegistration(
                ClusterEvent(Resource.CSI_NODE, Action.ADD | Action.UPDATE), self._taken_over, self.kind.uses_of
            ),
            EventRegistration(ClusterEvent(Resource.NODE, Action.ADD)),
            EventRegistration(
                ClusterEvent(Resource.NODE, Action.UPDATE_NODE_ALLOCATABLE), self._takes_more, self.kind.uses_of
            ),
            EventRegistration(ClusterEvent(Resource.POD, Action.DELETE), self._pod_gone, self.kind.uses_of),
        )

    def _taken_over(self, pod: Pod, old: CSINode | None, new: CSINode, view: Listers) -> QueueingHint:
        was_so = old is not None and self.kind.plugin in migrated_plugins(old)
        return queue_if(not was_so and self.kind.plugin in migrated_plugins(new))

    def _takes_more(self, pod: Pod, old: Node, new: Node, view: Listers) -> QueueingHint:
        return queue_if(self._limit(new) > self._limit(old))

    def _limit(self, node: Node) -> int:
        return self.kind.limit(node, self._usual_limit)

    def _pod_gone(self, pod: Pod, old: Pod, new: Pod | None, view: Listers) -> QueueingHint:
        was_placed = bool(old.spec.node_name or old.status.nominated_node_name)
        return queue_if(was_placed and bool(self.kind.uses_of(old)))


class MaxEBSVolumeCount(_MaxVolumeCount):
    name = "MaxEBSVolumeCount"
    kind = EBS


class MaxGCEPDVolumeCount(_MaxVolumeCount):
    name = "MaxGCEPDVolumeCount"
    kind = GCE_PD


class MaxAzureDiskVolumeCount(_MaxVolumeCount):
    name = "MaxAzureDiskVolumeCount"
    kind = AZURE_DISK


class MaxCinderVolumeCount(_MaxVolumeCount):
    name = "MaxCinderVolumeCount"
    kind = CINDER
