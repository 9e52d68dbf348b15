"""The columns of available volumes against a plain list of them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from kube_pyscheduler.columns.arrays import Ids
from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.objects.storage import PersistentVolume, PersistentVolumeClaim
from kube_pyscheduler.plugins.volume_binding.pool import NONE, VolumePool, capacity_of, size_of
from kube_pyscheduler.plugins.volume_binding.topology import Matchers
from tests.builders import make_node
from tests.storage import HOSTNAME, ZONE, make_claim, make_volume

NODES = [f"n{number}" for number in range(6)]


def new_volume(rng: random.Random, name: str) -> PersistentVolume:
    match rng.randrange(4):
        case 0:
            nodes = {HOSTNAME: [rng.choice(NODES)]}
        case 1:
            nodes = {ZONE: rng.sample(["z0", "z1", "z2"], rng.choice([1, 2]))}
        case 2:
            nodes = {ZONE: ["z0", "z1"], HOSTNAME: rng.sample(NODES, 3)}
        case _:
            nodes = {}
    labels = {"tier": rng.choice(["a", "b"])}
    modes = rng.choice([("ReadWriteOnce",), ("ReadWriteOnce", "ReadWriteMany")])
    return make_volume(name, size=f"{rng.randrange(1, 5)}Gi", nodes=nodes, labels=labels, modes=modes)


def new_claim(rng: random.Random, name: str) -> PersistentVolumeClaim:
    modes = ("ReadWriteMany",) if rng.random() < 0.3 else ("ReadWriteOnce",)
    selector: dict[str, Any] = {"selector": {"matchLabels": {"tier": "a"}}} if rng.random() < 0.3 else {}
    return make_claim(name, size=f"{rng.randrange(1, 4)}Gi", modes=modes, **selector)


def smallest(
    volumes: list[PersistentVolume], claim: PersistentVolumeClaim, table: NodeTable, row: int, taken: set[str]
) -> str | None:
    node = table.nodes[row]
    assert node is not None
    for volume in sorted(volumes, key=lambda volume: (capacity_of(volume), volume.name)):
        affinity, selector = volume.spec.node_affinity, claim.spec.selector
        if (
            volume.name not in taken
            and capacity_of(volume) >= size_of(claim)
            and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
            and (selector is None or selector.matches(volume.metadata.labels))
            and (affinity is None or affinity.required is None or affinity.required.matches(node.metadata.labels, ""))
        ):
            return volume.name
    return None


def table_of_nodes() -> NodeTable:
    table = NodeTable()
    for number, name in enumerate(NODES):
        table.set_node(make_node(name, labels={ZONE: f"z{number % 3}"} if number else {}))
    return table


@pytest.mark.parametrize("seed", range(8))
def test_several_claims_take_the_smallest_volumes_that_are_left(seed: int) -> None:
    rng = random.Random(seed)
    table = table_of_nodes()
    pool = VolumePool(table, Matchers(table))
    volumes: dict[str, PersistentVolume] = {}
    several = 0
    for _ in range(120):
        fresh = [new_volume(rng, f"v{rng.randrange(30)}") for _ in range(rng.choice([0, 1, 1, 2, 25]))]
        fresh = list({volume.name: volume for volume in fresh}.values())
        pool.put(fresh)
        volumes.update((volume.name, volume) for volume in fresh)
        for name in rng.sample(sorted(volumes), rng.randrange(min(4, len(volumes) + 1))):
            pool.discard(name)
            del volumes[name]
        pool.discard("never there")
        assert len(pool) == len(volumes)
        taken: list[Ids] = []
        names: list[set[str]] = [set() for _ in NODES]
        for number in range(3):
            claim = new_claim(rng, f"c{number}")
            chosen = pool.choose(claim, table.all_rows, taken)
            for row in range(len(NODES)):
                expected = smallest(list(volumes.values()), claim, table, row, names[row])
                found = None if chosen[row] == NONE else pool.at(int(chosen[row])).name
                assert found == expected
                names[row] |= {found} if found is not None else set()
            alone = pool.choose(claim, np.array([2], dtype=np.int64), [numbers[2:3] for numbers in taken])
            assert alone.tolist() == chosen[2:3].tolist()
            taken.append(chosen)
        several += any(len(found) > 1 for found in names)
    assert several > 20


def test_an_empty_pool_has_nothing() -> None:
    table = table_of_nodes()
    pool = VolumePool(table, Matchers(table))
    assert pool.choose(make_claim(), table.all_rows, []).tolist() == [NONE] * len(NODES)
