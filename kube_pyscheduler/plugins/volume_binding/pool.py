"""Volumes of one storage class that wait for a claim, smallest first, as columns.

Source of the choice: FindMatchingVolume in component-helpers/storage/volume/pv_helpers.go.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Sequence

import numpy as np

from kube_pyscheduler.columns.arrays import Ids, Ints, Mask, Rows
from kube_pyscheduler.columns.labels import LabelColumn
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.vocabulary import ABSENT, LookupTable, Vocabulary
from kube_pyscheduler.objects.pod import VolumeClaimSpec
from kube_pyscheduler.objects.quantity import parse_milli, to_units
from kube_pyscheduler.objects.selectors import NodeSelector
from kube_pyscheduler.objects.storage import PersistentVolume, PersistentVolumeClaim, claim_class, volume_class
from kube_pyscheduler.plugins.volume_binding.topology import Matchers, affinity_of, label_keys, one_label

NONE = np.int32(2**31 - 1)
"""In place of a volume's position: there is no volume."""

KEEP = 64
"""Claim selectors whose answers are kept at most."""

FILESYSTEM = "Filesystem"

KIND, LABELS, AFFINITY, LABEL, SIZE = range(5)
COLUMNS = 5

Kind = tuple[str, frozenset[str], str]
"""What claims ask of a volume besides its size: volume mode, access modes, attributes class."""

Labels = tuple[tuple[str, str], ...]


def capacity_of(volume: PersistentVolume) -> int:
    """Milli-bytes."""
    return parse_milli(volume.spec.capacity.get("storage", 0))


def size_of(claim: PersistentVolumeClaim) -> int:
    """Milli-bytes the claim asks for."""
    return parse_milli(claim.spec.resources.requests.get("storage", 0))


def suits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume that is meant for the claim can serve it: size, mode, attributes class, not going away."""
    mode, _access_modes, attributes_class = kind_of(volume)
    return (
        capacity_of(volume) >= size_of(claim)
        and mode == (claim.spec.volume_mode or FILESYSTEM)
        and attributes_class == claim.spec.volume_attributes_class_name
        and not volume.metadata.deletion_timestamp
    )


def kind_of(volume: PersistentVolume) -> Kind:
    spec = volume.spec
    return spec.volume_mode or FILESYSTEM, frozenset(spec.access_modes), spec.volume_attributes_class_name


def is_available(volume: PersistentVolume) -> bool:
    """Whether the volume waits for any claim that it suits."""
    return (
        volume.spec.claim_ref is None and volume.status.phase == "Available" and not volume.metadata.deletion_timestamp
    )


def is_candidate(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the claim may take a volume that waits for any claim; the plain form of ``VolumePool.choose``."""
    selector = claim.spec.selector
    return (
        is_available(volume)
        and volume_class(volume) == claim_class(claim)
        and suits(volume, claim)
        and set(volume.spec.access_modes).issuperset(claim.spec.access_modes)
        and (selector is None or selector.matches(volume.metadata.labels))
    )


class LabelPlaces:
    """Affinities that ask for values of one label: (affinity, value) pairs, those of an affinity side by side."""

    def __init__(self, column: LabelColumn) -> None:
        self.column = column
        self._values: list[int] = []
        self._first: dict[int, int] = {}
        self._arrays: tuple[Ids, Ids, Ids] | None = None

    def add(self, affinity: int, values: frozenset[str]) -> None:
        self._first[affinity] = len(self._values)
        self._values.extend(sorted(self.column.vocabulary.intern(value) for value in values))
        self._arrays = None

    def smallest(self, positions: Ids, affinities: Ints, depth: int) -> list[Ids]:
        """For each value of the label, the first ``depth`` of the ``positions`` (ascending, with their affinities) that
        go with it: ``depth`` lookup tables of positions, NONE where there are fewer. The last cell is for "absent"."""
        first, count, values = self._as_columns()
        found, left = values[first[affinities]], positions
        if len(values) > len(self._first):
            # Each position once for every value of its affinity.
            counts = count[affinities]
            starts = np.repeat(first[affinities] - (np.cumsum(counts) - counts), counts)
            found, left = values[starts + np.arange(len(starts))], np.repeat(positions, counts)
        tables = []
        for _ in range(depth):
            table = np.full(len(self.column.vocabulary) + 1, NONE, dtype=np.int32)
            np.minimum.at(table, found, left)
            tables.append(table)
            others = left != table[found]
            found, left = found[others], left[others]
        return tables

    def _as_columns(self) -> tuple[Ids, Ids, Ids]:
        """(first pair, number of pairs) by affinity, and the values of all pairs."""
        if self._arrays is None:
            affinities = np.array(list(self._first), dtype=np.int64)
            starts = np.array([*self._first.values(), len(self._values)], dtype=np.int32)
            first = np.zeros(int(affinities[-1]) + 1, dtype=np.int32)
            count = np.zeros_like(first)
            first[affinities] = starts[:-1]
            count[affinities] = np.diff(starts)
            self._arrays = first, count, np.array(self._values, dtype=np.int32)
        return self._arrays


