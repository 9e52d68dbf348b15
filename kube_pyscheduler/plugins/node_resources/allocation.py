"""How full a node will be, as scores: LeastAllocated, MostAllocated, RequestedToCapacityRatio, balance.

Everything is int64 with truncation, or float64 where upstream computes in float64.
Source: pkg/scheduler/framework/plugins/noderesources/{resource_allocation,least_allocated,most_allocated,
requested_to_capacity_ratio,balanced_allocation}.go.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from kube_pyscheduler.columns.arrays import Floats, Ints, Mask, Rows, Scores, truncated_divide
from kube_pyscheduler.columns.broken_line import tabulated
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.columns.resources import CPU, MEMORY, is_scalar_resource
from kube_pyscheduler.config.args import (
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from kube_pyscheduler.devices.classes import is_device_resource
from kube_pyscheduler.devices.supply import Supply
from kube_pyscheduler.devices.world import Devices
from kube_pyscheduler.framework.interfaces import MAX_NODE_SCORE, CycleContext, ScoreKernel
from kube_pyscheduler.framework.status import Status, error
from kube_pyscheduler.objects.pod_requests import Amounts
from kube_pyscheduler.objects.quantity import to_milli, to_units

FEW = 4
"""Up to so many rows are scored one by one in plain Python, which is faster than numpy's calls for them."""

MAX_CUSTOM_PRIORITY_SCORE = 10
"""Scale of the scores in a shape. Source: MaxCustomPriorityScore in pkg/scheduler/apis/config/types.go."""


class ScoredResource:
    """One resource that is scored: its row, the pod's request in column units, its weight. ``supply``: what is known of
    the devices that may serve it on nodes that do not have it."""

    __slots__ = ("_look", "_seen", "_supply", "request", "row", "weight")

    def __init__(self, row: int, request: int, weight: int, supply: Callable[[], Supply] | None = None) -> None:
        self.row = row
        self.request = request
        self.weight = weight
        self._look = supply
        self._supply = supply() if supply is not None else None
        self._seen = self._supply.version if self._supply is not None else 0

    @property
    def is_stale(self) -> bool:
        """Whether nodes have other devices since, or others are taken."""
        return self._look is not None and self._look().version != self._seen

    def on(self, table: NodeTable, rows: Rows, requested: Ints) -> tuple[Ints, Ints]:
        """int64[rows] each: how much of it there is, 0 where there is none, and how much is taken. ``requested``: what
        pods ask for, to be indexed by resource and row."""
        capacity, taken = table.allocatable[self.row, rows], requested[self.row, rows]
        if self._supply is not None:
            lacks = capacity == 0
            capacity = np.where(lacks, self._supply.capacity[rows], capacity)
            taken = np.where(lacks, self._supply.taken[rows], taken)
        return capacity, taken

    def on_row(self, table: NodeTable, row: int, requested: Ints) -> tuple[int, int]:
        """``on`` for one row."""
        capacity = table.allocatable.item(self.row, row)
        if capacity == 0 and self._supply is not None:
            return self._supply.capacity.item(row), self._supply.taken.item(row)
        return capacity, requested.item(self.row, row)


def scored_resources(ctx: CycleContext, specs: Sequence[ResourceSpec], amounts: Amounts) -> list[ScoredResource]:
    """The resources that count for a pod that asks for ``amounts`` (milli-units): scalar ones only if it asks for
    them."""
    table = ctx.table
    scored = []
    for spec in specs:
        milli = amounts.get(spec.name, 0)
        request = to_milli(milli) if spec.name == "cpu" else to_units(milli)
        supply = None
        if is_scalar_resource(spec.name):
            if request == 0:
                continue
            if is_device_resource(spec.name):
                supply = partial(table.attached(Devices).supply, ctx.listers, spec.name)
        elif spec.name not in ("cpu", "memory", "ephemeral-storage"):
            continue
        scored.append(ScoredResource(table.resource_row(spec.name), request, spec.weight, supply))
    return scored


