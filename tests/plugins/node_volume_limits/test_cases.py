"""Public cases, and what the random clusters would hardly show."""

from __future__ import annotations

from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.framework.status import error, unschedulable
from kube_pyscheduler.objects.pod import Pod
from tests.builders import make_node, make_pod
from tests.clusters import Cluster
from tests.plugins.node_volume_limits.reference import EXCEEDED
from tests.storage import claim_volumes, make_claim, make_csi_node, make_driver, make_volume, put

DRIVER = "csi.example"


def bound_claims(cluster: Cluster, *names: str) -> None:
    for name in names:
        claim = make_claim(name, volume=f"pv-{name}")
        put(cluster.cache.listers, claim, make_volume(f"pv-{name}", claim=claim))


def user(name: str, *claims: str, node: str = "") -> Pod:
    return make_pod(name, node=node, volumes=claim_volumes(*claims))


def placed(cluster: Cluster, pods: list[Pod]) -> int:
    """How many of the pods find a node, each being assumed there."""
    count = 0
    for pod in pods:
        decision = cluster.schedule(pod)
        if decision.node is not None:
            cluster.cache.assume(PodInfo(pod), decision.node)
            count += 1
    return count


def test_bc_37_a_driver_that_must_be_registered_is_waited_for() -> None:
    cluster = Cluster([make_node("n1")])
    names = [f"c{number}" for number in range(10)]
    bound_claims(cluster, *names)
    put(cluster.cache.listers, make_driver(DRIVER, preventPodSchedulingIfMissing=True), make_csi_node("n1"))
    pods = [user(f"p-{name}", name) for name in names]
    assert placed(cluster, pods) == 0
    missing = unschedulable(f"{DRIVER} CSI driver is not installed on the node")
    assert cluster.refusals(pods[0]) == {"n1": missing.by("NodeVolumeLimits")}
    put(cluster.cache.listers, make_csi_node("n1", {DRIVER: 1}))
    assert placed(cluster, pods) == 1


def test_bc_37_a_driver_that_need_not_be_registered_has_no_limit_until_it_is() -> None:
    cluster = Cluster([make_node("n1")])
    names = [f"c{number}" for number in range(10)]
    bound_claims(cluster, *names)
    put(cluster.cache.listers, make_driver(DRIVER), make_csi_node("n1"))
    assert placed(cluster, [user(f"p-{name}", name) for name in names]) == 10


def test_bc_38_one_volume_of_several_pods_counts_once() -> None:
    cluster = Cluster([make_node("n1")])
    bound_claims(cluster, "v1", "v2", "v3", "v4")
    put(cluster.cache.listers, make_csi_node("n1", {DRIVER: 3}))
    for name, claim in (("a", "v1"), ("b", "v1"), ("c", "v2")):
        cluster.cache.set_pod(user(name, claim, node="n1"))
    assert placed(cluster, [user("d", "v3")]) == 1
    assert cluster.refusals(user("e", "v4")) == {"n1": unschedulable(EXCEEDED).by("NodeVolumeLimits")}
    assert placed(cluster, [user("f", "v3")]) == 1


def test_volumes_of_pods_that_cannot_be_told_fail_the_attempt() -> None:
    cluster = Cluster([make_node("n1"), make_node("n2")])
    bound_claims(cluster, "c", "p-e")
    ephemeral = [{"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]
    cluster.cache.set_pod(make_pod("p", node="n1", volumes=ephemeral))
    assert cluster.schedule(user("q", "c")).node is not None
    put(cluster.cache.listers, make_csi_node("n1", {DRIVER: 3}))
    problem = "PVC default/p-e was not created for pod default/p (pod is not owner)"
    text = f'running "NodeVolumeLimits" filter plugin: {problem}'
    assert cluster.schedule(user("q", "c")).status == error(text).by("NodeVolumeLimits")


def test_a_higher_priority_takes_the_place_of_a_volume_when_all_its_pods_go() -> None:
    cluster = Cluster([make_node("n1"), make_node("n2")])
    bound_claims(cluster, "c1", "c2", "c3", "c4")
    put(cluster.cache.listers, make_csi_node("n1", {DRIVER: 2}), make_csi_node("n2", {DRIVER: 0}))
    for name in ("c1", "c2"):
        cluster.cache.set_pod(user(f"p-{name}", name, node="n1"))
    cluster.cache.set_pod(user("shares", "c2", node="n1"))
    decision = cluster.schedule(make_pod("high", priority=1, volumes=claim_volumes("c3")))
    assert decision.post_filter is not None
    assert decision.post_filter.nominated == "n1"
    assert [victim.name for victim in decision.post_filter.victims] == ["p-c2", "shares"]
