"""Filter and Score on all nodes.

Source: Filter, filterExtendedResources and computeScore in pkg/scheduler/framework/plugins/dynamicresources.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kube_pyscheduler.columns.arrays import Codes, Mask, RowIndex, Rows, Scores
from kube_pyscheduler.columns.node_selector import SelectorMatcher
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.devices import fragments
from kube_pyscheduler.devices.requests import MAX_ALTERNATIVES
from kube_pyscheduler.devices.search import Budget
from kube_pyscheduler.framework.interfaces import FilterKernel, Normalize, ScoreKernel
from kube_pyscheduler.framework.status import Status, error, unresolvable
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.objects.resource import DeviceClaim, ResourceClaim
from kube_pyscheduler.plugins.dynamic_resources.extended import requests_for
from kube_pyscheduler.plugins.dynamic_resources.state import Part, PodState

UNAVAILABLE, CANNOT_FIT, STALE = range(10, 13)
"""Codes besides those of fragments."""

STATUSES: Mapping[int, Status] = {
    fragments.CANNOT: unresolvable("cannot allocate all claims"),
    fragments.INVALID_POOLS: unresolvable("invalid resource pools were encountered"),
    UNAVAILABLE: unresolvable("resourceclaim not available on the node"),
    CANNOT_FIT: unresolvable("cannot fit resource"),
    STALE: unresolvable("cannot schedule extended resource claim"),
}


class ClaimsKernel(FilterKernel):
    """One pod's claims on all rows. Made once an attempt; the answers for all rows are found when it is made.

    ``failed``: numbers of allocated claims whose devices cannot be bound to."""

    reads_usage = False

    def __init__(self, table: NodeTable, pod: Pod, state: PodState, failed: Sequence[int]) -> None:
        self._pod = pod
        self._state = state
        high = table.high
        if state.extended is not None and state.extended.stale is not None:
            self._codes: Codes = np.full(high, STALE, dtype=np.uint8)
            return
        self._codes = np.zeros(high, dtype=np.uint8)
        state.parts = self._parts(table)
        budget = Budget(fragments.MAX_STEPS)
        for part in state.parts:
            if part.fragment is None:
                continue
            part.fragment.sync(budget)
            rows = table.all_rows if part.rows is None else np.flatnonzero(part.rows)
            self._codes[rows] = part.fragment.codes(rows)
        self._refuse_unavailable(table, failed)
        if state.extended is not None:
            self._codes[self._cannot_fit(table)] = CANNOT_FIT
        self.may_fail = bool(np.any((self._codes == fragments.FAILED) | (self._codes == fragments.TIMED_OUT)))

    def codes(self, table: NodeTable, rows: Rows) -> Codes:
        return self._codes[rows]

    def explain(self, table: NodeTable, rows: RowIndex, codes: Codes) -> list[tuple[Status, RowIndex]]:
        found: list[tuple[Status, RowIndex]] = []
        for code in np.unique(codes).tolist():
            those = rows[codes == code]
            if code in STATUSES:
                found.append((STATUSES[code], those))
            elif code == fragments.TIMED_OUT:
                found += [
                    (error(f"node {table.names[row]}: timed out trying to allocate devices"), np.array([row]))
                    for row in those.tolist()
                ]
            else:
                found += self._failures(those)
        return found

    def _failures(self, rows: RowIndex) -> list[tuple[Status, RowIndex]]:
        """Rows with the same mistake share a status."""
        keys = self._state.keys(self._pod.namespace)
        texts: dict[str, list[int]] = {}
        for row in rows.tolist():
            part = next(part for part in self._state.parts if part.rows is None or part.rows[row])
            assert part.fragment is not None
            texts.setdefault(part.fragment.problem(row).text(keys), []).append(row)
        return [(error(text), np.array(those, dtype=np.int64)) for text, those in texts.items()]

    # Which claims need devices where

    def _parts(self, table: NodeTable) -> list[Part]:
        state = self._state
        specs = [state.claims[number].spec.devices for number in state.to_allocate]
        extended = state.extended
        if extended is None:
            return [Part(None, (), state.devices.fragment(specs) if specs else None)]
        backed = [name for name in sorted(extended.resources) if state.devices.extended.class_of(name) is not None]
        pattern = np.zeros(table.high, dtype=np.int64)
        for bit, name in enumerate(backed):
            pattern |= (table.allocatable[table.resource_row(name), : table.high] == 0).astype(np.int64) << bit
        parts = []
        for bits in np.unique(pattern).tolist():
            served = tuple([name for bit, name in enumerate(backed) if bits >> bit & 1])
            claims: list[DeviceClaim] = [*specs, requests_for(self._pod, served, state.devices.extended).devices]
            needed = bool(served) or bool(state.claims)
            parts.append(Part(pattern == bits, served, state.devices.fragment(claims) if needed else None))
        return parts

    def _cannot_fit(self, table: NodeTable) -> RowIndex:
        """Rows that lack an extended resource which no class backs."""
        extended = self._state.extended
        assert extended is not None
        lacking: Mask = np.zeros(table.high, dtype=np.bool_)
        for name in extended.resources:
            if self._state.devices.extended.class_of(name) is not None:
                continue
            none = np.flatnonzero(table.allocatable[table.resource_row(name), : table.high] == 0)
            # Nodes that say that they have 0 of it are left to others.
            lacking[[row for row in none.tolist() if not _mentions(table, row, name)]] = True
        return np.flatnonzero(lacking)

    def _refuse_unavailable(self, table: NodeTable, failed: Sequence[int]) -> None:
        """Allocated claims bind the pod to some nodes. Claims that cannot be allocated are told of first."""
        state = self._state
        for number, claim in enumerate(state.claims):
            mask = _unavailable(table, claim, is_failed=number in failed)
            if mask is not None:
                state.unavailable[number] = mask
                self._codes[mask & (self._codes == fragments.FITS)] = UNAVAILABLE


def _mentions(table: NodeTable, row: int, resource: str) -> bool:
    node = table.nodes[row]
    return node is not None and resource in node.status.allocatable


def _unavailable(table: NodeTable, claim: ResourceClaim, *, is_failed: bool) -> Mask | None:
    """bool[high]: where the claim cannot be used; None where it can be used everywhere."""
    if claim.allocation is None:
        return None
    if is_failed:
        return np.ones(table.high, dtype=np.bool_)
    selector = claim.allocation.node_selector
    if selector is None:
        return None
    return ~SelectorMatcher(table, selector).mask(table, table.all_rows)


class AlternativesKernel(ScoreKernel):
    """The better the alternatives a node has for the requests that allow several, the better the node."""

    normalize = Normalize.DEFAULT

    def __init__(self, state: PodState) -> None:
        self._state = state

    def scores(self, table: NodeTable, rows: Rows) -> Scores:
        numbers = np.arange(table.high, dtype=np.int64)[rows]
        scores = np.zeros(len(numbers), dtype=np.int64)
        allocated = sum(_score(claim) for claim in self._state.claims)
        for part in self._state.parts:
            if part.fragment is None:
                continue
            places = slice(None) if part.rows is None else part.rows[numbers]
            scores[places] = part.fragment.scores(numbers[places]) + allocated
        return scores


def _score(claim: ResourceClaim) -> int:
    """What the alternatives of an allocated claim score."""
    if claim.allocation is None:
        return 0
    chosen = {device.request for device in claim.allocation.devices.results}
    return sum(
        MAX_ALTERNATIVES - place
        for request in claim.spec.devices.requests
        for place, alternative in enumerate(request.first_available)
        if f"{request.name}/{alternative.name}" in chosen
    )


def may_score(state: PodState) -> bool:
    """Whether nodes may get other scores than 0: some claim has alternatives, and some devices are to be found."""
    if not any(part.fragment is not None for part in state.parts):
        return False
    return any(request.first_available for claim in state.claims for request in claim.spec.devices.requests)
