"""What wakes pods that wait for devices; both answers of each hint."""

from __future__ import annotations

from typing import Any

import pytest

from kube_pyscheduler.devices import world as devices
from kube_pyscheduler.framework.cluster_event import Action, QueueingHint, Resource
from kube_pyscheduler.framework.interfaces import Plugin
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.objects.resource import DeviceClass, ResourceClaim
from kube_pyscheduler.plugins.dynamic_resources.plugin import DynamicResources
from kube_pyscheduler.plugins.node_resources.fit import NodeResourcesFit
from tests.builders import make_node
from tests.plugins.dynamic_resources.world import (
    CLASS,
    World,
    allocation,
    ask,
    device,
    make_claim,
    make_class,
    make_pod,
    make_slice,
    reserved,
)

GPU = "example.com/gpu"
FREE, HELD = make_claim("c"), make_claim("c", status=allocation(("n0", "a")))
OTHER, OTHER_HELD = make_claim("other"), make_claim("other", status=allocation(("n0", "a")))
POD = make_pod("p", "c")


def queues(plugin: Plugin, resource: Resource, action: Action, pod: Pod, old: Any, new: Any, *known: Any) -> bool:
    """What the plugin says, where these objects are known."""
    (registration,) = [r for r in plugin.events() if r.event.resource == resource and r.event.action & action]
    assert registration.hint is not None
    return registration.hint(pod, old, new, World(*known).cache.listers) is QueueingHint.QUEUE


@pytest.mark.parametrize(
    ("old", "new", "known", "wakes"),
    [
        # Devices are given back, by whatever claim.
        (HELD, FREE, [FREE], True),
        (OTHER_HELD, OTHER, [FREE, OTHER], True),
        # It has its own, and there is nothing left anyway.
        (OTHER_HELD, OTHER, [HELD, OTHER], False),
        (OTHER_HELD, OTHER, [FREE, make_claim("third", status=allocation(("n0", "a")))], False),
        # Its own claim comes or changes.
        (None, FREE, [FREE], True),
        (FREE, HELD, [HELD], True),
        (FREE, make_claim("c", status=reserved("x")), [FREE], True),
        (FREE, make_claim("c", finalizers=["x"]), [FREE], False),
        # Those of others do not matter, as long as they keep their devices.
        (None, OTHER, [FREE, OTHER], False),
        (OTHER, OTHER_HELD, [FREE, OTHER], False),
        # Nothing helps a pod whose claims are not all there.
        (HELD, FREE, [], False),
        (OTHER_HELD, OTHER, [OTHER], False),
    ],
)
def test_claims(old: ResourceClaim | None, new: ResourceClaim, known: list[ResourceClaim], wakes: bool) -> None:
    there = (make_node("n0"), make_class(), make_slice("s", [device("a")], node="n0"))
    assert queues(DynamicResources(), Resource.RESOURCE_CLAIM, Action.UPDATE, POD, old, new, *there, *known) is wakes


OWNED = make_claim(
    "made", ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}]
)


@pytest.mark.parametrize(
    ("new", "known", "wakes"),
    [
        (make_pod("p", templates={"c": "made"}), [OWNED], True),
        (make_pod("p", templates={"c": None}), [], True),
        (make_pod("p", templates={"c": "made"}), [], False),
        (make_pod("p", templates={"c": ...}), [OWNED], False),
        (make_pod("q", templates={"c": None}), [], False),
    ],
)
def test_claims_that_are_made_for_the_pod(new: Pod, known: list[ResourceClaim], wakes: bool) -> None:
    action = Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM
    waiting = make_pod("p", templates={"c": ...})
    assert queues(DynamicResources(), Resource.POD, action, waiting, waiting, new, *known) is wakes


WANTS = make_pod("p", requests={GPU: "1", "cpu": "1"})
WANTS_CLASS = make_pod("p", requests={"deviceclass.resource.kubernetes.io/gpu": "1"})


@pytest.mark.parametrize(
    ("pod", "old", "new", "wakes"),
    [
        (WANTS, None, make_class(extended=GPU), True),
        (WANTS, make_class(), make_class(extended=GPU), True),
        (WANTS, make_class(extended=GPU), make_class("gpu", "true", extended=GPU), False),
        (WANTS, None, make_class(), False),
        (WANTS, None, make_class(extended="example.com/other"), False),
        (WANTS_CLASS, None, make_class(), True),
        (WANTS_CLASS, None, make_class("other"), False),
        (WANTS_CLASS, make_class(), make_class(extended=GPU), False),
        (make_pod("p", requests={"cpu": "1"}), None, make_class(extended=GPU), False),
    ],
)
def test_classes_that_offer_a_resource(pod: Pod, old: DeviceClass | None, new: DeviceClass, wakes: bool) -> None:
    assert queues(NodeResourcesFit(), Resource.DEVICE_CLASS, Action.ADD, pod, old, new, new) is wakes


