"""PrioritySort: higher priority first, then longer in the queue."""

from __future__ import annotations

from kube_pyscheduler.framework.interfaces import QueueSort
from kube_pyscheduler.objects.pod import Pod


class PrioritySort(QueueSort):
    """Source: pkg/scheduler/framework/plugins/queuesort."""

    name = "PrioritySort"

    def sort_key(self, pod: Pod, timestamp: float) -> tuple[int, float]:
        return -pod.priority, timestamp
