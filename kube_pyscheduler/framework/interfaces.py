"""The extension points: one class each, and what the engine expects of it.

Plugins come in two forms. The *easy* form judges one node at a time (``Filter.filter``, ``Score.score``). The *fast*
form hands the engine a kernel: a function from rows of the node table to an array (``NodeFilter``, ``NodeScore``).
Adapters lift the first to the second; the engine only knows kernels.

``scope`` says what a kernel's answer for a row depends on:

``Scope.NODE``
    the pod's ``fragment`` and that row alone. The engine keeps the answers per fragment and asks again only for rows
    that were written since.
``Scope.CLUSTER``
    anything else: asked in every attempt.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from kube_pyscheduler.columns.arrays import Codes, Mask, RowIndex, Rows, Scores
from kube_pyscheduler.columns.node_info import NodeInfo
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.framework.cluster_event import EventRegistration
from kube_pyscheduler.framework.cycle_state import CycleState
from kube_pyscheduler.framework.handle import NoPreemptions, Preemptions
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.framework.row_changes import RowChange as RowChange
from kube_pyscheduler.framework.row_changes import RowChanges as RowChanges
from kube_pyscheduler.framework.status import Status
from kube_pyscheduler.kit.rng import Rng
from kube_pyscheduler.objects.pod import Pod

if TYPE_CHECKING:
    from kube_pyscheduler.framework.diagnosis import Diagnosis
    from kube_pyscheduler.framework.handle import BindingHandle, SchedulingHandle

MAX_NODE_SCORE = 100
"""Greatest score a plugin may give a node. Source: MaxNodeScore in kube-scheduler/framework/interface.go."""


class Scope(Enum):
    """What a kernel's answer for a row depends on, besides the pod."""

    NODE = "node"
    CLUSTER = "cluster"


class Plugin(ABC):
    """Base of all plugins. ``name`` is what configurations and metrics call it."""

    name: ClassVar[str]

    def events(self) -> Sequence[EventRegistration]:
        """Cluster events that may help a pod this plugin refused; none means that any event may."""
        return ()

    def prepare(self, ctx: CycleContext) -> None:
        """Called before the first attempt, with everything in the cluster known: the time to build what takes long."""
        return


class Refilter(Protocol):
    """All filters of an attempt, asked again about some rows with other pods on them.

    Pods nominated to these nodes count as they do in every attempt. Whoever asks has changed the usage columns of the
    rows as ``changes`` says, in a ``NodeTable.what_if``.
    """

    def fits_if(self, rows: RowIndex, changes: RowChanges) -> Mask:
        """bool[len(rows)]: where the pod would fit."""

    def refusals_if(self, rows: RowIndex, changes: RowChanges) -> list[tuple[Status, RowIndex]]:
        """Each row where the pod would not fit under the status of the first plugin that refuses it."""


@dataclass(slots=True)
class CycleContext:
    """What plugins may read during one attempt. The table and the listers do not change while it lasts.

    ``rng`` decides where upstream leaves things to chance. ``refilter`` is for PostFilter plugins; it may be asked
    only where no PreFilter answered UnschedulableAndUnresolvable."""

    table: NodeTable
    listers: Listers
    state: CycleState
    handle: SchedulingHandle
    rng: Rng
    refilter: Refilter = field(init=False)


class PreEnqueue(Plugin):
    @abstractmethod
    def pre_enqueue(self, pod: Pod, view: Listers) -> Status | None:
        """Before a pod enters activeQ. None lets it in; a refusal keeps it out until one of ``events`` helps."""


class QueueSort(Plugin):
    @abstractmethod
    def sort_key(self, pod: Pod, timestamp: float) -> Any:
        """What activeQ is ordered by, smallest first. ``timestamp``: seconds, when the pod entered the queue."""


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """``nodes``: names of the only nodes worth trying; None is all. Names need not exist."""

    nodes: frozenset[str] | None = None


class PreFilter(Plugin):
    """For plugins of ``Scope.NODE`` the answer may depend on the pod's fragment alone."""

    @abstractmethod
    def pre_filter(self, ctx: CycleContext, pod: PodInfo) -> PreFilterResult | Status | None:
        """Once an attempt. None: go on. ``SKIP``: this plugin's filter has nothing to say of the pod. A refusal or an
        error ends the attempt; only UnschedulableAndUnresolvable and errors stop the PreFilters after it."""


