"""Claims on random nodes: as the plain search says, and the same whatever happened before."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.devices import fragments
from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.objects.resource import DeviceClass, ResourceClaim, ResourceSlice
from tests.builders import make_node
from tests.plugins.dynamic_resources.reference import Chosen, Mistake, Trial, score_of, view_of
from tests.plugins.dynamic_resources.world import (
    DRIVER,
    Document,
    World,
    allocated,
    ask,
    ask_first,
    device,
    make_claim,
    make_class,
    make_pod,
    make_slice,
)

NODES = 6
ZONES = ("a", "b", "c")
MODELS = ("large", "small")
MODEL = f'device.attributes["{DRIVER}"].?model.orValue("")'
MEMORY = f'device.capacity["{DRIVER}"].?memory.orValue(quantity("0"))'
SELECTORS = (
    f'{MODEL} == "large"',
    f'{MODEL} in ["small", "large"]',
    f'{MEMORY}.compareTo(quantity("20Gi")) >= 0',
    f'device.attributes["{DRIVER}"].exists(name, name == "root")',
    "device.allowMultipleAllocations",
)


class Life:
    """Random objects, put into a world as they come, change and go."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.world = World()
        self.nodes: dict[str, Node] = {}
        self.slices: dict[str, ResourceSlice] = {}
        self.claims: dict[str, ResourceClaim] = {}
        self.classes: dict[str, DeviceClass] = {}
        for name in ("gpu", "large"):
            self.change_class(name)
        for number in range(NODES):
            self.change_node(f"n{number}")
        for number in range(2 * NODES):
            self.change_slice(f"s{number}")

    def fresh(self) -> World:
        """A world that knows nothing but what is there now."""
        items: list[Any] = [*self.nodes.values(), *self.classes.values(), *self.slices.values(), *self.claims.values()]
        self.rng.shuffle(items)
        return World(*items)

    # What happens

    def step(self) -> None:
        rng = self.rng
        match rng.randrange(10):
            case 0:
                self.change_node(f"n{rng.randrange(NODES + 2)}")
            case 1 if len(self.nodes) > 2:
                self.world.drop(self.nodes.pop(rng.choice(list(self.nodes))))
            case 2 | 3:
                self.change_slice(f"s{rng.randrange(3 * NODES)}")
            case 4 if self.slices:
                self.world.drop(self.slices.pop(rng.choice(list(self.slices))))
            case 5 if self.claims:
                self.world.drop(self.claims.pop(rng.choice(list(self.claims))))
            case 6 if rng.random() < 0.1:
                self.change_class(rng.choice(list(self.classes)))
            case _:
                self.use()

    def change_node(self, name: str) -> None:
        self.nodes[name] = make_node(name, labels={"zone": self.rng.choice(ZONES)})
        self.world.put(self.nodes[name])

    def change_class(self, name: str) -> None:
        expressions = [self.rng.choice(SELECTORS)] if self.rng.random() < 0.3 else []
        self.classes[name] = make_class(name, *expressions)
        self.world.put(self.classes[name])

    def change_slice(self, name: str) -> None:
        self.slices[name] = self._slice(name)
        self.world.put(self.slices[name])

    def _slice(self, name: str) -> ResourceSlice:
        rng = self.rng
        devices = [self._device(f"d{place}") for place in range(rng.randrange(4))]
        node = f"n{rng.randrange(NODES)}"
        here = {"nodeSelectorTerms": [{"matchExpressions": [_in_zone(rng.sample(ZONES, 2))]}]}
        match rng.randrange(9):
            case 0:
                return make_slice(name, devices, allNodes=True)
            case 1:
                return make_slice(name, devices, nodeSelector=here)
            case 2:
                choosers: list[Document] = [{"allNodes": True}, {"nodeName": node}, {"nodeSelector": here}]
                devices = [{**each, **rng.choice(choosers)} for each in devices]
                return make_slice(name, devices, perDeviceNodeSelection=True)
            case 3:
                # Several slices in a pool: whole, broken or half replaced, as it happens.
                generation = rng.choice([1, 1, 2])
                devices = [{**each, "name": f"{name}-{each['name']}"} for each in devices]
                return make_slice(name, devices, node=node, pool=f"pool-{node}", generation=generation, count=2)
            case 4:
                counters = [{"name": "memory", "counters": {"bytes": {"value": f"{rng.randrange(1, 4)}Gi"}}}]
                return make_slice(name, [], pool=f"parts-{node}", sharedCounters=counters, count=2, allNodes=True)
            case 5:
                for each in devices:
                    # What is taken of counters for a device that cannot be had after all is not given back.
                    each.pop("taints", None)
                    each.pop("allowMultipleAllocations", None)
                    used = {"bytes": {"value": f"{rng.randrange(1, 3)}Gi"}}
                    each["consumesCounters"] = [{"counterSet": "memory", "counters": used}]
                devices = [{**each, "name": f"{name}-{each['name']}"} for each in devices]
                return make_slice(name, devices, node=node, pool=f"parts-{node}", count=2)
        return make_slice(name, devices, node=node, pool=name)

    def _device(self, name: str) -> Document:
        rng = self.rng
        attributes: Document = {"model": rng.choice(MODELS), "serial": rng.randrange(3)}
        if rng.random() < 0.7:
            attributes["root"] = rng.choice(["x", "y"])
        more: Document = {}
        if rng.random() < 0.15:
            more["taints"] = [{"key": "broken", "effect": rng.choice(["NoSchedule", "NoExecute", "None"])}]
        if rng.random() < 0.2:
            more["allowMultipleAllocations"] = True
        return device(name, f"{rng.choice([10, 20, 40])}Gi", attributes, **more)

    def use(self) -> None:
        """Some claim gets what the plugin chooses for it."""
        pod, claims = self.pod()
        self.world.put(*claims)
        decision, state = self.world.decide(pod, self.rng.randrange(100))
        if decision.node is not None and self.rng.random() < 0.2:
            self.world.give_up(pod, decision)
        elif decision.node is not None:
            for number, chosen in state.allocations.items():
                claim = allocated(state.claims[number], chosen, pod)
                self.claims[claim.name] = claim
            self.world.finish(pod, state)
        for claim in claims:
            if claim.name not in self.claims:
                self.world.drop(claim)

    # Pods

    def pod(self) -> tuple[Pod, list[ResourceClaim]]:
        """A pod, and its claims."""
        serial = self.rng.randrange(10**9)
        claims = [self._claim(f"c{serial}-{number}") for number in range(self.rng.choice([1, 1, 2]))]
        return make_pod(f"p{serial}", *[claim.name for claim in claims]), claims

    def _claim(self, name: str) -> ResourceClaim:
        rng = self.rng
        requests = []
        for request in ("a", "b")[: rng.choice([1, 1, 2])]:
            if rng.random() < 0.25:
                alternatives = [self._ask(place) for place in ("x", "y", "z")[: rng.randrange(2, 4)]]
                requests.append(ask_first(request, *alternatives))
            else:
                requests.append(self._ask(request, admin=True))
        constraints: list[Document] = []
        exact = [each["name"] for each in requests if each.get("exactly", {}).get("allocationMode") == "ExactCount"]
        single = [each["name"] for each in requests if each.get("exactly", {}).get("count") == 1]
        if exact and rng.random() < 0.3:
            constraints.append({"requests": exact, "matchAttribute": f"{DRIVER}/{rng.choice(['root', 'model'])}"})
        if single and rng.random() < 0.2:
            constraints.append({"requests": single, "distinctAttribute": f"{DRIVER}/serial"})
        return make_claim(name, *requests, constraints=constraints)

    def _ask(self, name: str, *, admin: bool = False) -> Document:
        rng = self.rng
        more: Document = {}
        if rng.random() < 0.2:
            more["tolerations"] = [{"key": "broken", "operator": "Exists"}]
        if rng.random() < 0.2:
            more["capacity"] = {"requests": {"memory": f"{rng.choice([5, 10, 30])}Gi"}}
        if admin and rng.random() < 0.1:
            more["adminAccess"] = True
        expressions = rng.sample(SELECTORS, rng.choice([0, 0, 1]))
        count = rng.choice([1, 1, 1, 2, 0])
        return ask(name, *expressions, count=count, device_class=rng.choice(["gpu", "gpu", "large"]), **more)


