"""The columns agree with the plain twins, whatever happens to the cluster."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import numpy as np
import pytest

from kube_pyscheduler.framework.interfaces import NodeFilter
from kube_pyscheduler.framework.row_changes import NO_CHANGES, StatedChanges
from kube_pyscheduler.objects import kinds
from kube_pyscheduler.objects.group import Service
from kube_pyscheduler.objects.pod import Pod, TopologySpreadConstraint
from kube_pyscheduler.objects.selectors import LabelSelector
from tests.plugins.pod_topology_spread import reference
from tests.plugins.pod_world import KEYS, NAMESPACES, PodWorld, only, random_selector

PROFILE = only("PodTopologySpread")
STEPS = 1200
ASK_EVERY = 6


def random_constraint(rng: random.Random, key: str) -> dict[str, Any]:
    constraint: dict[str, Any] = {
        "maxSkew": rng.choice([1, 1, 2, 3]),
        "topologyKey": key,
        "whenUnsatisfiable": rng.choice(["DoNotSchedule", "ScheduleAnyway"]),
    }
    if rng.random() < 0.9:
        constraint["labelSelector"] = random_selector(rng)
    if rng.random() < 0.3:
        constraint["matchLabelKeys"] = ["hash"]
    if rng.random() < 0.3 and constraint["whenUnsatisfiable"] == "DoNotSchedule":
        constraint["minDomains"] = rng.choice([1, 2, 4])
    for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if rng.random() < 0.4:
            constraint[policy] = rng.choice(["Honor", "Ignore"])
    return constraint


def random_spec(rng: random.Random) -> dict[str, Any]:
    keys = rng.sample(KEYS, rng.choice([1, 1, 2, 3]))
    spec: dict[str, Any] = {"topologySpreadConstraints": [random_constraint(rng, key) for key in keys]}
    if rng.random() < 0.2:
        spec["nodeSelector"] = {"disk": "ssd"}
    if rng.random() < 0.2:
        expression = {"key": "disk", "operator": "NotIn", "values": ["hdd"]}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    if rng.random() < 0.3:
        spec["tolerations"] = [{"key": "a", "operator": "Exists"}]
    return spec


def check_filter(world: PodWorld, pod: Pod) -> list[str]:
    """Compares the answers for all nodes, and for all nodes with other pods on them; gives the feasible ones."""
    hard = reference.constraints_of(pod, "DoNotSchedule")
    ctx, info = world.context(pod)
    plugin = world.cluster.profile.filter[0]
    assert isinstance(plugin, NodeFilter)
    world.cluster.profile.pre_filter[0].pre_filter(ctx, info)
    kernel = plugin.filter_kernel(ctx, info)
    assert (kernel is None) == (not hard)
    names = sorted(world.nodes)
    if kernel is None or not names:
        return names
    twin = reference.Filter(pod, world.nodes.values(), world.pods_on, hard)
    expected = [twin.code(world.nodes[name]) for name in names]
    rows = np.array([ctx.table.row_of[name] for name in names], dtype=np.int64)
    assert kernel.codes(ctx.table, ctx.table.all_rows)[rows].tolist() == expected
    assert kernel.codes(ctx.table, rows).tolist() == expected
    assert kernel.codes_if(ctx.table, rows, NO_CHANGES).tolist() == expected
    changes = {int(row): world.random_change(int(row)) for row in rows if world.rng.random() < 0.7}
    changed = []
    for name, row in zip(names, rows.tolist(), strict=True):
        node = world.nodes[name]
        twin = reference.Filter(pod, world.nodes.values(), world.pods_on, hard)
        if row in changes:
            for other in changes[row].added:
                twin.change(node, other.pod, 1)
            for other in changes[row].removed:
                twin.change(node, other.pod, -1)
        changed.append(twin.code(node))
    assert kernel.codes_if(ctx.table, rows, StatedChanges(changes)).tolist() == changed
    return [name for name, code in zip(names, expected, strict=True) if not code]


def check_scores(
    world: PodWorld, pod: Pod, feasible: list[str], soft: list[reference.Constraint], *, require_all: bool
) -> None:
    cycle, _judged = world.cluster.engine.cycle(world.cluster.profile, world.context(pod)[1])
    cycle.pre_filter()
    cycle.filter()
    cycle.score()
    got = dict(cycle.scores()).get("PodTopologySpread")
    assert (got is None) == (not soft)
    if got is not None:
        nodes = [world.nodes[name] for name in feasible]
        expected = reference.scores(pod, world.nodes.values(), nodes, world.pods_on, soft, require_all=require_all)
        row_of = world.cluster.cache.table.row_of
        assert {name: int(got[row_of[name]]) for name in feasible} == expected


@pytest.mark.parametrize("seed", range(4))
def test_own_constraints_agree_with_the_plain_twin_after_any_events(seed: int) -> None:
    world = PodWorld(random.Random(seed), PROFILE, random_spec)
    for step in range(STEPS):
        world.step()
        if step % ASK_EVERY:
            continue
        pod = world.new_pod()
        feasible = check_filter(world, pod)
        if len(feasible) > 1:
            soft = reference.constraints_of(pod, "ScheduleAnyway")
            check_scores(world, pod, feasible, soft, require_all=True)


def random_service(rng: random.Random) -> Service:
    selector = rng.choice([None, {}, {"app": "web"}, {"app": "db", "tier": "back"}, {"tier": "front"}])
    document = {
        "metadata": {"name": rng.choice(["s1", "s2"]), "namespace": rng.choice(NAMESPACES)},
        "spec": {"selector": selector},
    }
    service: Service = kinds.SERVICE.decoder.decode(msgspec.json.encode(document))
    return service


def default_constraints(
    pod: Pod, services: dict[str, Service], keys: list[tuple[str, int]]
) -> list[reference.Constraint]:
    """The given soft constraints, for the pods of the pod's services."""
    selected: dict[str, str] = {}
    for service in services.values():
        wanted = service.spec.selector
        if service.namespace == pod.namespace and wanted.items() <= pod.metadata.labels.items():
            selected |= wanted
    if not selected:
        return []
    return [
        reference.Constraint(
            TopologySpreadConstraint(max_skew=skew, topology_key=key), LabelSelector(match_labels=selected), {}
        )
        for key, skew in keys
    ]


LISTED = [{"maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway"}]


@pytest.mark.parametrize(
    ("args", "keys", "require_all"),
    [
        (None, [("kubernetes.io/hostname", 3), ("topology.kubernetes.io/zone", 5)], False),
        ({"defaultingType": "List", "defaultConstraints": LISTED}, [("rack", 2)], True),
    ],
)
def test_default_constraints_agree_with_the_plain_twin_after_any_events(
    args: dict[str, Any] | None, keys: list[tuple[str, int]], require_all: bool
) -> None:
    rng = random.Random(7)
    world = PodWorld(rng, only("PodTopologySpread", args=args), lambda _rng: {})
    services: dict[str, Service] = {}
    lister = world.cluster.cache.listers.services
    for step in range(STEPS):
        world.step()
        if step % ASK_EVERY:
            continue
        service = random_service(rng)
        if service.key in services and rng.random() < 0.4:
            lister.remove(services.pop(service.key))
        else:
            services[service.key] = service
            lister.put(service)
        pod = world.new_pod()
        if len(world.nodes) > 1:
            soft = default_constraints(pod, services, keys)
            check_scores(world, pod, sorted(world.nodes), soft, require_all=require_all)
