"""The node fields that scheduling reads."""

from __future__ import annotations

from kube_pyscheduler.objects.meta import Int64, Object, Struct
from kube_pyscheduler.objects.quantity import RawQuantity, parse_list


class Taint(Struct, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Struct, frozen=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeCondition(Struct, frozen=True):
    type: str = ""
    status: str = ""


class ContainerImage(Struct, frozen=True):
    names: tuple[str, ...] = ()
    size_bytes: Int64 = 0


class NodeStatus(Struct, frozen=True):
    allocatable: dict[str, RawQuantity] = {}
    capacity: dict[str, RawQuantity] = {}
    conditions: tuple[NodeCondition, ...] = ()
    images: tuple[ContainerImage, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(Object, frozen=True):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    def check(self) -> None:
        parse_list(self.status.allocatable)
