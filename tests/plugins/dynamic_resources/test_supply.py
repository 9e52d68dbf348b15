"""How much there is of a class on each node, as scores see it: counted plainly, and kept up to date."""

from __future__ import annotations

import pytest

from kube_pyscheduler.devices.world import Devices
from tests.builders import make_node
from tests.plugins.dynamic_resources.reference import supply_of
from tests.plugins.dynamic_resources.test_agreement import Life
from tests.plugins.dynamic_resources.world import (
    DRIVER,
    World,
    allocation,
    ask,
    device,
    make_claim,
    make_class,
    make_slice,
)

RESOURCE = "example.com/gpu"


def supply(world: World, node: str = "n0", resource: str = RESOURCE) -> tuple[int, int]:
    table = world.cache.table
    known = table.attached(Devices).supply(world.cache.listers, resource)
    row = table.row_of[node]
    return int(known.capacity[row]), int(known.taken[row])


@pytest.mark.parametrize("seed", range(4))
def test_it_is_counted_right_whatever_happened(seed: int) -> None:
    life = Life(500 + seed)
    listers, table = life.world.cache.listers, life.world.cache.table
    some = 0
    for _round in range(150):
        for _step in range(4):
            life.step()
        for name, device_class in life.classes.items():
            known = table.attached(Devices).supply(listers, f"deviceclass.resource.kubernetes.io/{name}")
            for node in life.nodes.values():
                row = table.row_of[node.name]
                plain = supply_of(node, life.slices.values(), device_class, life.claims.values())
                assert (known.capacity[row], known.taken[row]) == plain, (name, node.name)
                some += plain[1] > 0
    assert some > 50


def test_slices_of_old_generations_and_of_broken_pools_count() -> None:
    old = make_slice("old", [device("a")], node="n0", pool="p")
    new = make_slice("new", [device("b"), device("b")], node="n0", pool="p", generation=2, count=7)
    world = World(make_class(extended=RESOURCE), old, new, nodes=1)
    assert supply(world) == (3, 0)


def test_the_class_is_followed() -> None:
    world = World(make_slice("s", [device("a", "10Gi"), device("b", "20Gi")], node="n0"), nodes=1)
    assert supply(world) == (0, 0)
    world.put(make_class(extended=RESOURCE))
    assert supply(world) == (2, 0)
    memory = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("15Gi")) > 0'
    world.put(make_class("gpu", memory, extended=RESOURCE))
    assert supply(world) == (1, 0)
    world.put(make_class("gpu", memory))
    assert supply(world) == (0, 0)


def test_a_selector_that_fails_on_a_device_empties_its_nodes() -> None:
    fails = f'device.attributes["{DRIVER}"].model == "x"'
    good = [device("a", attributes={"model": "x"}), device("b", attributes={"model": "y"})]
    slices = [make_slice("good", good, node="n0"), make_slice("bad", [device("a")], node="n1")]
    world = World(make_class("gpu", fails, extended=RESOURCE), *slices, nodes=2)
    assert supply(world, "n0") == (1, 0)
    assert supply(world, "n1") == (0, 0)
    world.put(make_class("gpu", "not CEL", extended=RESOURCE))
    assert supply(world, "n0") == (0, 0)


def test_devices_are_taken_and_given_back() -> None:
    shared = device("b", allowMultipleAllocations=True)
    world = World(
        make_class(extended=RESOURCE), make_slice("s", [device("a"), shared, device("c")], node="n0"), nodes=1
    )
    known = world.cache.table.attached(Devices).supply(world.cache.listers, RESOURCE)
    claim = make_claim("c", ask(), status=allocation(("n0", "a")))
    sharing = make_claim("d", ask(), status=allocation(("n0", "b"), shareID="x"))
    administering = make_claim("e", ask(), status=allocation(("n0", "c"), adminAccess=True))
    world.put(claim, sharing, administering)
    before = known.version
    assert supply(world) == (3, 2)
    assert known.version > before
    world.drop(claim, sharing)
    assert supply(world) == (3, 0)
    unchanged = known.version
    world.put(make_claim("another"))
    assert supply(world) == (3, 0)
    assert known.version == unchanged


def test_a_node_that_takes_the_place_of_another_has_its_own_devices() -> None:
    world = World(make_class(extended=RESOURCE), make_slice("s", [device("a")], node="n0"), nodes=1)
    assert supply(world) == (1, 0)
    world.drop(make_node("n0"))
    world.put(make_node("new"))
    assert supply(world, "new") == (0, 0)
    world.put(make_slice("t", [device("a"), device("b")], node="new"))
    assert supply(world, "new") == (2, 0)
