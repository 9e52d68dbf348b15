"""What plugin authors import: the framework contracts, re-exported and kept stable.

Nothing is defined here. Anybody outside the project may import it; nothing inside needs to.
"""

from kube_pyscheduler.columns.arrays import Codes, Mask, RowIndex, Rows, Scores
from kube_pyscheduler.columns.node_info import NodeInfo
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.framework.cluster_event import Action, ClusterEvent, EventRegistration, QueueingHint, Resource
from kube_pyscheduler.framework.cycle_state import CycleState, StateKey
from kube_pyscheduler.framework.diagnosis import Diagnosis
from kube_pyscheduler.framework.handle import BindingHandle, SchedulingHandle, StaleObject, WaitingPod
from kube_pyscheduler.framework.interfaces import (
    MAX_NODE_SCORE,
    Bind,
    CycleContext,
    Filter,
    FilterKernel,
    NodeFilter,
    NodeScore,
    Normalize,
    Permit,
    Plugin,
    PostBind,
    PostFilter,
    PostFilterResult,
    PreBind,
    PreEnqueue,
    PreFilter,
    PreFilterResult,
    PreScore,
    QueueSort,
    Refreshing,
    Reserve,
    RowChange,
    RowChanges,
    Scope,
    Score,
    ScoreKernel,
)
from kube_pyscheduler.framework.listers import Lister, Listers
from kube_pyscheduler.framework.status import SKIP, SUCCESS, Code, Status, error, unresolvable, unschedulable
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod

__all__ = [
    "MAX_NODE_SCORE",
    "SKIP",
    "SUCCESS",
    "Action",
    "Bind",
    "BindingHandle",
    "ClusterEvent",
    "Code",
    "Codes",
    "CycleContext",
    "CycleState",
    "Diagnosis",
    "EventRegistration",
    "Filter",
    "FilterKernel",
    "Lister",
    "Listers",
    "Mask",
    "Node",
    "NodeFilter",
    "NodeInfo",
    "NodeScore",
    "NodeTable",
    "Normalize",
    "Permit",
    "Plugin",
    "Pod",
    "PodInfo",
    "PostBind",
    "PostFilter",
    "PostFilterResult",
    "PreBind",
    "PreEnqueue",
    "PreFilter",
    "PreFilterResult",
    "PreScore",
    "QueueSort",
    "QueueingHint",
    "Refreshing",
    "Reserve",
    "Resource",
    "RowChange",
    "RowChanges",
    "RowIndex",
    "Rows",
    "SchedulingHandle",
    "Scope",
    "Score",
    "ScoreKernel",
    "Scores",
    "StaleObject",
    "StateKey",
    "Status",
    "WaitingPod",
    "error",
    "unresolvable",
    "unschedulable",
]