def _in_zone(zones: list[str]) -> Document:
    return {"key": "zone", "operator": "In", "values": zones}


def plainly(life: Life, node: Node, claims: list[ResourceClaim]) -> Chosen | None:
    """What the plain search chooses."""
    wanted = [claim.spec.devices for claim in claims]
    slices = list(life.slices.values())
    return Trial(node, slices, life.classes, life.claims.values(), wanted).result()


def has_counters(life: Life, node: Node) -> bool:
    """Whether devices of the node may take more of counters than they have: refused ones keep it during a search."""
    view = view_of(node, life.slices.values())
    return any(offer.device.consumes_counters for offer in view.offers)


@pytest.mark.parametrize("seed", range(6))
def test_nodes_serve_claims_as_the_plain_search_says(seed: int) -> None:
    life = Life(seed)
    seen = {fragments.FITS: 0, fragments.CANNOT: 0, fragments.FAILED: 0}
    for _round in range(60):
        for _step in range(6):
            life.step()
        pod, claims = life.pod()
        life.world.put(*claims)
        answers = life.world.answers(pod)
        for name, node in life.nodes.items():
            if any(claim.spec.devices.constraints for claim in claims) and has_counters(life, node):
                continue
            code, score = answers[name]
            code = fragments.CANNOT if code == fragments.INVALID_POOLS else code
            seen[code] += 1
            try:
                expected = plainly(life, node, claims)
            except Mistake:
                assert code == fragments.FAILED, (name, claims)
                continue
            assert code == (fragments.CANNOT if expected is None else fragments.FITS), (name, claims)
            if expected is not None:
                assert score == score_of([each for claim in claims for each in claim.spec.devices.requests], expected)
                devices = [
                    (number, (each.driver, each.pool, each.device))
                    for number, allocation in chosen(life.world, pod, name).items()
                    for each in allocation.devices.results
                ]
                assert devices == [(number, offer.key) for number, _request, _want, offer in expected]
        life.world.drop(*claims)
    assert min(seen.values()) >= 5, seen


@pytest.mark.parametrize("seed", range(4))
def test_what_happened_before_changes_nothing(seed: int) -> None:
    life = Life(100 + seed)
    for _round in range(40):
        for _step in range(40):
            life.step()
        fresh = life.fresh()
        for _pod in range(4):
            pod, claims = life.pod()
            for world in (life.world, fresh):
                world.put(*claims)
            assert life.world.answers(pod) == fresh.answers(pod)
            for node, (code, _score) in fresh.answers(pod).items():
                if code == fragments.FITS:
                    assert chosen(life.world, pod, node) == chosen(fresh, pod, node)
            for world in (life.world, fresh):
                world.drop(*claims)


def chosen(world: World, pod: Pod, node: str) -> Any:
    """What the pod would get on a node."""
    ctx, info = world.context(), PodInfo(pod)
    world.plugin.pre_filter(ctx, info)
    world.plugin.filter_kernel(ctx, info)
    return world.plugin.allocate(ctx, info, node)
