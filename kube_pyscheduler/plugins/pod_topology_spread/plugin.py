"""PodTopologySpread: what it needs to know of a pod, and which events may help pods it refused."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache, partial

from kube_pyscheduler.columns.arrays import Mask
from kube_pyscheduler.columns.pod_classes import PodClasses
from kube_pyscheduler.columns.pod_columns import may_send_away
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.config.args import SYSTEM_DEFAULTING, PodTopologySpreadArgs
from kube_pyscheduler.framework.cluster_event import (
    Action,
    ClusterEvent,
    EventRegistration,
    QueueingHint,
    Resource,
    queue_if,
)
from kube_pyscheduler.framework.cycle_state import StateKey
from kube_pyscheduler.framework.default_selector import DefaultSelectors
from kube_pyscheduler.framework.interfaces import (
    CycleContext,
    FilterKernel,
    NodeFilter,
    NodeScore,
    PreFilter,
    PreFilterResult,
    PreScore,
    ScoreKernel,
)
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.framework.status import SKIP, Status, error
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.plugins.pod_topology_spread.constraints import (
    DO_NOT_SCHEDULE,
    SCHEDULE_ANYWAY,
    SYSTEM_DEFAULTS,
    Constraints,
    OwnConstraints,
    has_all_keys,
    own_hard,
    own_soft,
    parse,
    with_selector,
)
from kube_pyscheduler.plugins.pod_topology_spread.eligible import rule_of
from kube_pyscheduler.plugins.pod_topology_spread.hard import HardSpreadKernel
from kube_pyscheduler.plugins.pod_topology_spread.soft import SoftSpreadKernel

HARD: StateKey[Constraints] = StateKey("PodTopologySpread hard constraints")
SOFT: StateKey[SoftSpreadKernel] = StateKey("PodTopologySpread scores")


class _Defaults:
    """Default constraints of one kind. ``selecting(selector)`` gives them that selector."""

    def __init__(self, constraints: Constraints) -> None:
        self.any = bool(constraints)
        self.selecting = lru_cache(maxsize=4096)(partial(with_selector, constraints))


class PodTopologySpread(PreFilter, NodeFilter, PreScore, NodeScore):
    """Source: pkg/scheduler/framework/plugins/podtopologyspread."""

    name = "PodTopologySpread"

    def __init__(self, args: PodTopologySpreadArgs | None = None) -> None:
        args = args or PodTopologySpreadArgs()
        self._system_defaulted = args.defaulting_type == SYSTEM_DEFAULTING
        defaults = SYSTEM_DEFAULTS if self._system_defaulted else args.default_constraints
        self._default_hard = _Defaults(parse(defaults, {}, DO_NOT_SCHEDULE))
        self._default_soft = _Defaults(parse(defaults, {}, SCHEDULE_ANYWAY))
        self._selectors = DefaultSelectors()

    def prepare(self, ctx: CycleContext) -> None:
        ctx.table.attached(PodClasses)

    # Filter

    def pre_filter(self, ctx: CycleContext, pod: PodInfo) -> PreFilterResult | Status | None:
        own = pod.derived(own_hard)
        if own.problem:
            return error(f"get constraints from pod: obtaining pod's hard topology spread constraints: {own.problem}")
        constraints = self._constraints(pod.pod, own, self._default_hard, ctx.listers)
        if not constraints:
            return SKIP
        ctx.state.write(HARD, constraints)
        return None

    def filter_kernel(self, ctx: CycleContext, pod: PodInfo) -> FilterKernel | None:
        constraints = ctx.state.read(HARD)
        return HardSpreadKernel(ctx.table, pod, constraints) if constraints else None

    # Score

    def pre_score(self, ctx: CycleContext, pod: PodInfo, feasible: Mask) -> Status | None:
        own = pod.derived(own_soft)
        if own.problem:
            return error(f"calculating preScoreState: obtaining pod's soft topology spread constraints: {own.problem}")
        constraints = self._constraints(pod.pod, own, self._default_soft, ctx.listers)
        if not constraints:
            return SKIP
        require_all = bool(pod.pod.spec.topology_spread_constraints) or not self._system_defaulted
        kernel = SoftSpreadKernel(ctx.table, pod, constraints, feasible, require_all=require_all)
        ctx.state.write(SOFT, kernel)
        return None

    def score_kernel(self, ctx: CycleContext, pod: PodInfo) -> ScoreKernel | Status:
        kernel = ctx.state.read(SOFT)
        # Source: getPreScoreState; PreScore can be disabled by itself.
        return (
            kernel if kernel is not None else error(f'error reading "PreScore{self.name}" from cycleState: not found')
        )

    def _constraints(self, pod: Pod, own: OwnConstraints, defaults: _Defaults, listers: Listers) -> Constraints:
        """The pod's own constraints of one kind or, if it has none of any kind, the default ones."""
        if pod.spec.topology_spread_constraints:
            return own.constraints
        if not defaults.any:
            return ()
        selector = self._selectors.selector(pod, listers)
        return () if selector.is_everything else defaults.selecting(selector)

    # Events

    def events(self) -> Sequence[EventRegistration]:
        # The last one is for pods that begin to go, which are not counted any more.
        pod_updated = Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION | Action.UPDATE_POD_OTHER
        pod_changed = Action.ADD | pod_updated | Action.DELETE
        node_changed = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
        return (
            EventRegistration(ClusterEvent(Resource.POD, pod_changed), self._after_pod, self._hint_fragment),
            EventRegistration(ClusterEvent(Resource.NODE, node_changed), self._after_node, self._hint_fragment),
        )

    def _hint_fragment(self, pod: Pod) -> Hashable:
        """Events of the waiting pod itself are judged for it alone, so its uid does not tell pods apart; nor do labels
        that differ from pod to pod, as numbers do that controllers give, where no constraint looks at them."""
        labels = pod.metadata.labels
        said: Hashable
        if pod.spec.topology_spread_constraints:
            own = own_hard(pod)
            if own.problem:
                return pod.uid
            said = tuple([(c, rule_of(pod, c, ()), c.selector.matches(labels)) for c in own.constraints])
        else:
            said = frozenset(labels.items()), pod.metadata.controller()
        return pod.namespace, said, pod.priority, pod.spec.preemption_policy

    def _hard(self, pod: Pod, view: Listers) -> Constraints:
        own = own_hard(pod)
        if own.problem:
            raise ValueError(own.problem)
        return self._constraints(pod, own, self._default_hard, view)

    def _is_welcome(self, pod: Pod, constraints: Constraints, view: Listers) -> bool:
        """Whether some node takes the pod as things are, or might once pods went that it may send away. Where none
        does, no event has helped."""
        table = view.nodes
        if not constraints or may_send_away(table, pod):
            return True
        codes = HardSpreadKernel(table, PodInfo(pod), constraints).codes(table, table.all_rows)
        return bool(((codes == 0) & table.alive[table.all_rows]).any())

    def _after_pod(self, pod: Pod, old: Pod | None, new: Pod | None, view: Listers) -> QueueingHint:
        """Source: isSchedulableAfterPodChange. Upstream waits until a pod is gone that does not count from when it was
        told to go."""
        if any(changed is not None and not _is_involved(changed, pod) for changed in (old, new)):
            return QueueingHint.SKIP
        constraints = self._hard(pod, view)
        counts = _counts(constraints, old), _counts(constraints, new)
        if old is not None and new is not None and pod.uid == new.uid:
            is_tolerant = new.spec.tolerations != old.spec.tolerations
            helps = is_tolerant and any(constraint.honor_taints for constraint in constraints)
            return queue_if(helps or counts[0] != counts[1] or self._hard(old, view) != self._hard(new, view))
        deltas = [after - before for before, after in zip(*counts, strict=True)]
        if not any(deltas) or may_send_away(view.nodes, pod):
            return queue_if(any(deltas))
        changed = new or old
        assert changed is not None
        row = view.nodes.row_of.get(changed.spec.node_name or changed.status.nominated_node_name)
        kernel = HardSpreadKernel(view.nodes, PodInfo(pod), constraints)
        return queue_if(row is not None and kernel.is_relieved(view.nodes, row, deltas, view.assumed.values()))

    def _after_node(self, pod: Pod, old: Node | None, new: Node | None, view: Listers) -> QueueingHint:
        """Source: isSchedulableAfterNodeChange. Upstream forgets node affinity, and wakes for every taint."""
        constraints = self._hard(pod, view)
        return queue_if(_is_moved(pod, constraints, old, new) and self._is_welcome(pod, constraints, view))