class FilterKernel(ABC):
    """Judges rows for one pod (or for all pods of one fragment)."""

    reads_usage: bool = True
    """Whether the answers change when pods come and go on a row, not just with its Node object. Where they do not,
    ``codes_if`` is never asked."""

    may_fail: bool = False
    """Whether a refusal may be an error, which fails the whole attempt."""

    last_resort: Sequence[int] = ()
    """Rows to be taken only where no other row fits."""

    statuses: tuple[Status, ...] = ()
    """The refusal that code ``i + 1`` stands for. Kernels with other rules override ``explain``."""

    @abstractmethod
    def codes(self, table: NodeTable, rows: Rows) -> Codes:
        """uint8[len(rows)]: 0 where the pod fits, else a code of this kernel's own."""

    def codes_if(self, table: NodeTable, rows: RowIndex, changes: RowChanges) -> Codes:
        """As ``codes``, in a world where each row's pods are changed as ``changes`` says while that row is judged.

        The usage columns of the table and its host ports are changed already, so kernels that look at nothing but
        these of their row need not override this. ``table.pods`` is not, and watchers of pods were not told. Kernels
        that look at domains start from the counts they were made with and take each row's own change into account:
        O(changed pods), never a pass over all rows a row; ``changes.sums`` does that for many rows at once. ``changes``
        may name more rows than are asked for.
        """
        return self.codes(table, rows)

    def explain(self, table: NodeTable, rows: RowIndex, codes: Codes) -> list[tuple[Status, RowIndex]]:
        """The statuses of refused rows, each with the rows it is for; ``codes`` are what ``codes`` gave for them, at
        any time in this attempt, or what ``codes_if`` just gave.

        O(rows), with one Python step a distinct status.
        """
        return [(self.statuses[code - 1], rows[codes == code]) for code in np.unique(codes).tolist()]

    def is_stale(self, table: NodeTable) -> bool:
        """Whether something besides the rows changed so that all of them must be judged by a new kernel."""
        return False


class NodeFilter(Plugin):
    """Filter in the fast form."""

    scope: ClassVar[Scope] = Scope.CLUSTER

    def fragment(self, pod: PodInfo) -> Hashable:
        """What of the pod the plugin reads; equal fragments get equal answers. Needed for ``Scope.NODE`` only."""
        raise NotImplementedError(f"{self.name} has scope NODE and no fragment")

    @abstractmethod
    def filter_kernel(self, ctx: CycleContext, pod: PodInfo) -> FilterKernel | None:
        """The kernel for this pod, or None if it refuses no node."""


class Filter(Plugin):
    """Filter in the easy form."""

    scope: ClassVar[Scope] = Scope.CLUSTER

    def fragment(self, pod: PodInfo) -> Hashable:
        """See NodeFilter."""
        raise NotImplementedError(f"{self.name} has scope NODE and no fragment")

    @abstractmethod
    def filter(self, ctx: CycleContext, pod: Pod, node: NodeInfo) -> Status | None:
        """None where the pod fits the node, else why not. An error fails the whole attempt."""


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """``nominated``: the node to promise to the pod, "" to take a promise back, None to leave things as they are.
    ``victims``: pods to remove there first."""

    nominated: str | None = None
    victims: tuple[Pod, ...] = ()


class PostFilter(Plugin):
    @abstractmethod
    def post_filter(
        self, ctx: CycleContext, pod: PodInfo, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult | None, Status]:
        """When no node fits. Success ends the search for help; Unschedulable passes on to the next plugin, and the
        reasons of all plugins that passed on are in the message, in order."""


class Preempting(Plugin):
    """For plugins that choose victims: ``preemptions`` is set by whoever carries preemptions out."""

    preemptions: Preemptions = NoPreemptions()


class PreScore(Plugin):
    """For plugins of ``Scope.NODE`` the answer may depend on the pod's fragment alone."""

    @abstractmethod
    def pre_score(self, ctx: CycleContext, pod: PodInfo, feasible: Mask) -> Status | None:
        """Once an attempt with two feasible nodes or more. ``feasible``: bool[capacity]. ``SKIP``: no scores."""


