"""Devices for claims, found by trying everything: slow, and plain enough to be read against the API's documentation.

It looks at the raw objects of one node at a time and shares no code with the plugin but the selectors' evaluation, the
matching of node selectors and the reading of quantities.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kube_pyscheduler.cel.errors import EvaluationError
from kube_pyscheduler.cel.selector import Selector, compiled, subject_of
from kube_pyscheduler.objects.exact_quantity import parse_quantity
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.resource import (
    Device,
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceSlice,
)
from kube_pyscheduler.objects.selectors import NodeSelector

LIMIT = 32


class Mistake(Exception):
    """The attempt fails on this node."""


@dataclass(frozen=True, slots=True, eq=False)
class Offer:
    """A device that the node sees."""

    device: Device
    source: ResourceSlice

    @property
    def pool(self) -> tuple[str, str]:
        return self.source.spec.driver, self.source.spec.pool.name

    @property
    def key(self) -> tuple[str, str, str]:
        return (*self.pool, self.device.name)


@dataclass(slots=True)
class View:
    """What a node sees: devices, broken pools, and counters by pool and set."""

    offers: list[Offer]
    broken: set[tuple[str, str]]
    counters: dict[tuple[str, str], dict[tuple[str, str], int]]


def matches_node(selector: NodeSelector, node: Node) -> bool:
    """The few forms that the tests use: ``In`` of labels, and of the name."""
    for term in selector.node_selector_terms:
        labels = all(
            node.metadata.labels.get(each.key) in each.values
            for each in term.match_expressions
            if each.operator == "In"
        )
        if labels and all(node.name in each.values for each in term.match_fields):
            return True
    return False


def _is_seen(chooser: Device, source: ResourceSlice, node: Node) -> bool:
    spec = source.spec
    by_device = spec.per_device_node_selection
    name = chooser.node_name if by_device else spec.node_name
    everywhere = chooser.all_nodes if by_device else spec.all_nodes
    selector = chooser.node_selector if by_device else spec.node_selector
    if name:
        return name == node.name
    return bool(everywhere) or (selector is not None and matches_node(selector, node))


def view_of(node: Node, slices: Iterable[ResourceSlice]) -> View:
    """What a node sees."""
    pools: dict[tuple[str, str], list[ResourceSlice]] = {}
    for source in slices:
        pools.setdefault((source.spec.driver, source.spec.pool.name), []).append(source)
    view = View([], set(), {})
    for pool in sorted(pools):
        members = sorted(pools[pool], key=lambda source: source.name)
        relevant = [
            source
            for source in members
            if source.spec.shared_counters
            or (
                any(_is_seen(device, source, node) for device in source.spec.devices)
                if source.spec.per_device_node_selection
                else _is_seen(Device(), source, node)
            )
        ]
        if not relevant:
            continue
        generation = max(source.spec.pool.generation for source in relevant)
        relevant = [source for source in relevant if source.spec.pool.generation == generation]
        whole = [source for source in members if source.spec.pool.generation == generation]
        count = relevant[0].spec.pool.resource_slice_count
        if len(relevant) != count:
            if any(source.spec.pool.generation > generation for source in members):
                continue
            if len(whole) != count:
                view.broken.add(pool)
                continue
        counters = {
            (offered.name, name): parse_quantity(counter.value).nano
            for source in relevant
            for offered in source.spec.shared_counters
            for name, counter in offered.counters.items()
        }
        devices = [
            Offer(device, source)
            for source in relevant
            if not source.spec.shared_counters
            for device in source.spec.devices
        ]
        used = {
            (consumption.counter_set, name)
            for source in whole
            for device in source.spec.devices
            for consumption in device.consumes_counters
            for name in consumption.counters
        }
        sets = [offered.name for source in relevant for offered in source.spec.shared_counters]
        has_twins = len({offer.key for offer in devices}) != len(devices) or len(set(sets)) != len(sets)
        if has_twins or not used <= set(counters):
            view.broken.add(pool)
            continue
        view.counters[pool] = counters
        view.offers += [
            offer
            for offer in devices
            if _is_seen(offer.device, offer.source, node) or not offer.source.spec.per_device_node_selection
        ]
    return view


class Usage:
    """What claims have: devices for themselves, and amounts of shared ones (nano-units)."""

    def __init__(self, claims: Iterable[ResourceClaim], slices: Sequence[ResourceSlice]) -> None:
        self.whole: set[tuple[str, str, str]] = set()
        self.amounts: dict[tuple[str, str, str], Counter[str]] = {}
        for claim in claims:
            for each in claim.allocation.devices.results if claim.allocation is not None else ():
                key = (each.driver, each.pool, each.device)
                if each.admin_access:
                    continue
                if each.share_id is None:
                    self.whole.add(key)
                for name, amount in each.consumed_capacity.items():
                    self.amounts.setdefault(key, Counter())[name] += parse_quantity(amount).nano
        self.counters: Counter[tuple[tuple[str, str], str, str]] = Counter()
        for source in slices:
            pool = (source.spec.driver, source.spec.pool.name)
            for device in source.spec.devices:
                if (*pool, device.name) in self.whole:
                    self.counters.update(consumed(Offer(device, source)))


def consumed(offer: Offer) -> Counter[tuple[tuple[str, str], str, str]]:
    """What a device takes of its pool's counters."""
    return Counter(
        {
            (offer.pool, consumption.counter_set, name): parse_quantity(counter.value).nano
            for consumption in offer.device.consumes_counters
            for name, counter in consumption.counters.items()
        }
    )


