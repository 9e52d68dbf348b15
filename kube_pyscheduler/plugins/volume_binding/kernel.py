"""Where a pod's claims can have their volumes. Source: FindPodVolumes in volumebinding/binder.go."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kube_pyscheduler.columns.arrays import Codes, Ids, Ints, Mask, RowIndex, Rows
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.vocabulary import LookupTable
from kube_pyscheduler.framework.interfaces import FilterKernel
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.framework.status import Code, Status, error
from kube_pyscheduler.objects.csi_translation import TranslationError, in_tree_plugin, translated
from kube_pyscheduler.objects.quantity import to_units
from kube_pyscheduler.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass, claim_class
from kube_pyscheduler.plugins.volume_binding.claims import SELECTED_NODE, PodClaims
from kube_pyscheduler.plugins.volume_binding.index import VolumeIndex
from kube_pyscheduler.plugins.volume_binding.pool import NONE, VolumePool, capacity_of, size_of
from kube_pyscheduler.plugins.volume_binding.topology import affinity_of, allowed_nodes

NODE_CONFLICT, BIND_CONFLICT, NO_SPACE, NO_VOLUME = 1, 2, 4, 8
"""Bits of a code."""
FAILED = 16
"""Codes from here on stand for errors, in the order in which they were found."""

REASONS = (
    (NODE_CONFLICT, "node(s) didn't match PersistentVolume's node affinity"),
    (BIND_CONFLICT, "node(s) didn't find available persistent volumes to bind"),
    (NO_SPACE, "node(s) did not have enough free storage"),
    (NO_VOLUME, "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"),
)

NO_PROVISIONER = "kubernetes.io/no-provisioner"
"""Provisioner of classes whose volumes somebody makes by hand."""


@dataclass(frozen=True, slots=True)
class Binding:
    """A volume for a claim."""

    volume: PersistentVolume
    claim: PersistentVolumeClaim


@dataclass(frozen=True, slots=True)
class PodVolumes:
    """What is to be done for a pod's claims on one node. ``provisions``: claims that get new volumes."""

    bindings: tuple[Binding, ...] = ()
    provisions: tuple[PersistentVolumeClaim, ...] = ()


@dataclass(slots=True)
class StorageUse:
    """Arrays of len(rows): whether the pod takes any, bytes it asks for, and bytes that there are."""

    present: Mask
    requested: Ints
    capacity: Ints

    @classmethod
    def none(cls, rows: int) -> StorageUse:
        return cls(np.zeros(rows, dtype=np.bool_), np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64))

    def add(self, where: Mask, size: int) -> None:
        """Ask for so many bytes more."""
        self.present |= where
        self.requested += np.where(where, size, 0)


@dataclass(frozen=True, slots=True)
class BoundVolume:
    """``plugin``: for in-tree volumes, the plugin whose migration makes ``of_driver`` count instead, or ``problem`` an
    error; else ""."""

    volume: PersistentVolume
    plugin: str = ""
    of_driver: PersistentVolume | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Match:
    """Volumes found for one claim. ``numbers``: int32[len(rows)], positions in ``pool``, NONE where there is none, or
    negative for volumes that are meant for the claim."""

    claim: PersistentVolumeClaim
    pool: VolumePool
    numbers: Ids


