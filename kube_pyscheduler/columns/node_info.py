"""One row of the node table as an object, for plugins in the easy form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.objects.node import Node


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """A node with what is on it. Amounts: milli-CPU, bytes, or counts, by resource name."""

    node: Node
    pods: tuple[PodInfo, ...]
    allocatable: Mapping[str, int]
    requested: Mapping[str, int]
    allowed_pods: int

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def labels(self) -> Mapping[str, str]:
        return self.node.metadata.labels