Want = ExactDeviceRequest | DeviceSubRequest


def _selects(wanted: Want, device_class: DeviceClass, offer: Offer) -> bool:
    subject = subject_of(offer.device, offer.pool[0])
    for selector in (*device_class.spec.selectors, *wanted.selectors):
        assert selector.cel is not None
        known = compiled(selector.cel.expression)
        assert isinstance(known, Selector)
        if not known.matches(subject):
            return False
    return True


def _tolerated(wanted: Want, offer: Offer) -> bool:
    return all(
        taint.effect == "None" or any(toleration.tolerates(taint) for toleration in wanted.tolerations)
        for taint in offer.device.taints
    )


def amounts(wanted: Want, offer: Offer) -> dict[str, int] | None:
    """What a request takes of a shared device; None where it asks for what the device does not have."""
    requests = wanted.capacity.requests if wanted.capacity is not None else {}
    if any(name not in offer.device.capacity for name in requests):
        return None
    return {
        name: parse_quantity(requests.get(name, offered.value)).nano for name, offered in offer.device.capacity.items()
    }


Chosen = list[tuple[int, str, Want, Offer]]
"""(claim, name of the request, what it wants, device)."""


class Trial:
    """All ways to serve some claims on one node."""

    def __init__(
        self,
        node: Node,
        slices: Sequence[ResourceSlice],
        classes: Mapping[str, DeviceClass],
        claims: Iterable[ResourceClaim],
        wanted: Sequence[DeviceClaim],
    ) -> None:
        self.view = view_of(node, slices)
        self.usage = Usage(claims, slices)
        self._classes = classes
        self._wanted = wanted

    def result(self) -> Chosen | None:
        """The first way that works, trying alternatives and devices in their order; None where none does. Raises
        Mistake."""
        requests = [(number, request) for number, claim in enumerate(self._wanted) for request in claim.requests]
        if self.view.broken and any(
            want.allocation_mode == "All" for _number, request in requests for want in _variants(request)
        ):
            raise Mistake
        return self._rest([], [self._options(*each) for each in requests])

    def _options(self, owner: int, request: DeviceRequest) -> list[Chosen]:
        """All sets of devices for one request by itself."""
        options: list[Chosen] = []
        for want in _variants(request):
            offers = [
                offer for offer in self.view.offers if _selects(want, self._classes[want.device_class_name], offer)
            ]
            if want.allocation_mode == "All":
                offers = [offer for offer in offers if self._has_room(want, offer)]
                sets = [tuple(offers)] if offers else []
            else:
                sets = list(itertools.combinations(offers, want.count))
            options += [[(owner, request.name, want, offer) for offer in each] for each in sets]
        return options

    def _rest(self, chosen: Chosen, options: Sequence[Sequence[Chosen]]) -> Chosen | None:
        if not options:
            return chosen
        for option in options[0]:
            together = chosen + option
            # What does not work never does with more devices.
            found = self._rest(together, options[1:]) if self._works(together) else None
            if found is not None:
                return found
        return None

    def _has_room(self, want: Want, offer: Offer) -> bool:
        share = amounts(want, offer)
        return share is not None and self._is_within(offer, [share])

    def _is_within(self, offer: Offer, shares: Sequence[Mapping[str, int]]) -> bool:
        taken = self.usage.amounts.get(offer.key, Counter())
        return all(
            taken[name] + sum(share[name] for share in shares) <= parse_quantity(offered.value).nano
            for name, offered in offer.device.capacity.items()
        )

    def _works(self, chosen: Chosen) -> bool:
        sizes = Counter(claim for claim, _name, _want, _offer in chosen)
        if any(size > LIMIT for size in sizes.values()):
            return False
        if not all(_tolerated(want, offer) for _claim, _name, want, offer in chosen):
            return False
        return self._devices_are_free(chosen) and self._counters_last(chosen) and self._constraints_hold(chosen)

    def _devices_are_free(self, chosen: Chosen) -> bool:
        shares: dict[tuple[str, str, str], list[dict[str, int]]] = {}
        users: dict[tuple[str, str, str], list[int]] = {}
        for claim, _name, want, offer in chosen:
            admin = isinstance(want, ExactDeviceRequest) and want.admin_access
            share = amounts(want, offer)
            if share is None or (not admin and offer.key in self.usage.whole):
                return False
            if offer.device.allow_multiple_allocations:
                shares.setdefault(offer.key, []).append(share)
                if not self._is_within(offer, shares[offer.key]):
                    return False
                continue
            if not self._has_room(want, offer):
                return False
            if any(other == claim or not admin for other in users.setdefault(offer.key, [])):
                return False
            users[offer.key].append(claim)
        return True

    def _counters_last(self, chosen: Chosen) -> bool:
        used = Counter(self.usage.counters)
        for _claim, _name, _want, offer in chosen:
            used.update(consumed(offer))
        pools = {offer.pool for _claim, _name, _want, offer in chosen if offer.device.consumes_counters}
        return all(
            used[pool, counter_set, name] <= limit
            for pool in pools
            for (counter_set, name), limit in self.view.counters[pool].items()
        )

    def _constraints_hold(self, chosen: Chosen) -> bool:
        for number, claim in enumerate(self._wanted):
            for constraint in claim.constraints:
                attribute = constraint.match_attribute or constraint.distinct_attribute or ""
                values = [
                    _value(offer, attribute)
                    for owner, name, _want, offer in chosen
                    if owner == number and (not constraint.requests or name in constraint.requests)
                ]
                if None in values:
                    return False
                wanted = min(len(values), 1) if constraint.match_attribute else len(values)
                if len(set(values)) != wanted:
                    return False
        return True


