"""Everything about devices in one place, for all who ask: attached to the node table, so that there is one of it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Sequence

import msgspec

from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.devices.allocated import AllocatedDevices
from kube_pyscheduler.devices.classes import ExtendedResources
from kube_pyscheduler.devices.fragments import Fragment
from kube_pyscheduler.devices.inventory import Inventory
from kube_pyscheduler.devices.requests import class_names, make_plan
from kube_pyscheduler.devices.supply import Supply
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.objects.resource import DeviceClaim, ResourceSlice

KEEP = 128
"""Kinds of claims whose answers are kept at most: about 3 MB each with 5,000 nodes that have devices of their own."""

EXPECTED = 8
"""Kinds of claims that may be found out about between two changes of classes for those who ask whether an attempt is
worth it: tens of milliseconds each, and they ask for all waiting pods in one go."""

_encode = msgspec.json.Encoder(order="sorted").encode


class Devices:
    """See the module. ``sync`` before use."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self.inventory = Inventory(table)
        self.allocated = AllocatedDevices()
        self._listers: Listers | None = None
        self._classes: ExtendedResources | None = None
        self._fragments: OrderedDict[Hashable, tuple[Fragment, frozenset[str]]] = OrderedDict()
        """By kind of claims, with the names of the classes that they ask for."""
        self._expected = 0
        """Kinds found out about since classes changed, because somebody asked whether an attempt is worth it."""
        self._node_labels: tuple[int, frozenset[str]] = (-1, frozenset())
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
            known = self._classes
            changed = None if known is None else listers.device_classes.changed_since(known.generation)
            self._classes = ExtendedResources(listers.device_classes)
            self._expected = 0
            for key, (_fragment, names) in list(self._fragments.items()):
                if changed is None or not changed.isdisjoint(names):
                    del self._fragments[key]

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
        known = self._fragments.get(key)
        if known is not None:
            self._fragments.move_to_end(key)
            return known[0]
        assert self._listers is not None, "Devices.sync was not called"
        plan = make_plan(claims, self._listers.device_classes.get)
        fragment = Fragment(plan, self._table, self.inventory, self.allocated)
        self._fragments[key] = fragment, frozenset(class_names(claims))
        if len(self._fragments) > KEEP:
            self._fragments.popitem(last=False)
        return fragment

    def expected_fragment(self, claims: Sequence[DeviceClaim]) -> Fragment | None:
        """The same for those who ask about one kind after the other, whether an attempt is worth it. None where another
        one had to be forgotten for it, because they would forget each just before they ask again; and beyond
        ``EXPECTED`` kinds of which nothing is known."""
        if _kind(claims) not in self._fragments:
            if len(self._fragments) >= KEEP or self._expected >= EXPECTED:
                return None
            self._expected += 1
        return self.fragment(claims)

    def node_labels(self, listers: Listers) -> frozenset[str]:
        """The keys of the labels by which slices and their devices choose nodes. Cost: O(devices) after a change."""
        generation = listers.resource_slices.generation
        if self._node_labels[0] != generation:
            self._node_labels = generation, frozenset(_chosen_by(listers.resource_slices))
        return self._node_labels[1]


def _kind(claims: Sequence[DeviceClaim]) -> Hashable:
    """Equal for claims that ask for the same."""
    return tuple([_encode((claim.requests, claim.constraints)) for claim in claims])


def _chosen_by(slices: Iterable[ResourceSlice]) -> Iterator[str]:
    for each in slices:
        selectors = [each.spec.node_selector]
        if each.spec.per_device_node_selection:
            selectors += [device.node_selector for device in each.spec.devices]
        for selector in selectors:
            if selector is not None:
                yield from selector.label_keys()
