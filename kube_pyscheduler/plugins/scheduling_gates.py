"""SchedulingGates: pods with gates do not enter the queue."""

from __future__ import annotations

from collections.abc import Sequence

from kube_pyscheduler.framework.cluster_event import (
    Action,
    ClusterEvent,
    EventRegistration,
    QueueingHint,
    Resource,
    queue_if,
)
from kube_pyscheduler.framework.interfaces import PreEnqueue
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.framework.status import Status, unresolvable
from kube_pyscheduler.objects.pod import Pod


class SchedulingGates(PreEnqueue):
    """Source: pkg/scheduler/framework/plugins/schedulinggates."""

    name = "SchedulingGates"

    def pre_enqueue(self, pod: Pod, view: Listers) -> Status | None:
        gates = pod.spec.scheduling_gates
        if not gates:
            return None
        return unresolvable(f"waiting for scheduling gates: [{' '.join(gate.name for gate in gates)}]")

    def events(self) -> Sequence[EventRegistration]:
        event = ClusterEvent(Resource.POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
        return (EventRegistration(event, _gates_gone),)


def _gates_gone(pod: Pod, old: Pod, new: Pod, view: Listers) -> QueueingHint:
    return queue_if(new.uid == pod.uid)
