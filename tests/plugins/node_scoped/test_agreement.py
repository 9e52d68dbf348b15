"""The kept, repaired columns agree with the plain twins, whatever happens to the cluster."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from kube_pyscheduler.objects.node import Node
from kube_pyscheduler.objects.pod import Pod
from tests.builders import make_node, make_pod
from tests.clusters import Cluster
from tests.plugins.node_scoped import reference

ONLY_NODE_SCOPED = {
    "plugins": {
        "multiPoint": {
            "disabled": [{"name": "*"}],
            "enabled": [
                {"name": "PrioritySort"},
                {"name": "NodeUnschedulable"},
                {"name": "NodeName"},
                {"name": "TaintToleration", "weight": 3},
                {"name": "NodeAffinity", "weight": 2},
                {"name": "NodePorts"},
                {"name": "NodeResourcesFit"},
                {"name": "NodeResourcesBalancedAllocation"},
                {"name": "ImageLocality"},
                {"name": "DefaultBinder"},
            ],
        }
    }
}
NODE_NAMES = [f"n{number}" for number in range(12)]
TAINTS = [
    {"key": "a", "value": "1", "effect": "NoSchedule"},
    {"key": "b", "effect": "PreferNoSchedule"},
    {"key": "c", "value": "x", "effect": "PreferNoSchedule"},
    {"key": "d", "effect": "NoExecute"},
]
IMAGES = [("app:1", 300_000_000), ("db:latest", 900_000_000), ("tool:2", 30_000_000)]


def random_node(rng: random.Random, name: str) -> Node:
    images = [{"names": [image], "sizeBytes": size} for image, size in IMAGES if rng.random() < 0.4]
    labels = {"disk": rng.choice(["ssd", "hdd"]), "gen": str(rng.randrange(4))}
    if rng.random() < 0.3:
        del labels["disk"]
    return make_node(
        name,
        labels=labels,
        allocatable={
            "cpu": rng.choice(["2", "3500m", "8"]),
            "memory": rng.choice(["4Gi", "8Gi", "16000M"]),
            "pods": rng.choice(["3", "110"]),
            "example.com/gpu": rng.choice(["0", "4"]),
        },
        taints=rng.sample(TAINTS, rng.choice([0, 0, 0, 1, 2])),
        unschedulable=rng.random() < 0.1,
        images=images,
    )


def random_spec(rng: random.Random) -> dict[str, Any]:
    requests: dict[str, str] = {}
    for name, amounts in (
        ("cpu", ["0", "100m", "1", "1500m"]),
        ("memory", ["64Mi", "1Gi", "3000M"]),
        ("example.com/gpu", ["1", "2"]),
    ):
        if rng.random() < (0.2 if "gpu" in name else 0.75):
            requests[name] = rng.choice(amounts)
    container: dict[str, Any] = {
        "name": "c",
        "image": rng.choice(["app:1", "db", "other"]),
        "resources": {"requests": requests},
    }
    if rng.random() < 0.3:
        port = {"hostPort": rng.choice([80, 81]), "hostIP": rng.choice(["", "10.0.0.1", "10.0.0.2"])}
        container["ports"] = [{**port, "protocol": rng.choice(["TCP", "UDP"])}]
    spec: dict[str, Any] = {"containers": [container]}
    if rng.random() < 0.3:
        spec["initContainers"] = [
            {
                "name": "i",
                "image": "tool:2",
                "resources": {"requests": {"cpu": "2"}},
                **rng.choice([{}, {"restartPolicy": "Always"}]),
            }
        ]
    if rng.random() < 0.4:
        spec["tolerations"] = [{"key": rng.choice("abcd"), "operator": "Exists"} for _ in range(rng.randrange(1, 3))]
    if rng.random() < 0.2:
        spec["tolerations"] = [{"operator": "Exists"}]
    if rng.random() < 0.2:
        spec["nodeSelector"] = {"disk": "ssd"}
    if rng.random() < 0.3:
        expression = rng.choice(
            [
                {"key": "gen", "operator": "Gt", "values": ["1"]},
                {"key": "disk", "operator": "DoesNotExist"},
                {"key": "disk", "operator": "NotIn", "values": ["hdd"]},
            ]
        )
        preferred = {"weight": rng.randrange(1, 100), "preference": {"matchExpressions": [expression]}}
        spec["affinity"] = {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [preferred],
                **(
                    {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [{"matchExpressions": [expression]}]
                        }
                    }
                    if rng.random() < 0.4
                    else {}
                ),
            }
        }
    return spec


def resized(pod: Pod, like: Pod) -> Pod:
    """The pod with the requests of another one."""
    containers = [
        msgspec.structs.replace(own, resources=other.resources)
        for own, other in zip(pod.spec.containers, like.spec.containers, strict=True)
    ]
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, containers=tuple(containers)))


class Mirror:
    """The same events into a real cluster and into plain dictionaries."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.cluster = Cluster(profile=ONLY_NODE_SCOPED)
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.serial = 0

    def step(self) -> None:
        rng = self.rng
        match rng.choice(["node", "node", "lose", "pod", "pod", "pod", "resize", "gone"]):
            case "node":
                node = random_node(rng, rng.choice(NODE_NAMES))
                self.nodes[node.name] = node
                self.cluster.cache.set_node(node)
            case "lose" if self.nodes:
                node = self.nodes.pop(rng.choice(sorted(self.nodes)))
                self.cluster.cache.remove_node(node)
            case "pod":
                self.serial += 1
                priority = rng.choice([0, 0, 10])
                pod = make_pod(f"p{self.serial}", node=rng.choice(NODE_NAMES), priority=priority, **random_spec(rng))
                self.pods[pod.uid] = pod
                self.cluster.cache.set_pod(pod)
            case "resize" if self.pods:
                pod = resized(self.pods[rng.choice(sorted(self.pods))], make_pod(**random_spec(rng)))
                self.pods[pod.uid] = pod
                self.cluster.cache.set_pod(pod)
            case "gone" if self.pods:
                uid = rng.choice(sorted(self.pods))
                del self.pods[uid]
                self.cluster.cache.remove_pod(uid)

    def on(self) -> dict[str, list[Pod]]:
        pods: dict[str, list[Pod]] = {}
        for pod in self.pods.values():
            pods.setdefault(pod.spec.node_name, []).append(pod)
        return pods

    def check(self, pod: Pod) -> None:
        pods = self.on()
        expected = {name: reference.refusal(pod, node, pods.get(name, [])) for name, node in self.nodes.items()}
        refusals = self.cluster.refusals(pod)
        got = {name: (status.plugin, sorted(status.reasons)) for name, status in refusals.items()}
        assert got == {name: answer for name, answer in expected.items() if answer is not None}
        feasible = [self.nodes[name] for name, answer in expected.items() if answer is None]
        if feasible:
            wanted = reference.totals(pod, feasible, list(self.nodes.values()), pods)
            assert self.cluster.totals(pod) == wanted


@pytest.mark.parametrize("seed", range(4))
def test_columns_agree_with_the_plain_twins_through_random_events(seed: int) -> None:
    rng = random.Random(seed)
    mirror = Mirror(rng)
    templates = [make_pod("incoming", **random_spec(rng)) for _ in range(8)]
    for step in range(600):
        mirror.step()
        if step % 4 == 0:
            mirror.check(rng.choice(templates))


def test_kept_answers_equal_fresh_ones_after_thousands_of_events() -> None:
    rng = random.Random(99)
    mirror = Mirror(rng)
    templates = [make_pod("incoming", **random_spec(rng)) for _ in range(6)]
    for _ in range(30):
        for _ in range(150):
            mirror.step()
        fresh = Cluster(mirror.nodes.values(), mirror.pods.values(), ONLY_NODE_SCOPED)
        for pod in templates:
            assert mirror.cluster.refusals(pod) == fresh.refusals(pod)
            if fresh.fit(pod):
                assert mirror.cluster.totals(pod) == fresh.totals(pod)
