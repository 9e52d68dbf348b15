"""Which pools each node sees, kept up to date with slices and nodes.

Source of what a node sees: NewAllocator and GatherPools in structured/internal/incubating of
dynamic-resource-allocation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from kube_pyscheduler.columns.arrays import Mask, RowIndex
from kube_pyscheduler.columns.node_selector import SelectorMatcher
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.row_log import RowLog
from kube_pyscheduler.devices.pools import Pool, build_pool, in_order, newest
from kube_pyscheduler.devices.slices import Columns, PoolId, SliceInfo
from kube_pyscheduler.framework.listers import Lister
from kube_pyscheduler.objects.resource import Device, ResourceSlice, ResourceSliceSpec

Pools = tuple[Pool, ...]


class SharedSlice:
    """A slice for several nodes, or one with counters, which everybody sees."""

    def __init__(self, table: NodeTable, info: SliceInfo) -> None:
        self.info = info
        spec = info.spec
        self._table = table
        self._choosers: Sequence[Device | ResourceSliceSpec] = spec.devices if self.has_choosy_devices else (spec,)
        self._matchers = [
            SelectorMatcher(table, chooser.node_selector) if chooser.node_selector is not None else None
            for chooser in self._choosers
        ]

    @property
    def has_choosy_devices(self) -> bool:
        """Whether its devices choose nodes one by one."""
        spec = self.info.spec
        chooses = spec.node_name or spec.all_nodes or spec.node_selector is not None or spec.shared_counters
        return spec.per_device_node_selection and not chooses

    @property
    def is_for_nobody(self) -> bool:
        """Whether nothing says who may use it."""
        spec = self.info.spec
        return not (
            spec.all_nodes or spec.node_selector is not None or spec.per_device_node_selection or spec.shared_counters
        )

    @property
    def width(self) -> int:
        """How many columns ``masks`` has."""
        return len(self._choosers)

    def masks(self, rows: RowIndex) -> Mask:
        """bool[len(rows), width]: which rows see the slice, or each of its devices."""
        masks = np.zeros((len(rows), self.width), dtype=np.bool_)
        for column, (chooser, matcher) in enumerate(zip(self._choosers, self._matchers, strict=True)):
            if self.info.spec.shared_counters:
                masks[:, column] = True
            elif chooser.node_name:
                masks[:, column] = rows == self._table.row_of.get(chooser.node_name, -1)
            elif chooser.all_nodes:
                masks[:, column] = True
            elif matcher is not None:
                masks[:, column] = matcher.mask(self._table, rows)
        return masks


class Inventory:
    """Attached to the node table. ``sync`` before use; cost: the nodes concerned by what changed since the last time,
    which are all of them where a slice for several nodes changed."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._columns = Columns()
        self._slices: dict[str, SliceInfo] = {}
        self._local: dict[str, dict[str, SliceInfo]] = {}
        """Node → its own slices by name."""
        self._shared: dict[str, SharedSlice] = {}
        self._by_pool: dict[PoolId, dict[str, SliceInfo]] = {}
        self._generation = 0
        self._facts_seen = 0
        self._shared_pools: dict[PoolId, dict[object, Pool | None]] = {}
        """Pools without slices of single nodes, by what a node sees of them."""
        self._common: dict[bytes, Pools] = {}
        """What nodes without slices of their own see, by which shared slices they see."""
        self._pools: list[Pools] = []
        self.moved = RowLog()
        """Rows that see other pools than before."""
        self.placed = RowLog()
        """Rows that may see other slices than before."""

    def pools_of(self, row: int) -> Pools:
        """The pools that a node sees, in the order in which they are tried."""
        return self._pools[row]

    def local_of(self, node: str) -> Iterable[SliceInfo]:
        """The slices of a single node, whatever their generation."""
        return self._local.get(node, {}).values()

    def shared(self) -> Iterable[SharedSlice]:
        """All other slices, whatever their generation."""
        return self._shared.values()

    def slices_of(self, pool: PoolId) -> Iterable[SliceInfo]:
        """The slices of a pool, whatever their generation."""
        return self._by_pool.get(pool, {}).values()

    def sync(self, slices: Lister[ResourceSlice]) -> None:
        """Follow the slices and the nodes."""
        table = self._table
        written = table.facts.since(self._facts_seen)
        self._facts_seen = table.facts.position
        changed = slices.changed_since(self._generation)
        self._generation = slices.generation
        if changed is None:
            changed = {*self._slices, *(each.name for each in slices)}
        stale = self._take_in(slices, changed)
        self._pools.extend([()] * (table.high - len(self._pools)))
        if stale is None or written is None:
            rows = np.arange(table.high, dtype=np.int64)
        else:
            numbers = {table.row_of[node] for node in stale if node in table.row_of}
            numbers.update(written.tolist())
            rows = np.array(sorted(numbers), dtype=np.int64)
        if len(rows):
            self._place(rows)

    # Slices

    def _take_in(self, slices: Lister[ResourceSlice], names: set[str]) -> set[str] | None:
        """The nodes that may see other pools now; None for all."""
        concerned: list[SliceInfo] = []
        for name in names:
            known = self._slices.pop(name, None)
            if known is not None:
                concerned.append(known)
                self._drop(known)
            source = slices.get(name)
            if source is not None:
                fresh = self._slices[name] = SliceInfo(source, self._columns)
                concerned.append(fresh)
                self._add(fresh)
        for pool_id in {info.pool_id for info in concerned}:
            self._shared_pools.pop(pool_id, None)
            # Whether a pool is whole depends on all its slices.
            concerned.extend(self._by_pool.get(pool_id, {}).values())
        if any(not info.local_node for info in concerned):
            self._common.clear()
            return None
        return {info.local_node for info in concerned}

    def _add(self, info: SliceInfo) -> None:
        self._by_pool.setdefault(info.pool_id, {})[info.name] = info
        if info.local_node:
            self._local.setdefault(info.local_node, {})[info.name] = info
        else:
            self._shared[info.name] = SharedSlice(self._table, info)

    def _drop(self, info: SliceInfo) -> None:
        members = self._by_pool[info.pool_id]
        del members[info.name]
        if not members:
            del self._by_pool[info.pool_id]
        if not info.local_node:
            del self._shared[info.name]
            return
        own = self._local[info.local_node]
        del own[info.name]
        if not own:
            del self._local[info.local_node]

    # Nodes

    def _place(self, rows: RowIndex) -> None:
        masks = [shared.masks(rows) for shared in self._shared.values()]
        seen = np.packbits(np.concatenate(masks, axis=1), axis=1) if masks else np.zeros((len(rows), 0), dtype=np.uint8)
        for number, row in enumerate(rows.tolist()):
            self.placed.append(row)
            pools: Pools = ()
            if self._table.alive[row]:
                local = self._local.get(self._table.names[row])
                if local is None:
                    key = seen[number].tobytes()
                    if key not in self._common:
                        self._common[key] = self._gather({}, [mask[number] for mask in masks])
                    pools = self._common[key]
                else:
                    pools = self._gather(local, [mask[number] for mask in masks])
            if pools != self._pools[row]:
                self._pools[row] = pools
                self.moved.append(row)

    def _gather(self, local: dict[str, SliceInfo], masks: Sequence[Mask]) -> Pools:
        """The pools of a node with these slices of its own, and with ``masks`` for the shared ones."""
        relevant: dict[PoolId, list[SliceInfo]] = {}
        usable: dict[str, tuple[bool, ...]] = {}
        for info, bits in self._visible(masks):
            relevant.setdefault(info.pool_id, []).append(info)
            if bits is not None:
                usable[info.name] = bits
        own = set()
        for info in local.values():
            relevant.setdefault(info.pool_id, []).append(info)
            own.add(info.pool_id)
        pools = []
        for pool_id, slices in relevant.items():
            pool = self._pool(pool_id, newest(slices), usable, is_own=pool_id in own)
            if pool is not None:
                pools.append(pool)
        return in_order(pools)

    def _visible(self, masks: Sequence[Mask]) -> Iterator[tuple[SliceInfo, tuple[bool, ...] | None]]:
        for shared, mask in zip(self._shared.values(), masks, strict=True):
            if mask.any():
                yield shared.info, tuple(mask.tolist()) if shared.has_choosy_devices else None

    def _pool(
        self, pool_id: PoolId, slices: list[SliceInfo], usable: dict[str, tuple[bool, ...]], *, is_own: bool
    ) -> Pool | None:
        everywhere = list(self._by_pool[pool_id].values())
        if is_own:
            return build_pool(slices, everywhere, usable)
        known = self._shared_pools.setdefault(pool_id, {})
        key = tuple([(info.name, usable.get(info.name)) for info in slices])
        if key not in known:
            known[key] = build_pool(slices, everywhere, usable)
        return known[key]