class Normalize(Enum):
    """How raw scores become 0–100. Source: DefaultNormalizeScore in plugins/helper/normalize_score.go."""

    NONE = "none"
    """They are already."""
    DEFAULT = "default"
    """100 × score ÷ the greatest feasible score; all 0 if that is 0."""
    REVERSED = "reversed"
    """100 minus the default; all 100 if the greatest is 0."""


Normalizer = Callable[[Scores], Scores]
"""From the raw scores of the feasible rows to their final ones, same length."""


class ScoreKernel(ABC):
    """Scores rows for one pod (or for all pods of one fragment)."""

    reads_usage: bool = True
    normalize: Normalize | Normalizer = Normalize.NONE
    dtype: type[np.signedinteger[Any]] = np.int64
    """What the engine keeps raw scores of ``Scope.NODE`` in: the smallest type that holds them all."""

    @abstractmethod
    def scores(self, table: NodeTable, rows: Rows) -> Scores:
        """int64[len(rows)], raw. Rows that are not feasible get any number."""

    def is_stale(self, table: NodeTable) -> bool:
        """See FilterKernel."""
        return False


class _ZeroKernel(ScoreKernel):
    reads_usage = False

    def scores(self, table: NodeTable, rows: Rows) -> Scores:
        return np.zeros(len(table.alive[rows]), dtype=np.int64)


ZERO_SCORES = _ZeroKernel()
"""0 for every row. The engine knows it and does not ask."""


class NodeScore(Plugin):
    """Score in the fast form. A Status instead of a kernel is an error that fails the attempt."""

    scope: ClassVar[Scope] = Scope.CLUSTER

    def fragment(self, pod: PodInfo) -> Hashable:
        """See NodeFilter."""
        raise NotImplementedError(f"{self.name} has scope NODE and no fragment")

    @abstractmethod
    def score_kernel(self, ctx: CycleContext, pod: PodInfo) -> ScoreKernel | Status:
        """The kernel for this pod."""


class Score(Plugin):
    """Score in the easy form; 0–100, or any number with a ``normalize``."""

    normalize: Normalize | Normalizer = Normalize.NONE

    @abstractmethod
    def score(self, ctx: CycleContext, pod: Pod, node: NodeInfo) -> int:
        """How good the node is for the pod."""


class Reserve(Plugin):
    @abstractmethod
    def reserve(self, ctx: CycleContext, pod: PodInfo, node: str) -> Status | None:
        """The pod is assumed on ``node``. A refusal takes everything back."""

    @abstractmethod
    def unreserve(self, ctx: CycleContext, pod: PodInfo, node: str) -> None:
        """Take back what ``reserve`` did; also called when it did nothing. In reverse order of plugins."""


class Permit(Plugin):
    @abstractmethod
    def permit(self, ctx: CycleContext, pod: PodInfo, node: str) -> tuple[Status | None, float]:
        """None: go on. A status ``Code.WAIT`` holds the pod for at most the given seconds (15 minutes at most)."""


class PreBind(Plugin):
    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        """``SKIP`` where ``pre_bind`` will have nothing to do."""
        return None

    @abstractmethod
    async def pre_bind(self, handle: BindingHandle, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        """Work that must be done before the pod is bound. May call the API. Cancellation means: preempted."""


class Bind(Plugin):
    @abstractmethod
    async def bind(self, handle: BindingHandle, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        """Bind the pod. None is success; ``SKIP`` leaves it to the next Bind plugin."""


class PostBind(Plugin):
    @abstractmethod
    def post_bind(self, state: CycleState, pod: PodInfo, node: str) -> None:
        """The pod is bound."""


class Refreshing(Plugin):
    """For plugins that need the world outside: their in-cycle methods read what ``refresh`` found last."""

    refresh_seconds: ClassVar[float] = 10.0
    """Pause between two calls, in seconds."""

    @abstractmethod
    async def refresh(self, handle: BindingHandle) -> None:
        """Called off-cycle, again and again. A failure is logged; the last result stays."""


def default_normalize(scores: Scores, *, reverse: bool) -> Scores:
    """Scores of the feasible rows scaled so that the greatest is 100.

    Source: DefaultNormalizeScore in plugins/helper/normalize_score.go.
    """
    greatest = int(scores.max()) if len(scores) else 0
    if greatest == 0:
        return np.full_like(scores, MAX_NODE_SCORE if reverse else 0)
    scaled: Scores = MAX_NODE_SCORE * scores // greatest
    return MAX_NODE_SCORE - scaled if reverse else scaled
