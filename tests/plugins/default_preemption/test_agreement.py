"""Dry runs of all nodes at once agree with the plain twin, which builds a cluster for every question."""

from __future__ import annotations

import copy
import random
from typing import Any

import numpy as np
import pytest

from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_columns import PodColumns
from kube_pyscheduler.columns.pod_info import HostPort, PodInfo
from kube_pyscheduler.framework.status import Code
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.plugins.default_preemption.plugin import DefaultPreemption
from tests.builders import make_budget, make_info, make_node, make_pod
from tests.clusters import Cluster
from tests.plugins.default_preemption.reference import Found, Scene, candidates

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
APPS = ["a", "b", "c"]


def random_spec(rng: random.Random) -> dict[str, Any]:
    spec: dict[str, Any] = {"requests": {"cpu": rng.choice(["250m", "500m", "1", "1500m"])}}
    if rng.random() < 0.2:
        port = {"hostPort": rng.choice([80, 81]), "protocol": "TCP"}
        resources = {"requests": spec.pop("requests")}
        spec["containers"] = [{"name": "c", "image": "app:1", "resources": resources, "ports": [port]}]
    affinity: dict[str, Any] = {}
    if rng.random() < 0.25:
        affinity["podAntiAffinity"] = _required(rng)
    if rng.random() < 0.1:
        affinity["podAffinity"] = _required(rng)
    if affinity:
        spec["affinity"] = affinity
    if rng.random() < 0.2:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": rng.choice([1, 2]),
                "topologyKey": rng.choice([ZONE, HOST]),
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": rng.choice(APPS)}},
            }
        ]
    return spec


def _required(rng: random.Random) -> dict[str, Any]:
    term = {"topologyKey": rng.choice([ZONE, HOST]), "labelSelector": {"matchLabels": {"app": rng.choice(APPS)}}}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def random_pod(rng: random.Random, name: str, priorities: list[int], **more: Any) -> Pod:
    start = {"startTime": f"2026-01-01T00:00:0{rng.randrange(4)}Z"} if rng.random() < 0.8 else {}
    return make_pod(
        name,
        labels={"app": rng.choice(APPS)},
        priority=rng.choice(priorities),
        status=start,
        **{**random_spec(rng), **more},
    )


def with_ports_of_their_own(pods: list[Pod]) -> list[Pod]:
    """Those that a scheduler could have put on one node. The twin does not know how upstream forgets shared ports."""
    taken: set[HostPort] = set()
    kept = []
    for pod in pods:
        ports = PodInfo(pod).host_ports
        if taken.isdisjoint(ports):
            taken.update(ports)
            kept.append(pod)
    return kept


def random_scene(rng: random.Random) -> Scene:
    names = [f"n{number}" for number in range(rng.randrange(3, 7))]
    nodes = [make_node(name, labels={ZONE: rng.choice(["x", "y"])}, allocatable={"cpu": "3"}) for name in names]
    pods = [
        pod
        for name in names
        for pod in with_ports_of_their_own(
            [random_pod(rng, f"{name}-{number}", [0, 5, 5, 20], node=name) for number in range(rng.randrange(1, 6))]
        )
    ]
    nominated = [
        (rng.choice(names), random_pod(rng, f"promised{number}", [5, 10, 20])) for number in range(rng.randrange(3))
    ]
    budgets = [
        make_budget(
            f"budget{number}",
            {"matchLabels": {"app": rng.choice(APPS)}},
            allowed=rng.randrange(2),
            disrupted=[pod.name for pod in pods if rng.random() < 0.1],
        )
        for number in range(rng.randrange(3))
    ]
    return Scene(nodes, pods, nominated, budgets)


def potential_nodes(cluster: Cluster, pod: Pod) -> list[str]:
    return [name for name, status in cluster.refusals(pod).items() if status.code is Code.UNSCHEDULABLE]


def found_by_plugin(cluster: Cluster, pod: Pod) -> dict[str, Found]:
    plugin = next(plugin for plugin in cluster.profile.post_filter if isinstance(plugin, DefaultPreemption))
    cycle, _judged = cluster.engine.cycle(cluster.profile, PodInfo(pod))
    assert cycle.pre_filter() is None
    cycle.filter()
    found, _in_vain = plugin.find_candidates(cycle.ctx, cycle.pod, cycle.diagnose())
    return {
        candidate.node: Found(tuple(sorted(victim.key for victim in candidate.victims)), candidate.violations)
        for candidate in found
    }


