"""NodePreferAvoidPods: nodes say in an annotation which controllers' pods they would rather not have.

Source: pkg/scheduler/framework/plugins/nodepreferavoidpods of 1.22, and CalculateNodePreferAvoidPodsPriorityMap before.
"""

from __future__ import annotations

import msgspec
import numpy as np

from kube_pyscheduler.columns.arrays import Rows, Scores
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.columns.vocabulary import LookupTable
from kube_pyscheduler.framework.interfaces import MAX_NODE_SCORE, CycleContext, NodeScore, ScoreKernel
from kube_pyscheduler.framework.status import Status
from kube_pyscheduler.objects.meta import OwnerReference, Struct
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.plugins.classic.node_facts import NodeFacts

ANNOTATION = "scheduler.alpha.kubernetes.io/preferAvoidPods"
"""Source: PreferAvoidPodsAnnotationKey in api/core/v1/annotation_key_constants.go."""

_KINDS = ("ReplicationController", "ReplicaSet")

Controllers = frozenset[tuple[str, str]]
"""(kind, uid) of each."""


class _PodSignature(Struct, frozen=True):
    pod_controller: OwnerReference | None = None


class _PreferAvoidPod(Struct, frozen=True):
    pod_signature: _PodSignature = _PodSignature()


class _AvoidPods(Struct, frozen=True):
    prefer_avoid_pods: tuple[_PreferAvoidPod, ...] = ()


_DECODER = msgspec.json.Decoder(_AvoidPods)


def avoided_by(node: Node) -> Controllers:
    """Whose pods the node would rather not have; nobody's where its annotation cannot be read."""
    text = node.metadata.annotations.get(ANNOTATION)
    if not text:
        return frozenset()
    try:
        avoided = _DECODER.decode(text)
    except (msgspec.ValidationError, msgspec.DecodeError):
        return frozenset()
    controllers = [entry.pod_signature.pod_controller for entry in avoided.prefer_avoid_pods]
    return frozenset((found.kind, found.uid) for found in controllers if found is not None)


class AvoidedControllers(NodeFacts[Controllers]):
    """Get it with ``table.attached(AvoidedControllers)``."""

    def __init__(self, table: NodeTable) -> None:
        super().__init__(table, avoided_by)


class AvoidPodsKernel(ScoreKernel):
    """``controller``: the pod's; None for pods that nobody can avoid."""

    def __init__(self, table: NodeTable, controller: tuple[str, str] | None) -> None:
        self._avoided = table.attached(AvoidedControllers)
        self._avoided.sync()
        self._scores = LookupTable(
            self._avoided.vocabulary, lambda found: 0 if controller in found else MAX_NODE_SCORE, 0, np.int64
        )

    def scores(self, table: NodeTable, rows: Rows) -> Scores:
        return self._scores.take(self._avoided.ids[rows])


class NodePreferAvoidPods(NodeScore):
    """Judged in every attempt: kept answers would be as many as there are ReplicaSets."""

    name = "NodePreferAvoidPods"

    def prepare(self, ctx: CycleContext) -> None:
        ctx.table.attached(AvoidedControllers).sync()

    def score_kernel(self, ctx: CycleContext, pod: PodInfo) -> ScoreKernel | Status:
        owner = pod.pod.metadata.controller()
        controller = (owner.kind, owner.uid) if owner is not None and owner.kind in _KINDS else None
        return AvoidPodsKernel(ctx.table, controller)