class AllocationKernel(ScoreKernel):
    """Weighted mean of one score a resource; resources that a node does not have are left out.

    Within ±100 even where a product overflows: it is divided by a capacity that is large then.
    """

    dtype = np.int16

    def __init__(self, resources: Sequence[ScoredResource]) -> None:
        self._resources = resources

    def is_stale(self, table: NodeTable) -> bool:
        return any(resource.is_stale for resource in self._resources)

    @abstractmethod
    def resource_scores(self, requested: Ints, capacity: Ints) -> Ints:
        """int64[rows]: the score of one resource; ``capacity`` is not 0."""

    @abstractmethod
    def resource_score(self, requested: int, capacity: int) -> int:
        """``resource_scores`` for one row."""

    def scores(self, table: NodeTable, rows: Rows) -> Scores:
        if not isinstance(rows, slice) and len(rows) <= FEW:
            return np.array([self._row_score(table, row) for row in rows.tolist()], dtype=np.int64)
        return self._all_scores(table, rows)

    def _row_score(self, table: NodeTable, row: int) -> int:
        total = weights = 0
        for resource in self._resources:
            capacity, allocated = resource.on_row(table, row, _non_zero_requested(table, resource.row))
            if capacity == 0:
                continue
            score = self.resource_score(allocated + resource.request, capacity)
            if self.counts(score):
                total += score * resource.weight
                weights += resource.weight
        return self.row_mean(total, weights) if weights else 0

    def _all_scores(self, table: NodeTable, rows: Rows) -> Scores:
        total: Ints | None = None
        weights: Ints | None = None
        for resource in self._resources:
            capacity, allocated = resource.on(table, rows, _non_zero_requested(table, resource.row))
            present = capacity != 0
            score = self.resource_scores(allocated + resource.request, np.where(present, capacity, 1))
            counted = self.counted(present, score)
            weighted = np.where(counted, score * resource.weight, 0)
            weight = np.where(counted, np.int64(resource.weight), np.int64(0))
            total = weighted if total is None else total + weighted
            weights = weight if weights is None else weights + weight
        if total is None or weights is None:
            return np.zeros(len(table.alive[rows]), dtype=np.int64)
        return np.where(weights == 0, 0, self.mean(total, np.where(weights == 0, 1, weights)))

    def counted(self, present: Mask, score: Ints) -> Mask:
        """Where a resource takes part in the mean."""
        return present

    def counts(self, score: int) -> bool:
        """``counted`` for one row that has the resource."""
        return True

    def mean(self, total: Ints, weights: Ints) -> Ints:
        return truncated_divide(total, weights)

    def row_mean(self, total: int, weights: int) -> int:
        """``mean`` for one row."""
        return quotient(total, weights)


class LeastAllocatedKernel(AllocationKernel):
    def resource_score(self, requested: int, capacity: int) -> int:
        return 0 if requested > capacity else quotient(wrapped((capacity - requested) * MAX_NODE_SCORE), capacity)

    def resource_scores(self, requested: Ints, capacity: Ints) -> Ints:
        score = truncated_divide((capacity - requested) * MAX_NODE_SCORE, capacity)
        return np.where(requested > capacity, 0, score)


class MostAllocatedKernel(AllocationKernel):
    def resource_score(self, requested: int, capacity: int) -> int:
        return quotient(wrapped(min(requested, capacity) * MAX_NODE_SCORE), capacity)

    def resource_scores(self, requested: Ints, capacity: Ints) -> Ints:
        return truncated_divide(np.minimum(requested, capacity) * MAX_NODE_SCORE, capacity)


class RequestedToCapacityRatioKernel(AllocationKernel):
    """A broken line from utilisation (percent) to score."""

    def __init__(self, resources: Sequence[ScoredResource], shape: Sequence[UtilizationShapePoint]) -> None:
        super().__init__(resources)
        scale = MAX_NODE_SCORE // MAX_CUSTOM_PRIORITY_SCORE
        self._line = tabulated([(point.utilization, point.score * scale) for point in shape])

    def resource_score(self, requested: int, capacity: int) -> int:
        utilization = 100 if requested > capacity else quotient(wrapped(requested * 100), capacity)
        return self._line.item(max(0, min(utilization, 100)))

    def counts(self, score: int) -> bool:
        return score > 0

    def row_mean(self, total: int, weights: int) -> int:
        return math.floor(total / weights + 0.5)

    def resource_scores(self, requested: Ints, capacity: Ints) -> Ints:
        utilization = truncated_divide(requested * 100, capacity)
        # A product that overflows may be anything; the line is flat beyond its ends.
        utilization = np.where(requested > capacity, 100, np.clip(utilization, 0, 100))
        return self._line[utilization]

    def counted(self, present: Mask, score: Ints) -> Mask:
        return present & (score > 0)

    def mean(self, total: Ints, weights: Ints) -> Ints:
        # Go's Round goes away from zero at halves; the operands are not negative.
        return np.floor(total.astype(np.float64) / weights.astype(np.float64) + 0.5).astype(np.int64)


def strategy_kernel(ctx: CycleContext, strategy: ScoringStrategy, pod: PodInfo) -> ScoreKernel | Status:
    """The kernel of a scoring strategy for one pod."""
    if not strategy.resources:
        return error("resources not found")
    resources = scored_resources(ctx, strategy.resources, dict(pod.demand.scored_request))
    if strategy.type == LEAST_ALLOCATED:
        return LeastAllocatedKernel(resources)
    if strategy.type == MOST_ALLOCATED:
        return MostAllocatedKernel(resources)
    ratio = strategy.requested_to_capacity_ratio
    return RequestedToCapacityRatioKernel(resources, ratio.shape if ratio else ())