class VolumePool:
    """Available volumes of one class. A *position* is a place in the order by size, then name; it changes whenever a
    volume comes or goes.

    Cost of a change: O(volumes) array work. Cost of a choice: O(volumes + rows).
    """

    def __init__(self, table: NodeTable, matchers: Matchers) -> None:
        self._table = table
        self._matchers = matchers
        self._order: list[tuple[int, str]] = []
        self._volumes: dict[str, PersistentVolume] = {}
        self._columns: Ints = np.empty((COLUMNS, 0), dtype=np.int64)
        """By position: kind, label set, affinity, the label that the affinity asks for a value of, bytes."""
        self._kinds: Vocabulary[Kind] = Vocabulary()
        self._label_sets: Vocabulary[Labels] = Vocabulary()
        self._affinities: Vocabulary[NodeSelector | None] = Vocabulary()
        self._by_label: Vocabulary[str] = Vocabulary()
        self._places: list[LabelPlaces] = []
        """By number of the label in ``_by_label``."""
        self._label_of: list[int] = []
        """By affinity: the label it asks for a value of, ABSENT where it is not so simple."""
        self._selected: dict[Hashable, LookupTable[Labels, np.bool_]] = {}
        self.node_labels: set[str] = set()
        """All labels of nodes that volumes look at, or ever did."""

    def __len__(self) -> int:
        return len(self._order)

    def at(self, position: int) -> PersistentVolume:
        """The volume at a position."""
        return self._volumes[self._order[position][1]]

    def put(self, volumes: Sequence[PersistentVolume]) -> None:
        """Add volumes, or replace what is known of them."""
        for volume in volumes:
            self.discard(volume.name)
        if len(volumes) > max(16, len(self._order) // 4):
            self._rebuild([*self._volumes.values(), *volumes])
            return
        for volume in volumes:
            key = (capacity_of(volume), volume.name)
            position = bisect_left(self._order, key)
            self._order.insert(position, key)
            self._volumes[volume.name] = volume
            self._columns = np.insert(self._columns, position, self._facts(volume), axis=1)

    def discard(self, name: str) -> None:
        """Forget a volume, if it is here."""
        volume = self._volumes.pop(name, None)
        if volume is None:
            return
        position = bisect_left(self._order, (capacity_of(volume), name))
        del self._order[position]
        self._columns = np.delete(self._columns, position, axis=1)

    def sizes(self, positions: Ids) -> Ints:
        """Bytes of the volumes at these positions, 0 for NONE."""
        sizes = np.append(self._columns[SIZE], 0)
        return sizes[np.where(positions == NONE, -1, positions)]

    def choose(self, claim: PersistentVolumeClaim, rows: Rows, taken: Sequence[Ids]) -> Ids:
        """int32[len(rows)]: position of the smallest volume for the claim on each row, NONE where there is none.
        ``taken``: positions that are spoken for on each row."""
        count = len(self._table.alive[rows])
        chosen = np.full(count, NONE, dtype=np.int32)
        positions = self._fitting(claim)
        if not len(positions):
            return chosen
        for candidates in self._candidates(positions, rows, depth=len(taken) + 1):
            for others in taken:
                candidates = np.where(candidates == others, NONE, candidates)
            chosen = np.minimum(chosen, candidates)
        return chosen

    def _fitting(self, claim: PersistentVolumeClaim) -> Ids:
        """Positions of the volumes that are large enough and of the right kind, ascending."""
        first = bisect_left(self._order, (size_of(claim), ""))
        spec = claim.spec
        wanted = np.array([_is_kind(kind, spec) for kind in self._kinds.values], dtype=np.bool_)
        fits: Mask = wanted[self._columns[KIND, first:]] if len(self._order) > first else np.empty(0, dtype=np.bool_)
        if spec.selector is not None:
            selector = spec.selector
            table = self._selected.get(selector.canonical())
            if table is None:
                if len(self._selected) >= KEEP:
                    self._selected.clear()
                table = LookupTable(self._label_sets, lambda labels: selector.matches(dict(labels)), False, np.bool_)
                self._selected[selector.canonical()] = table
            fits = fits & table.take(self._columns[LABELS, first:].astype(np.int32))
        return (np.flatnonzero(fits) + first).astype(np.int32)

    def _candidates(self, positions: Ids, rows: Rows, depth: int) -> list[Ids]:
        """Arrays int32[len(rows)] of positions, among which are the ``depth`` smallest that go with each row."""
        count = len(self._table.alive[rows])
        affinities, labels = self._columns[AFFINITY, positions], self._columns[LABEL, positions]
        found: list[Ids] = []
        for affinity in _distinct(affinities[labels == ABSENT]):
            selector = self._affinities.values[affinity]
            reach = None if selector is None else self._matchers.mask(selector, rows)
            for position in positions[affinities == affinity][:depth].tolist():
                everywhere = np.full(count, position, dtype=np.int32)
                found.append(everywhere if reach is None else np.where(reach, everywhere, NONE))
        for label in _distinct(labels[labels != ABSENT]):
            places, here = self._places[label], labels == label
            ids = places.column.ids[rows]
            found += [table[ids] for table in places.smallest(positions[here], affinities[here], depth)]
        return found

    def _rebuild(self, volumes: list[PersistentVolume]) -> None:
        self._volumes = {volume.name: volume for volume in volumes}
        ordered = sorted((capacity_of(volume), volume.name) for volume in volumes)
        self._order = ordered
        facts = [self._facts(self._volumes[name]) for _size, name in ordered]
        self._columns = np.array(facts, dtype=np.int64).reshape(-1, COLUMNS).T.copy()

    def _facts(self, volume: PersistentVolume) -> tuple[int, int, int, int, int]:
        """A volume's part of ``_columns``."""
        affinity = affinity_of(volume)
        number = self._affinities.intern(affinity)
        if number == len(self._label_of):
            self.node_labels.update(label_keys(affinity))
            self._label_of.append(self._place(number, affinity))
        labels = tuple(sorted(volume.metadata.labels.items()))
        return (
            self._kinds.intern(kind_of(volume)),
            self._label_sets.intern(labels),
            number,
            self._label_of[number],
            to_units(capacity_of(volume)),
        )

    def _place(self, number: int, affinity: NodeSelector | None) -> int:
        simple = one_label(affinity) if affinity is not None else None
        if simple is None:
            return ABSENT
        key, values = simple
        label = self._by_label.intern(key)
        if label == len(self._places):
            self._places.append(LabelPlaces(self._table.label_column(key)))
        self._places[label].add(number, values)
        return label


def _distinct(numbers: Ints) -> list[int]:
    return np.flatnonzero(np.bincount(numbers)).tolist()


def _is_kind(kind: Kind, spec: VolumeClaimSpec) -> bool:
    mode, access_modes, attributes_class = kind
    return (
        mode == (spec.volume_mode or FILESYSTEM)
        and access_modes.issuperset(spec.access_modes)
        and attributes_class == spec.volume_attributes_class_name
    )