@pytest.mark.parametrize(
    ("classes", "allocatable", "before", "wakes"),
    [
        # Devices may serve what the node has nothing of.
        ([make_class(extended=GPU)], {}, None, True),
        ([make_class(extended=GPU)], {GPU: "0"}, {GPU: "1"}, True),
        ([make_class(extended=GPU)], {GPU: "0", "cpu": "3"}, {GPU: "0", "cpu": "4"}, False),
        ([make_class(extended=GPU)], {"cpu": "500m"}, None, False),
        ([], {}, None, False),
        ([make_class(extended=GPU)], {GPU: "1"}, {GPU: "1"}, False),
        ([make_class(extended=GPU)], {GPU: "2"}, {GPU: "1"}, True),
    ],
)
def test_nodes_where_devices_serve_a_resource(
    classes: list[DeviceClass], allocatable: dict[str, str], before: dict[str, str] | None, wakes: bool
) -> None:
    old = None if before is None else make_node(allocatable=before)
    action = Action.ADD if old is None else Action.UPDATE_NODE_ALLOCATABLE
    new = make_node(allocatable=allocatable)
    assert queues(NodeResourcesFit(), Resource.NODE, action, WANTS, old, new, new, *classes) is wakes


def test_more_kinds_of_claims_than_are_kept_are_left_to_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "KEEP", 1)
    added = make_slice("s", [device("a")], node="n0")
    claims = [make_claim(f"c{count}", ask(count=count)) for count in (2, 3)]
    (hint,) = [r.hint for r in DynamicResources().events() if r.event.resource == Resource.RESOURCE_SLICE]
    assert hint is not None
    view = World(make_node("n0"), make_class(), added, *claims).cache.listers
    answers = [hint(make_pod("p", name), None, added, view) for name in ("c2", "c3", "c2")]
    assert answers == [QueueingHint.SKIP, QueueingHint.QUEUE, QueueingHint.SKIP]


def test_beyond_some_kinds_of_claims_nothing_is_found_out_for_hints_until_classes_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(devices, "EXPECTED", 1)
    added = make_slice("s", [device("a")], node="n0")
    claims = [make_claim(f"c{count}", ask(count=count)) for count in (2, 3)]
    (hint,) = [r.hint for r in DynamicResources().events() if r.event.resource == Resource.RESOURCE_SLICE]
    assert hint is not None
    world = World(make_node("n0"), make_class(), added, *claims)
    view = world.cache.listers
    two, three = make_pod("p", "c2"), make_pod("p", "c3")
    assert [hint(pod, None, added, view) for pod in (two, three)] == [QueueingHint.SKIP, QueueingHint.QUEUE]
    assert not world.fit(three), "an attempt finds it out"
    assert [hint(pod, None, added, view) for pod in (two, three)] == [QueueingHint.SKIP, QueueingHint.SKIP]
    world.put(make_class(CLASS, "true"))
    assert [hint(pod, None, added, view) for pod in (three, two)] == [QueueingHint.SKIP, QueueingHint.QUEUE]


def test_a_change_of_a_class_leaves_what_is_known_of_claims_for_others() -> None:
    claims = [make_claim("c"), make_claim("d", ask(device_class="other"))]
    slices = make_slice("s", [device("a")], node="n0")
    world = World(make_node("n0"), make_class(), make_class("other"), slices, *claims)
    everything = world.cache.table.attached(devices.Devices)
    asked = [[claim.spec.devices] for claim in claims]

    def fragments() -> list[devices.Fragment]:
        everything.sync(world.cache.listers)
        return [everything.fragment(claims) for claims in asked]

    before = fragments()
    world.put(make_class("other", "true"))
    after = fragments()
    assert (after[0] is before[0], after[1] is before[1]) == (True, False)


def test_labels_that_choose_nodes_for_devices_are_followed_as_slices_come_and_go() -> None:
    def selector(key: str) -> dict[str, Any]:
        return {"nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": "Exists"}]}]}

    whole = make_slice("whole", [device("a")], nodeSelector=selector("rack"))
    each = make_slice("each", [device("a", nodeSelector=selector("row"))], perDeviceNodeSelection=True)
    world = World(make_node("n0"), whole, each)
    everything = world.cache.table.attached(devices.Devices)
    assert everything.node_labels(world.cache.listers) == {"rack", "row"}
    world.cache.listers.resource_slices.remove(each)
    assert everything.node_labels(world.cache.listers) == {"rack"}