class BalancedKernel(ScoreKernel):
    """50 + (50 + with − without) ÷ 2, where "with" and "without" are the balance of a node after and before the pod."""

    dtype = np.int16

    def __init__(self, resources: Sequence[ScoredResource]) -> None:
        self._resources = resources

    def is_stale(self, table: NodeTable) -> bool:
        return any(resource.is_stale for resource in self._resources)

    def scores(self, table: NodeTable, rows: Rows) -> Scores:
        if not isinstance(rows, slice) and len(rows) <= FEW:
            return np.array([self._row_score(table, row) for row in rows.tolist()], dtype=np.int64)
        return self._all_scores(table, rows)

    def _row_score(self, table: NodeTable, row: int) -> int:
        with_pod, without = [], []
        for resource in self._resources:
            capacity, allocated = resource.on_row(table, row, table.requested)
            if capacity == 0:
                continue
            with_pod.append(min((allocated + resource.request) / capacity, 1.0))
            without.append(min(allocated / capacity, 1.0))
        half = MAX_NODE_SCORE // 2
        return half + quotient(half + _row_balance(with_pod) - _row_balance(without), 2)

    def _all_scores(self, table: NodeTable, rows: Rows) -> Scores:
        count = len(table.alive[rows])
        with_pod, without = [], []
        present = []
        for resource in self._resources:
            capacity, allocated = resource.on(table, rows, table.requested)
            has = capacity != 0
            divisor = np.where(has, capacity, 1).astype(np.float64)
            present.append(has)
            with_pod.append(_fraction(allocated + resource.request, divisor, has))
            without.append(_fraction(allocated, divisor, has))
        difference = _balance(with_pod, present, count) - _balance(without, present, count)
        half = MAX_NODE_SCORE // 2
        return half + truncated_divide(half + difference, 2)


def _fraction(amount: Ints, capacity: Floats, present: Mask) -> Floats:
    """Share of the capacity, at most 1; 0 where there is none."""
    return np.where(present, np.minimum(amount.astype(np.float64) / capacity, 1.0), 0.0)


def _balance(fractions: Sequence[Floats], present: Sequence[Mask], count: int) -> Ints:
    """int64[rows]: (1 − standard deviation of the fractions) × 100, truncated.

    Additions run in the order of the resources, as upstream's do: the last bit of a float matters here.
    """
    known = np.zeros(count, dtype=np.int64)
    total = np.zeros(count, dtype=np.float64)
    for fraction, has in zip(fractions, present, strict=True):
        known += has
        total = total + fraction
    deviation = np.zeros(count, dtype=np.float64)
    two = known == 2
    if two.any():
        deviation = np.where(two, _half_difference(fractions, present, count), deviation)
    more = known > 2
    if more.any():
        mean = total / np.maximum(known, 1)
        squares = np.zeros(count, dtype=np.float64)
        for fraction, has in zip(fractions, present, strict=True):
            squares = squares + np.where(has, (fraction - mean) * (fraction - mean), 0.0)
        deviation = np.where(more, np.sqrt(squares / np.maximum(known, 1)), deviation)
    return ((1 - deviation) * float(MAX_NODE_SCORE)).astype(np.int64)


def _half_difference(fractions: Sequence[Floats], present: Sequence[Mask], count: int) -> Floats:
    """|first − second| ÷ 2 of the two fractions that a row has."""
    if len(fractions) == 2:
        return np.abs((fractions[0] - fractions[1]) / 2)
    first = np.zeros(count, dtype=np.float64)
    second = np.zeros(count, dtype=np.float64)
    seen = np.zeros(count, dtype=np.int64)
    for fraction, has in zip(fractions, present, strict=True):
        first = np.where(has & (seen == 0), fraction, first)
        second = np.where(has & (seen == 1), fraction, second)
        seen += has
    return np.abs((first - second) / 2)


def _row_balance(fractions: Sequence[float]) -> int:
    """``_balance`` for one row; ``fractions`` of the resources it has."""
    deviation = 0.0
    if len(fractions) == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        mean = _in_order(fractions) / len(fractions)
        deviation = math.sqrt(_in_order([(f - mean) * (f - mean) for f in fractions]) / len(fractions))
    return int((1 - deviation) * float(MAX_NODE_SCORE))


def _in_order(numbers: Sequence[float]) -> float:
    """The sum by plain additions: ``sum`` compensates for rounding from Python 3.12 on."""
    total = 0.0
    for number in numbers:
        total += number
    return total


def _non_zero_requested(table: NodeTable, resource: int) -> Ints:
    """What is taken of a resource as scoring sees it: containers that ask for no CPU or memory count all the same.

    int64, to be indexed by resource and row.
    """
    return table.nonzero_requested if resource in (CPU, MEMORY) else table.requested


def quotient(numerator: int, denominator: int) -> int:
    """``truncated_divide`` for one row; the denominator is positive."""
    return numerator // denominator if numerator >= 0 else -(-numerator // denominator)


def wrapped(product: int) -> int:
    """A product as int64 holds it: it wraps around, here as in Go and in numpy."""
    return (product + 2**63) % 2**64 - 2**63
