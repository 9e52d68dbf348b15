"""How many volumes of each CSI driver are on each row, kept up to date change by change."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kube_pyscheduler.columns.arrays import Ids, grown
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.framework.listers import Lister, Listers
from kube_pyscheduler.objects.storage import claim_class
from kube_pyscheduler.plugins.node_volume_limits.attachments import Attachments
from kube_pyscheduler.plugins.node_volume_limits.volumes import (
    Broken,
    ClaimRef,
    Counted,
    DriverVolume,
    Use,
    uses_of,
    volume_of_claim,
)

_CLAIM, _VOLUME, _CLASS = "claim", "volume", "class"


@dataclass(slots=True)
class Presence:
    """Why one volume is on one row: ``uses`` by pods, and ``attachments``. One reason is enough to take a place."""

    uses: int = 0
    attachments: int = 0

    @property
    def counts(self) -> bool:
        return self.uses > 0 or self.attachments > 0


class DriverCounts:
    """int32[capacity] each. ``volumes``: distinct volumes of a driver on each row; ``shared``: those of them that pods
    have more than one use for."""

    __slots__ = ("shared", "volumes")

    def __init__(self, capacity: int) -> None:
        self.volumes: Ids = np.zeros(capacity, dtype=np.int32)
        self.shared: Ids = np.zeros(capacity, dtype=np.int32)


class AttachedVolumes:
    """A watcher of pods. What their claims stand for is looked up in ``sync``; counts are right after it, on rows with
    a CSINode (others have no limits).

    Cost of a change: the volumes of the pod, or the rows that use the claim.
    """

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._uses: dict[Use, dict[int, int]] = {}
        self._known: dict[ClaimRef, Counted | Broken | None] = {}
        """What claims stand for. The uses of these count; those of others wait in ``_unknown``."""
        self._unknown: set[ClaimRef] = set()
        self._refs: dict[str, set[ClaimRef]] = {}
        """By key of the claim."""
        self._claims_of: dict[tuple[str, str], set[str]] = {}
        """(kind, name) of what claims refer to → their keys."""
        self._looked_up: dict[str, tuple[tuple[str, str], ...]] = {}
        self._seen = {_CLAIM: 0, _VOLUME: 0, _CLASS: 0}
        self._presence: dict[DriverVolume, dict[int, Presence]] = {}
        self._counts: dict[str, DriverCounts] = {}
        self._broken: dict[int, int] = {}
        self._attachments = Attachments(table, self._attachment_changed)
        table.watch_pods(self)

    # Reading

    def presence(self, volume: DriverVolume) -> dict[int, Presence]:
        """The rows that have the volume. Not to be changed."""
        return self._presence.get(volume, {})

    def counts(self, driver: str) -> DriverCounts:
        """The driver's volumes on all rows. Not to be changed."""
        counts = self._counts.get(driver)
        if counts is None:
            counts = self._counts[driver] = DriverCounts(self._table.capacity)
        if len(counts.volumes) != self._table.capacity:
            counts.volumes = grown(counts.volumes, self._table.capacity)
            counts.shared = grown(counts.shared, self._table.capacity)
        return counts

    def broken_rows(self) -> Collection[int]:
        """Rows with pods whose volumes cannot be told, see ``problem``."""
        return self._broken

    def meaning(self, listers: Listers, use: Use) -> Counted | Broken | None:
        """What a use counts as; None is nothing."""
        if not isinstance(use, ClaimRef):
            return use
        if use in self._known:
            return self._known[use]
        claim = listers.persistent_volume_claims.get(use.key)
        return None if claim is None else volume_of_claim(listers, use, claim)

    def problem(self, listers: Listers, pods: Iterable[PodInfo]) -> str:
        """Why the volumes of pods on a node with a CSINode cannot be told, or ""."""
        for info in pods:
            for use in info.derived(uses_of):
                found = self.meaning(listers, use)
                if isinstance(found, Broken):
                    return found.message
        return ""

    # Pods

    def pod_added(self, row: int, info: PodInfo) -> None:
        if info.pod.spec.volumes:
            for use in info.derived(uses_of):
                self._use(use, row, 1)

    def pod_removed(self, row: int, info: PodInfo) -> None:
        if info.pod.spec.volumes:
            for use in info.derived(uses_of):
                self._use(use, row, -1)

    def _use(self, use: Use, row: int, sign: int) -> None:
        rows = self._uses.setdefault(use, {})
        if isinstance(use, ClaimRef):
            if use in self._known:
                self._count(self._known[use], row, sign)
            elif use not in self._unknown:
                self._unknown.add(use)
                self._refs.setdefault(use.key, set()).add(use)
        else:
            self._count(use, row, sign)
        rows[row] = rows.get(row, 0) + sign
        if not rows[row]:
            del rows[row]
            if not rows:
                del self._uses[use]
                if isinstance(use, ClaimRef):
                    self._forget(use)

    def _forget(self, ref: ClaimRef) -> None:
        self._known.pop(ref, None)
        self._unknown.discard(ref)
        refs = self._refs[ref.key]
        refs.discard(ref)
        if not refs:
            del self._refs[ref.key]
            self._drop_lookups(ref.key)

    # Claims and what they stand for

    def sync(self, listers: Listers) -> None:
        """Take in what changed. Cost: the changes since the last time that concern volumes in use."""
        for key in self._changed_claims(listers):
            for ref in self._refs.get(key, ()):
                if ref in self._known:
                    self._count_everywhere(ref, self._known.pop(ref), -1)
                    self._unknown.add(ref)
        for ref in self._unknown:
            found = self._known[ref] = self._look_up(listers, ref)
            self._count_everywhere(ref, found, 1)
        self._unknown.clear()
        self._attachments.sync(listers)

    def _changed_claims(self, listers: Listers) -> Iterable[str]:
        sources: tuple[tuple[str, Lister[Any]], ...] = (
            (_CLAIM, listers.persistent_volume_claims),
            (_VOLUME, listers.persistent_volumes),
            (_CLASS, listers.storage_classes),
        )
        changed: set[str] = set()
        is_all = False
        for kind, lister in sources:
            names = lister.changed_since(self._seen[kind])
            self._seen[kind] = lister.generation
            if names is None:
                is_all = True
            elif kind == _CLAIM:
                changed |= names
            else:
                for name in names:
                    changed |= self._claims_of.get((kind, name), set())
        return list(self._refs) if is_all else changed

    def _look_up(self, listers: Listers, ref: ClaimRef) -> Counted | Broken | None:
        claim = listers.persistent_volume_claims.get(ref.key)
        self._drop_lookups(ref.key)
        if claim is None:
            return None
        named = (_VOLUME, claim.spec.volume_name), (_CLASS, claim_class(claim))
        places = self._looked_up[ref.key] = tuple([place for place in named if place[1]])
        for place in places:
            self._claims_of.setdefault(place, set()).add(ref.key)
        return volume_of_claim(listers, ref, claim)

    def _drop_lookups(self, key: str) -> None:
        for place in self._looked_up.pop(key, ()):
            keys = self._claims_of[place]
            keys.discard(key)
            if not keys:
                del self._claims_of[place]

    # Counting

    def _count_everywhere(self, ref: ClaimRef, found: Counted | Broken | None, sign: int) -> None:
        for row, uses in self._uses[ref].items():
            self._count(found, row, sign * uses)

    def _count(self, found: Counted | Broken | None, row: int, amount: int) -> None:
        if isinstance(found, Counted):
            self._change(found.volume, row, uses=amount)
        elif found is not None:
            left = self._broken.get(row, 0) + amount
            if left:
                self._broken[row] = left
            else:
                del self._broken[row]

    def _attachment_changed(self, volume: DriverVolume, row: int, amount: int) -> None:
        self._change(volume, row, attachments=amount)

    def _change(self, volume: DriverVolume, row: int, *, uses: int = 0, attachments: int = 0) -> None:
        rows = self._presence.setdefault(volume, {})
        presence = rows.setdefault(row, Presence())
        counted, was_shared = presence.counts, presence.uses > 1
        presence.uses += uses
        presence.attachments += attachments
        counts = self.counts(volume.driver)
        if (presence.uses > 1) != was_shared:
            counts.shared[row] += -1 if was_shared else 1
        if presence.counts != counted:
            counts.volumes[row] += -1 if counted else 1
        if not presence.counts:
            del rows[row]
            if not rows:
                del self._presence[volume]