def _variants(request: DeviceRequest) -> Sequence[Want]:
    return request.first_available or (request.exactly or ExactDeviceRequest(),)


def _value(offer: Offer, attribute: str) -> object:
    domain, _slash, name = attribute.partition("/")
    found = offer.device.attributes.get(attribute)
    if found is None and domain == offer.pool[0]:
        found = offer.device.attributes.get(name)
    return found.value if found is not None else None


def score_of(requests: Iterable[DeviceRequest], chosen: Chosen) -> int:
    """What the alternatives score that were chosen for the requests."""
    wants = [want for _owner, _name, want, _offer in chosen]
    return sum(
        8 - place
        for request in requests
        for place, alternative in enumerate(request.first_available)
        if any(want is alternative for want in wants)
    )


def supply_of(
    node: Node, slices: Iterable[ResourceSlice], device_class: DeviceClass, claims: Iterable[ResourceClaim]
) -> tuple[int, int]:
    """How many devices of a class the node has for scores, and how many of them somebody has."""
    taken = {
        (each.driver, each.pool, each.device)
        for claim in claims
        if claim.allocation is not None
        for each in claim.allocation.devices.results
        if not each.admin_access
    }
    found = []
    for source in slices:
        for device in source.spec.devices:
            offer = Offer(device, source)
            if not _is_seen(device, source, node):
                continue
            try:
                if _is_of(device_class, offer):
                    found.append(offer.key)
            except EvaluationError:
                return 0, 0
    return len(found), sum(key in taken for key in found)


def _is_of(device_class: DeviceClass, offer: Offer) -> bool:
    subject = subject_of(offer.device, offer.pool[0], shares=False)
    for selector in device_class.spec.selectors:
        assert selector.cel is not None
        known = compiled(selector.cel.expression)
        assert isinstance(known, Selector)
        if not known.matches(subject):
            return False
    return True