@pytest.mark.parametrize("seed", range(30))
def test_candidates_and_victims_are_those_of_the_twin(seed: int) -> None:
    rng = random.Random(seed)
    scene = random_scene(rng)
    cluster = scene.cluster()
    for number in range(3):
        pod = random_pod(rng, f"incoming{number}", [5, 10, 10])
        expected = candidates(scene, pod, potential_nodes(cluster, pod))
        assert found_by_plugin(cluster, pod) == expected


def test_the_twin_is_asked_about_something() -> None:
    """The scenes are not all trivial."""
    kinds = {"victims": 0, "violations": 0, "in vain": 0}
    for seed in range(30):
        rng = random.Random(seed)
        scene = random_scene(rng)
        cluster = scene.cluster()
        pod = random_pod(rng, "incoming0", [5, 10, 10])
        found = found_by_plugin(cluster, pod)
        kinds["victims"] += any(len(result.victims) > 1 for result in found.values())
        kinds["violations"] += any(result.violations for result in found.values())
        kinds["in vain"] += len(found) < len(potential_nodes(cluster, pod))
    assert all(count >= 3 for count in kinds.values()), kinds


def test_a_what_if_leaves_no_trace() -> None:
    rng = random.Random(3)
    scene = random_scene(rng)
    cluster = scene.cluster()
    table = cluster.cache.table
    before = [column.copy() for column in (table.requested, table.nonzero_requested, table.pod_count)]
    ports = copy.deepcopy([table.host_ports.rows_using("TCP", port) for port in (80, 81)])
    usage, facts = table.usage.position, table.facts.position
    for number in range(20):
        cluster.schedule(random_pod(rng, f"incoming{number}", [5, 10]))
    for column, was in zip((table.requested, table.nonzero_requested, table.pod_count), before, strict=True):
        assert np.array_equal(column[..., : was.shape[-1]][: len(was)], was)
    assert [table.host_ports.rows_using("TCP", port) for port in (80, 81)] == ports
    assert (table.usage.position, table.facts.position) == (usage, facts)


def test_pod_columns_after_thousands_of_changes_are_those_made_from_nothing() -> None:
    rng = random.Random(8)
    table = NodeTable()
    names = [f"n{number}" for number in range(10)]
    for name in names:
        table.set_node(make_node(name))
    kept = table.attached(PodColumns)
    present: dict[str, tuple[PodInfo, str]] = {}
    for step in range(3000):
        choice = rng.random()
        if choice < 0.5 or not present:
            node = rng.choice([*names, "unknown"])
            requests = {"cpu": rng.choice(["1", "100m"]), rng.choice(["memory", f"example.com/r{step % 7}"]): "3"}
            info = make_info(f"p{step}", node=node, requests=requests, priority=rng.randrange(4))
            table.add_pod(info, node)
            present[info.uid] = info, node
        elif choice < 0.85:
            info, node = present.pop(rng.choice(list(present)))
            table.remove_pod(info, node)
        else:
            uid = rng.choice(list(present))
            info, node = present[uid]
            newer = make_info(
                info.pod.name,
                node=node,
                requests=dict(info.pod.spec.containers[0].resources.requests),
                priority=info.pod.priority,
                status={"startTime": f"2026-01-01T00:00:{rng.randrange(60):02d}Z"},
            )
            table.swap_pod(newer, node)
            present[uid] = newer, node
    assert len(kept) == len(present)
    fresh = PodColumns(table)
    place = np.full(table.capacity, -1, dtype=np.int64)
    place[table.live_rows()] = np.arange(len(names))[::-1]
    for priority in range(5):
        slots, again = kept.below(priority, place), fresh.below(priority, place)
        assert [kept.info(slot) for slot in slots.tolist()] == [fresh.info(slot) for slot in again.tolist()]
        if len(slots):
            charges, anew = kept.charges(slots), fresh.charges(again)
            assert np.array_equal(charges.rows, anew.rows)
            assert np.array_equal(charges.requested, anew.requested)
            assert np.array_equal(charges.non_zero, anew.non_zero)
            assert np.array_equal(charges.count, anew.count)
