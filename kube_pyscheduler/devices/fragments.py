"""On which nodes the claims of a pod can be allocated: answers kept for every kind of claims, and repaired where
devices came, went, were taken or given back.

What an answer depends on is put into a key: what selectors, constraints and limits read of the devices that a node
sees, and which of them are taken. Nodes with equal keys get one search. So a selector is evaluated once for devices
that look the same to it, and a search runs once for nodes whose devices are in the same state; names play no part.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kube_pyscheduler.columns.arrays import Codes, Ids, Ints, Rows, grown
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.devices.allocated import AllocatedDevices
from kube_pyscheduler.devices.candidates import Match
from kube_pyscheduler.devices.inventory import Inventory, Pools
from kube_pyscheduler.devices.pools import Pool
from kube_pyscheduler.devices.requests import AllocationError, ClaimPlan, Plan, Variant
from kube_pyscheduler.devices.search import Budget, OutOfSteps, Search, counters_left
from kube_pyscheduler.devices.slices import PoolId, SliceInfo

FITS, CANNOT, INVALID_POOLS, FAILED, TIMED_OUT = range(5)
"""Codes of answers."""

MAX_STEPS = 30_000
"""Steps of one search at most, and of all searches of one attempt: about a tenth of a second. A step is a device looked
at. Upstream gives up after ten seconds a node."""

SELECTING = 4
"""Steps that one evaluation of a selector counts for."""

KEEP = 8192
"""Answers by key kept at most."""


@dataclass(frozen=True, slots=True)
class Answer:
    """``score``: of the alternatives chosen. ``problem``: why the attempt fails."""

    code: int
    score: int = 0
    problem: AllocationError | None = None


class PoolKind:
    """Pools that look the same to the claims. ``matches``: for each variant, whether it selects the devices."""

    __slots__ = ("is_relevant", "matches")

    def __init__(self, plan: Plan, pool: Pool) -> None:
        self.matches: dict[int, tuple[Match, ...]] = {
            id(variant): tuple([variant.matches(device) for device in pool.devices])
            for claim in plan.claims
            for request in claim.requests
            for variant in request.variants
        }
        self.is_relevant = any(match is not False for matches in self.matches.values() for match in matches)


class Fragment:
    """One kind of claims on all nodes. Groups are nodes that see the same pools, of those that matter to the claims."""

    def __init__(self, plan: Plan, table: NodeTable, inventory: Inventory, allocated: AllocatedDevices) -> None:
        self.plan = plan
        self._table = table
        self._inventory = inventory
        self._allocated = allocated
        # What there is of capacity is among the traits already.
        paths = plan.paths
        self._paths = None if paths is None else tuple([path for path in paths if path[0] == "attributes"])
        self._takes_all = any(v.takes_all for claim in plan.claims for r in claim.requests for v in r.variants)
        self._kinds: dict[Hashable, PoolKind] = {}
        self._kind_of: dict[Pool, tuple[Hashable, PoolKind | None]] = {}
        self._groups: list[Pools] = []
        self._numbers: dict[Pools, int] = {}
        self._by_pool: dict[PoolId, list[int]] = {}
        self._group_of: Ids = np.zeros(table.capacity, dtype=np.int32)
        self._codes: Codes = np.zeros(64, dtype=np.uint8)
        self._scores: Ints = np.zeros(64, dtype=np.int64)
        self._problems: dict[int, AllocationError] = {}
        self._answers: dict[Hashable, Answer] = {}
        self._open: set[int] = set()
        """Groups without an answer."""
        self._moved_seen = -1
        self._taken_seen = -1

    def sync(self, budget: Budget) -> None:
        """Answer for all nodes. Groups for which ``budget`` does not last stay open and count as TIMED_OUT."""
        self._regroup(budget)
        changed = self._allocated.changed_since(self._taken_seen) if self._taken_seen >= 0 else None
        self._taken_seen = self._allocated.position
        if changed is None:
            self._open.update(range(len(self._groups)))
        else:
            for pool_id in changed:
                self._open.update(self._by_pool.get(pool_id, ()))
        for number in sorted(self._open):
            answer = self._answer(self._groups[number], budget)
            if answer is None:
                self._set(number, Answer(TIMED_OUT))
            else:
                self._open.discard(number)
                self._set(number, answer)

    def codes(self, rows: Rows) -> Codes:
        """uint8[len(rows)]: FITS or why not."""
        codes: Codes = self._codes[self._group_of[rows]]
        return codes

    def scores(self, rows: Rows) -> Ints:
        """int64[len(rows)]: of the alternatives that would be chosen."""
        scores: Ints = self._scores[self._group_of[rows]]
        return scores

    def problem(self, row: int) -> AllocationError:
        """What is wrong where the code is FAILED."""
        problem = self._problems[int(self._group_of[row])]
        if not problem.names_devices:
            return problem
        try:
            self.search(self._inventory.pools_of(row), Budget(MAX_STEPS)).run()
        except AllocationError as error:
            return error
        return problem

    def search(self, pools: Sequence[Pool], budget: Budget) -> Search:
        """A search on a node that sees these pools."""
        return Search(self.plan, pools, self._allocated, self._matches, budget)

    # Groups

    def _regroup(self, budget: Budget) -> None:
        table = self._table
        if len(self._group_of) < table.capacity:
            self._group_of = grown(self._group_of, table.capacity)
        moved = self._inventory.moved.since(self._moved_seen) if self._moved_seen >= 0 else None
        self._moved_seen = self._inventory.moved.position
        if moved is None or len(self._groups) > 2 * table.high + 64:
            self._groups.clear()
            self._kinds.clear()
            self._numbers.clear()
            self._by_pool.clear()
            self._problems.clear()
            self._kind_of.clear()
            self._open.clear()
            self._number(())
            moved = np.arange(table.high, dtype=np.int64)
        last: tuple[Pools | None, int] = (None, 0)
        for row in moved.tolist():
            pools = self._inventory.pools_of(row)
            if pools is not last[0]:
                last = pools, self._number(tuple([pool for pool in pools if self._matters(pool, budget)]))
            self._group_of[row] = last[1]

    def _number(self, pools: Pools) -> int:
        number = self._numbers.get(pools)
        if number is None:
            number = self._numbers[pools] = len(self._groups)
            self._groups.append(pools)
            self._open.add(number)
            for pool in pools:
                self._by_pool.setdefault(pool.id, []).append(number)
            if number >= len(self._codes):
                self._codes = grown(self._codes, 2 * len(self._codes))
                self._scores = grown(self._scores, 2 * len(self._scores))
        return number

    def _matters(self, pool: Pool, budget: Budget) -> bool:
        if pool.is_invalid or (pool.is_incomplete and self._takes_all):
            return True
        if pool.is_incomplete:
            return False
        kind = self._kind(pool, budget)[1]
        return kind is not None and kind.is_relevant

    def _kind(self, pool: Pool, budget: Budget) -> tuple[Hashable, PoolKind | None]:
        known = self._kind_of.get(pool)
        if known is None:
            look = tuple([self._look(each) for each in pool.slices])
            kind = self._kinds.get(look)
            if kind is None:
                budget.left -= SELECTING * len(pool.devices)
                kind = self._kinds[look] = PoolKind(self.plan, pool)
            known = self._kind_of[pool] = (look, kind)
        return known

    def _look(self, source: SliceInfo) -> Hashable:
        if self._paths is None:
            return source.traits, source.everything
        return source.traits, *[source.column(path) for path in self._paths]

    def _matches(self, variant: Variant, pool: Pool) -> Sequence[Match]:
        kind = self._kind(pool, Budget(0))[1]
        assert kind is not None
        return kind.matches[id(variant)]

    # Answers

    def _set(self, number: int, answer: Answer) -> None:
        self._codes[number] = answer.code
        self._scores[number] = answer.score
        if answer.problem is not None:
            self._problems[number] = answer.problem
        else:
            self._problems.pop(number, None)

    def _answer(self, pools: Pools, budget: Budget) -> Answer | None:
        """None where the budget does not last."""
        key: Hashable = tuple([self._state(pool) for pool in pools])
        if len(pools) > 1 and any(pool.counters for pool in pools):
            # Counters are looked up by the names of pools alone, so it matters which pools have the same.
            names = [pool.id[1] for pool in pools]
            key = key, tuple([names.index(name) for name in names])
        answer = self._answers.get(key)
        if answer is not None:
            return answer
        if budget.left < 0:
            return None
        alone = Budget(MAX_STEPS)
        answer = self._searched(pools, alone)
        budget.left -= MAX_STEPS - alone.left
        if len(self._answers) >= KEEP:
            self._answers.clear()
        self._answers[key] = answer
        return answer

    def _searched(self, pools: Pools, budget: Budget) -> Answer:
        search = self.search(pools, budget)
        try:
            found = search.run()
        except AllocationError as problem:
            return Answer(FAILED, problem=problem)
        except OutOfSteps:
            if not any(self._cannot_alone(claim, pools) for claim in self.plan.claims):
                return Answer(TIMED_OUT)
            found = None
        if found is None:
            return Answer(INVALID_POOLS if any(pool.is_invalid for pool in pools) else CANNOT)
        if not self.plan.scores:
            return Answer(FITS)
        score = sum(
            search.variant(claim, request).rank
            for claim, plan in enumerate(self.plan.claims)
            for request in range(len(plan.requests))
        )
        return Answer(FITS, score)

    def _cannot_alone(self, claim: ClaimPlan, pools: Pools) -> bool:
        """Whether a few steps are enough to see that one of several claims gets no devices, even with all to itself."""
        plan = replace(self.plan, claims=(claim,))
        try:
            return Search(plan, pools, self._allocated, self._matches, Budget(MAX_STEPS // 10)).run() is None
        except (AllocationError, OutOfSteps):
            return False

    def _state(self, pool: Pool) -> Hashable:
        """All that a search would find out about a pool."""
        if pool.is_incomplete or pool.is_invalid:
            return pool.is_incomplete, pool.is_invalid
        look = self._kind(pool, Budget(0))[0]
        use = self._allocated.use_of(pool.id)
        taken = 0
        for name in use.whole:
            place = pool.places.get(name)
            if place is not None:
                taken |= 1 << place
        amounts = [
            (pool.places[name], tuple(sorted(amounts.items())))
            for name, amounts in use.amounts.items()
            if name in pool.places
        ]
        shared = tuple(sorted(amounts)) if amounts else ()
        if not pool.counters:
            return look, pool.usable, taken, shared
        left = counters_left(pool, self._allocated)
        counters = tuple(sorted((name, tuple(sorted(limits.items()))) for name, limits in left.items()))
        return look, pool.usable, taken, shared, counters
