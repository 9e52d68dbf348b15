"""Which victims a PodDisruptionBudget would rather keep."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.objects.group import PodDisruptionBudget
from kube_pyscheduler.objects.selectors import LabelSelector


@dataclass(frozen=True, slots=True, eq=False)
class Budget:
    """``allowed``: disruptions left. ``disrupted``: names of pods that are counted in it already."""

    selector: LabelSelector
    allowed: int
    disrupted: Collection[str]


class Budgets:
    """Those that can match a pod: an absent or empty selector matches none, nor does one that makes no sense."""

    def __init__(self, objects: Iterable[PodDisruptionBudget]) -> None:
        self._by_namespace: dict[str, list[Budget]] = {}
        for item in objects:
            selector = item.spec.selector
            if selector is None or selector.is_empty or selector.problem():
                continue
            budget = Budget(selector, item.status.disruptions_allowed, item.status.disrupted_pods)
            self._by_namespace.setdefault(item.namespace, []).append(budget)

    def __bool__(self) -> bool:
        return bool(self._by_namespace)

    def violated_by(self, victims: Sequence[PodInfo]) -> list[bool]:
        """For each victim whether its end would break a budget, if those before it went, too. A pod that several
        budgets cover uses up all of them.

        Source: filterPodsWithPDBViolation in plugins/defaultpreemption/default_preemption.go. O(victims × budgets of
        their namespace).
        """
        used: dict[Budget, int] = {}
        return [self._violates(info, used) for info in victims]

    def _violates(self, info: PodInfo, used: dict[Budget, int]) -> bool:
        meta = info.pod.metadata
        budgets = self._by_namespace.get(meta.namespace)
        if not budgets or not meta.labels:
            return False
        violates = False
        for budget in budgets:
            if not budget.selector.matches(meta.labels) or meta.name in budget.disrupted:
                continue
            used[budget] = used.get(budget, 0) + 1
            violates |= used[budget] > budget.allowed
        return violates