class VolumeBindingKernel(FilterKernel):
    """Cost: array work over the rows for each bound claim, over rows and available volumes for each other one."""

    reads_usage = False

    def __init__(self, index: VolumeIndex, listers: Listers, claims: PodClaims) -> None:
        self._index = index
        self._listers = listers
        self._chosen = [claim for claim in claims.delayed if SELECTED_NODE in claim.metadata.annotations]
        """Claims that wait for a provisioner already."""
        unchosen = [claim for claim in claims.delayed if SELECTED_NODE not in claim.metadata.annotations]
        self._open = sorted(unchosen, key=size_of)
        self._meant: list[PersistentVolume] = []
        """Volumes meant for one of the claims; the number of the i-th is −1−i."""
        self._matches_of_all: list[Match] | None = None
        """What the last look at all rows found."""
        self._bound = [bound_volume(listers, claim) for claim in claims.bound]
        self._errors = [bound.problem for bound in self._bound if bound is not None and bound.problem]
        self.may_fail = bool(self._errors)

    def codes(self, table: NodeTable, rows: Rows) -> Codes:
        codes = self._bound_codes(rows)
        if self._chosen or self._open:
            unbound = self._unbound_codes(rows)
            codes = np.where(codes >= FAILED, codes, codes | unbound)
        return codes

    def explain(self, table: NodeTable, rows: RowIndex, codes: Codes) -> list[tuple[Status, RowIndex]]:
        return [(self._status(code), rows[codes == code]) for code in np.unique(codes).tolist()]

    def decide(self, row: int) -> PodVolumes:
        """What is to be done if the pod goes to a row that it fits."""
        matches, place = self._matches_of_all, row
        if matches is None:
            matches, place = self._matches(np.array([row], dtype=np.int64)), 0
        found = [(match, int(match.numbers[place])) for match in matches]
        bindings = [Binding(self._volume(match.pool, number), match.claim) for match, number in found if number != NONE]
        unmatched = [match.claim for match, number in found if number == NONE]
        return PodVolumes(tuple(bindings), (*self._chosen, *unmatched))

    def storage(self, rows: Rows) -> tuple[dict[str, StorageUse], dict[str, StorageUse]]:
        """What the pod takes of storage on each row, by class: of volumes that exist, and of the room for new ones."""
        bound: dict[str, StorageUse] = {}
        new: dict[str, StorageUse] = {}
        everywhere = np.ones(len(self._index.table.alive[rows]), dtype=np.bool_)
        needs = [(claim, everywhere) for claim in self._chosen]
        for match in self._matches(rows):
            found = match.numbers != NONE
            needs.append((match.claim, ~found))
            use = bound.setdefault(claim_class(match.claim), StorageUse.none(len(everywhere)))
            sizes = match.pool.sizes(np.where(match.numbers < 0, NONE, match.numbers))
            for number, volume in enumerate(self._meant, start=1):
                sizes[match.numbers == -number] = to_units(capacity_of(volume))
            use.add(found, to_units(size_of(match.claim)))
            use.capacity += sizes
        for claim, needed in needs:
            storage_class = self._listers.storage_classes.get(claim_class(claim))
            if storage_class is not None and self._is_room_known(claim, storage_class):
                use = new.setdefault(storage_class.name, StorageUse.none(len(everywhere)))
                use.add(needed, to_units(size_of(claim)))
                use.capacity = self._index.room.room(storage_class.name, rows)
        return bound, new

    def _status(self, code: int) -> Status:
        if code >= FAILED:
            return error(self._errors[code - FAILED])
        reasons = tuple(reason for bit, reason in REASONS if code & bit)
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)

    # Bound claims

    def _bound_codes(self, rows: Rows) -> Codes:
        """The first claim that does not fit decides. Source: checkBoundClaims."""
        codes = np.zeros(len(self._index.table.alive[rows]), dtype=np.uint8)
        for volume in self._bound:
            if volume is None:
                codes[codes == 0] = NO_VOLUME
                break
            codes = np.where(codes == 0, self._refused(volume, rows), codes)
        return codes

    def _refused(self, bound: BoundVolume, rows: Rows) -> Codes:
        """Codes of nodes that a bound volume cannot be reached from."""
        codes = np.where(self._reach(bound.volume, rows), np.uint8(0), np.uint8(NODE_CONFLICT))
        if not bound.plugin:
            return codes
        column = self._index.csi_nodes(self._listers)
        migrated = LookupTable(column.vocabulary, lambda facts: bound.plugin in facts.migrated, False, np.bool_)
        if bound.of_driver is None:
            of_driver = np.full(len(codes), FAILED + self._errors.index(bound.problem), dtype=np.uint8)
        else:
            of_driver = np.where(self._reach(bound.of_driver, rows), np.uint8(0), np.uint8(NODE_CONFLICT))
        return np.where(migrated.take(column.ids[rows]), of_driver, codes)

    def _reach(self, volume: PersistentVolume, rows: Rows) -> Mask:
        """bool[len(rows)]: nodes the volume can be reached from."""
        affinity = affinity_of(volume)
        if affinity is None:
            return np.ones(len(self._index.table.alive[rows]), dtype=np.bool_)
        return self._index.matchers.mask(affinity, rows)

    # The others

    def _unbound_codes(self, rows: Rows) -> Codes:
        elsewhere = self._elsewhere(rows)
        everywhere = np.ones(len(elsewhere), dtype=np.bool_)
        needs = [(claim, everywhere) for claim in self._chosen]
        matches = self._matches(rows)
        if isinstance(rows, slice):
            self._matches_of_all = matches
        needs += [(match.claim, match.numbers == NONE) for match in matches]
        codes = np.zeros(len(elsewhere), dtype=np.uint8)
        for claim, needed in needs:
            here = needed & (codes == 0)
            if here.any():
                codes[here] = self._provision_codes(claim, rows)[here]
        codes[elsewhere] = BIND_CONFLICT
        return codes

    def _elsewhere(self, rows: Rows) -> Mask:
        """bool[len(rows)]: nodes other than the one that a claim's volume is being provisioned for."""
        table = self._index.table
        elsewhere = np.zeros(table.high, dtype=np.bool_)
        for claim in self._chosen:
            row = table.row_of.get(claim.metadata.annotations[SELECTED_NODE], -1)
            elsewhere |= np.arange(table.high) != row
        return elsewhere[rows]

    def _provision_codes(self, claim: PersistentVolumeClaim, rows: Rows) -> Codes:
        """Codes of nodes where no volume can be made for the claim. Source: checkVolumeProvisions."""
        codes = np.zeros(len(self._index.table.alive[rows]), dtype=np.uint8)
        storage_class = self._listers.storage_classes.get(claim_class(claim))
        if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER):
            codes[:] = BIND_CONFLICT
            return codes
        if self._is_room_known(claim, storage_class):
            room = self._index.room.room(storage_class.name, rows)
            codes[room < to_units(size_of(claim))] = NO_SPACE
        allowed = allowed_nodes(storage_class.allowed_topologies)
        if allowed is not None:
            codes[~self._index.matchers.mask(allowed, rows)] = BIND_CONFLICT
        return codes

    def _is_room_known(self, claim: PersistentVolumeClaim, storage_class: StorageClass) -> bool:
        """Whether the driver tells how much room there is for new volumes."""
        driver = self._listers.csi_drivers.get(storage_class.provisioner)
        is_told = driver is not None and driver.spec.storage_capacity
        return is_told and "storage" in claim.spec.resources.requests

    def _matches(self, rows: Rows) -> list[Match]:
        """A volume for each claim on each row, the smallest claim first. Source: findMatchingVolumes."""
        matches: list[Match] = []
        for claim in self._open:
            pool = self._index.pool(claim_class(claim))
            taken = [match.numbers for match in matches if match.pool is pool]
            numbers = np.full(len(self._index.table.alive[rows]), NONE, dtype=np.int32)
            undecided = np.ones(len(numbers), dtype=np.bool_)
            for volume in self._index.meant_for(self._listers.persistent_volumes, claim):
                number = self._number(volume)
                free = undecided.copy()
                for others in taken:
                    free &= others != number
                numbers[free & self._reach(volume, rows)] = number
                undecided &= ~free
            if undecided.any():
                numbers = np.where(undecided, pool.choose(claim, rows, taken), numbers)
            matches.append(Match(claim, pool, numbers))
        return matches

    def _number(self, volume: PersistentVolume) -> int:
        if volume not in self._meant:
            self._meant.append(volume)
        return -1 - self._meant.index(volume)

    def _volume(self, pool: VolumePool, number: int) -> PersistentVolume:
        return pool.at(number) if number >= 0 else self._meant[-1 - number]


def bound_volume(listers: Listers, claim: PersistentVolumeClaim) -> BoundVolume | None:
    """The volume of a bound claim, if it exists. Source: tryTranslatePVToCSI."""
    volume = listers.persistent_volumes.latest(claim.spec.volume_name)
    if volume is None:
        return None
    plugin = in_tree_plugin(volume.spec)
    if plugin is None or not plugin.migrated:
        return BoundVolume(volume)
    try:
        return BoundVolume(volume, plugin.name, translated(volume))
    except TranslationError as problem:
        return BoundVolume(volume, plugin.name, problem=f"could not translate pv: {problem}")
