"""Where the disks of one kind are, kept up to date change by change."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kube_pyscheduler.columns.arrays import Ids, grown
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.plugins.classic.disks import ClaimKey, Disk, DiskKind, Use


class AttachedDisks:
    """How many distinct disks of one kind the pods of each row have. A watcher of pods; what claims stand for is looked
    up in ``sync``.

    ``counts``: int32[capacity]. ``rows_of(disk)``: the rows that have it.
    """

    def __init__(self, table: NodeTable, kind: DiskKind) -> None:
        self._table = table
        self._kind = kind
        self._uses: dict[Use, dict[int, int]] = {}
        self._known: dict[Use, Disk | None] = {}
        self._stale: set[Use] = set()
        self._claims_of_volume: dict[str, set[str]] = {}
        self._seen = (0, 0, 0)
        self._rows: dict[Disk, dict[int, int]] = {}
        self.counts: Ids = np.zeros(table.capacity, dtype=np.int32)
        table.watch_pods(self)

    def rows_of(self, disk: Disk) -> Iterable[int]:
        return self._rows.get(disk, ())

    def pod_added(self, row: int, info: PodInfo) -> None:
        self._change(row, info, 1)

    def pod_removed(self, row: int, info: PodInfo) -> None:
        self._change(row, info, -1)

    def _change(self, row: int, info: PodInfo, sign: int) -> None:
        if not info.pod.spec.volumes:
            return
        self._fit_capacity()
        for use in info.derived(self._kind.uses_of):
            rows = self._uses.setdefault(use, {})
            rows[row] = rows.get(row, 0) + sign
            if use in self._known:
                self._count(self._known[use], row, sign)
            else:
                self._stale.add(use)
            if not rows[row]:
                del rows[row]
                if not rows:
                    del self._uses[use]
                    self._known.pop(use, None)

    def _fit_capacity(self) -> None:
        if len(self.counts) != self._table.capacity:
            self.counts = grown(self.counts, self._table.capacity)

    def sync(self, listers: Listers) -> None:
        """Cost: the claims in use that changed, or whose volumes did; all of them when a storage class changed."""
        self._fit_capacity()
        for use in (self._stale | self._changed(listers)) & self._uses.keys():
            before, after = self._known.get(use), self._look_up(listers, use)
            for row, count in self._uses[use].items():
                self._count(before, row, -count)
                self._count(after, row, count)
            self._known[use] = after
        self._stale.clear()

    def _changed(self, listers: Listers) -> set[Use]:
        claims, volumes, classes = (
            listers.persistent_volume_claims,
            listers.persistent_volumes,
            listers.storage_classes,
        )
        changed_claims = claims.changed_since(self._seen[0])
        changed_volumes = volumes.changed_since(self._seen[1])
        is_all = changed_claims is None or changed_volumes is None or classes.generation != self._seen[2]
        self._seen = claims.generation, volumes.generation, classes.generation
        if is_all:
            return set(self._uses)
        keys = set(changed_claims or ())
        for volume in changed_volumes or ():
            keys |= self._claims_of_volume.pop(volume, set())
        return {ClaimKey(key) for key in keys}

    def _look_up(self, listers: Listers, use: Use) -> Disk | None:
        if isinstance(use, ClaimKey):
            claim = listers.persistent_volume_claims.get(use.key)
            if claim is not None and claim.spec.volume_name:
                self._claims_of_volume.setdefault(claim.spec.volume_name, set()).add(use.key)
        return self._kind.meaning(listers, use)

    def _count(self, disk: Disk | None, row: int, amount: int) -> None:
        if disk is None:
            return
        rows = self._rows.setdefault(disk, {})
        before = rows.get(row, 0)
        rows[row] = before + amount
        if not before:
            self.counts[row] += 1
        if not rows[row]:
            self.counts[row] -= 1
            del rows[row]
            if not rows:
                del self._rows[disk]
