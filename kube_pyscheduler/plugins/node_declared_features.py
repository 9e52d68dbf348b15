"""NodeDeclaredFeatures: a pod that needs a node feature goes where the node declares it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from kube_pyscheduler.columns.arrays import Codes, Rows
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.columns.vocabulary import LookupTable
from kube_pyscheduler.framework.cluster_event import (
    Action,
    ClusterEvent,
    EventRegistration,
    QueueingHint,
    Resource,
    queue_if,
)
from kube_pyscheduler.framework.interfaces import (
    CycleContext,
    FilterKernel,
    NodeFilter,
    PreFilter,
    PreFilterResult,
    Scope,
)
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.framework.status import SKIP, Status, unresolvable
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod


def required_features(pod: Pod) -> frozenset[str]:
    """The features a pod cannot be started without.

    Source: InferForScheduling of the features in component-helpers/nodedeclaredfeatures/features.
    """
    spec = pod.spec
    needed = set()
    rules = (rule for c in (*spec.containers, *spec.init_containers) for rule in c.restart_policy_rules)
    if any(rule.action == "RestartAllContainers" for rule in rules):
        needed.add("RestartAllContainersOnContainerExits")
    if spec.host_network and spec.host_users is False:
        needed.add("UserNamespacesHostNetworkSupport")
    return frozenset(needed)


class DeclaredFeaturesKernel(FilterKernel):
    reads_usage = False
    statuses = (unresolvable("node(s) didn't match Pod's required features"),)

    def __init__(self, table: NodeTable, needed: frozenset[str]) -> None:
        self._refused = LookupTable(table.feature_sets, lambda declared: not needed <= declared, True, np.uint8)

    def codes(self, table: NodeTable, rows: Rows) -> Codes:
        return self._refused.take(table.feature_set[rows])


class NodeDeclaredFeatures(PreFilter, NodeFilter):
    """Source: pkg/scheduler/framework/plugins/nodedeclaredfeatures."""

    name = "NodeDeclaredFeatures"
    scope = Scope.NODE

    def fragment(self, pod: PodInfo) -> Hashable:
        return required_features(pod.pod)

    def pre_filter(self, ctx: CycleContext, pod: PodInfo) -> PreFilterResult | Status | None:
        return None if required_features(pod.pod) else SKIP

    def filter_kernel(self, ctx: CycleContext, pod: PodInfo) -> FilterKernel | None:
        needed = required_features(pod.pod)
        return DeclaredFeaturesKernel(ctx.table, needed) if needed else None

    def events(self) -> Sequence[EventRegistration]:
        node_changed = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE)
        return (
            EventRegistration(node_changed, _features_changed, required_features),
            EventRegistration(ClusterEvent(Resource.POD, Action.UPDATE), _needs_changed, required_features),
        )


def _features_changed(pod: Pod, old: Node | None, new: Node, view: Listers) -> QueueingHint:
    needed = required_features(pod)
    had_them = old is not None and needed.issubset(old.status.declared_features)
    return queue_if(needed.issubset(new.status.declared_features) and not had_them)


def _needs_changed(pod: Pod, old: Pod, new: Pod, view: Listers) -> QueueingHint:
    return queue_if(new.uid == pod.uid and required_features(old) != required_features(new))
