"""Everything about devices in one place, for all who ask: attached to the node table, so that there is one of it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence

import msgspec

from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.devices.allocated import AllocatedDevices
from kube_pyscheduler.devices.classes import ExtendedResources
from kube_pyscheduler.devices.fragments import Fragment
from kube_pyscheduler.devices.inventory import Inventory
from kube_pyscheduler.devices.requests import make_plan
from kube_pyscheduler.devices.supply import Supply
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.objects.resource import DeviceClaim

KEEP = 128
"""Kinds of claims whose answers are kept at most: about 3 MB each with 5,000 nodes that have devices of their own."""

_encode = msgspec.json.Encoder(order="sorted").encode


class Devices:
    """See the module. ``sync`` before use."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self.inventory = Inventory(table)
        self.allocated = AllocatedDevices()
        self._listers: Listers | None = None
        self._classes: ExtendedResources | None = None
        self._fragments: OrderedDict[Hashable, Fragment] = OrderedDict()
        self._supplies: dict[str, Supply] = {}
        """By name of the resource."""

    @property
    def extended(self) -> ExtendedResources:
        """The extended resources that classes offer."""
        assert self._classes is not None, "Devices.sync was not called"
        return self._classes

    def sync_classes(self, listers: Listers) -> None:
        """Follow the classes alone. Cost: nothing where none changed."""
        if self._listers is not listers:
            self._listers, self._classes = listers, None
        if self._classes is None or self._classes.generation != listers.device_classes.generation:
            self._classes = ExtendedResources(listers.device_classes)
            self._fragments.clear()

    def sync(self, listers: Listers) -> None:
        """Follow classes, slices, nodes and claims. Cost: what changed."""
        self.sync_classes(listers)
        self.inventory.sync(listers.resource_slices)
        self.allocated.sync(listers.resource_claims)

    def supply(self, listers: Listers, resource: str) -> Supply:
        """What there is of the devices that serve an extended resource. Cost: as ``sync``."""
        self.sync(listers)
        supply = self._supplies.get(resource)
        if supply is None:
            supply = self._supplies[resource] = Supply(self._table, self.inventory, self.allocated)
        supply.sync(self.extended.class_of(resource))
        return supply

    def fragment(self, claims: Sequence[DeviceClaim]) -> Fragment:
        """What is known of claims like these."""
        key = _kind(claims)
        fragment = self._fragments.get(key)
        if fragment is None:
            assert self._listers is not None, "Devices.sync was not called"
            plan = make_plan(claims, self._listers.device_classes.get)
            fragment = self._fragments[key] = Fragment(plan, self._table, self.inventory, self.allocated)
            if len(self._fragments) > KEEP:
                self._fragments.popitem(last=False)
        else:
            self._fragments.move_to_end(key)
        return fragment

    def fragment_if_room(self, claims: Sequence[DeviceClaim]) -> Fragment | None:
        """The same for those who ask about one kind after the other; None where another one had to be forgotten for it,
        because they would forget each just before they ask again."""
        is_full = len(self._fragments) >= KEEP
        return None if is_full and _kind(claims) not in self._fragments else self.fragment(claims)


def _kind(claims: Sequence[DeviceClaim]) -> Hashable:
    """Equal for claims that ask for the same."""
    return tuple([_encode((claim.requests, claim.constraints)) for claim in claims])