def _is_moved(pod: Pod, constraints: Constraints, old: Node | None, new: Node | None) -> bool:
    """Whether a node came to a domain, left one, or begins or ceases to count."""
    was_in = old is not None and has_all_keys(old.metadata.labels, constraints)
    is_in = new is not None and has_all_keys(new.metadata.labels, constraints)
    if old is None or new is None or was_in != is_in:
        return was_in or is_in
    before, after = old.metadata.labels, new.metadata.labels
    if not is_in or any(before.get(c.topology_key, "") != after.get(c.topology_key, "") for c in constraints):
        return is_in
    rules = [rule_of(pod, constraint, ()) for constraint in constraints]
    return any(rule.includes(old) != rule.includes(new) for rule in rules)


def _is_involved(changed: Pod, waiting: Pod) -> bool:
    """Whether a changed pod may be among those that the waiting one is spread with."""
    if changed.uid == waiting.uid:
        return True
    if not changed.spec.node_name and not changed.status.nominated_node_name:
        return False
    return changed.namespace == waiting.namespace


def _counts(constraints: Constraints, pod: Pod | None) -> list[int]:
    """For each constraint 1 if it counts the pod, else 0."""
    if pod is None or pod.is_terminating:
        return [0] * len(constraints)
    return [int(constraint.selector.matches(pod.metadata.labels)) for constraint in constraints]
