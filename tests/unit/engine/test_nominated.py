"""Nominated pods: they count on their node, for pods that may not take their place, while that node is judged."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import numpy as np
import pytest

from kube_pyscheduler.columns.node_table import NodeTable
from kube_pyscheduler.columns.pod_info import PodInfo
from kube_pyscheduler.columns.what_if import charges_of
from kube_pyscheduler.engine.nominated import NominatedPods
from kube_pyscheduler.framework.interfaces import CycleContext, Filter, PreFilter, PreFilterResult
from kube_pyscheduler.framework.status import Code, Status, error, unschedulable
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.scheduling_queue.nominator import Nominator
from tests.builders import make_info, make_node, make_pod
from tests.clusters import Cluster

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


def anti_affinity(app: str, key: str = HOST) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def near(app: str) -> dict[str, Any]:
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


@pytest.fixture
def cluster() -> Cluster:
    return Cluster([make_node("n0", labels={ZONE: "x"}), make_node("n1", labels={ZONE: "x"})])


@pytest.mark.parametrize(("priority", "nodes"), [(4, {"n1"}), (5, {"n1"}), (6, {"n0", "n1"})])
def test_a_promise_counts_for_pods_that_are_not_more_important(
    cluster: Cluster, priority: int, nodes: set[str]
) -> None:
    cluster.nominate(make_pod("promised", priority=5, requests={"cpu": "3"}), "n0")
    pod = make_pod(priority=priority, requests={"cpu": "2"})
    assert cluster.fit(pod) == nodes
    assert cluster.schedule(pod).feasible == len(nodes)


def test_the_refusal_says_what_is_short_with_the_promise(cluster: Cluster) -> None:
    cluster.nominate(make_pod("promised", requests={"cpu": "3", "memory": "7Gi"}), "n0")
    pod = make_pod(requests={"cpu": "2", "memory": "2Gi"})
    assert cluster.refusals(pod) == {
        "n0": Status(Code.UNSCHEDULABLE, ("Insufficient cpu", "Insufficient memory"), "NodeResourcesFit")
    }


def test_a_pods_own_promise_does_not_count_against_it(cluster: Cluster) -> None:
    pod = make_pod("promised", priority=5, requests={"cpu": "3"})
    cluster.nominate(pod, "n0")
    cluster.nominate(make_pod("other", priority=5, requests={"cpu": "1"}), "n0")
    assert cluster.fit(pod) == {"n0", "n1"}
    assert cluster.schedule(pod).node == "n0"
    cluster.nominate(make_pod("third", priority=5, requests={"cpu": "1"}), "n0")
    assert cluster.fit(pod) == {"n1"}


def test_a_promise_counts_on_its_node_alone(cluster: Cluster) -> None:
    promised = make_pod("promised", labels={"app": "a"}, affinity=anti_affinity("b", ZONE))
    cluster.nominate(promised, "n0")
    assert cluster.fit(make_pod(affinity=anti_affinity("a"))) == {"n1"}
    # Its domain is the zone of both nodes, but it is there only while its own is judged.
    assert cluster.fit(make_pod(affinity=anti_affinity("a", ZONE))) == {"n1"}


def test_a_node_must_let_the_pod_pass_without_the_promise_too(cluster: Cluster) -> None:
    cluster.nominate(make_pod("promised", labels={"app": "a"}), "n0")
    cluster.cache.set_pod(make_pod("elsewhere", node="n1", labels={"app": "a"}))
    pod = make_pod(affinity=near("a"))
    assert cluster.fit(pod) == {"n1"}
    assert cluster.refusals(pod)["n0"].reasons == ("node(s) didn't match pod affinity rules",)


def test_host_ports_are_promised_too(cluster: Cluster) -> None:
    containers = [{"name": "c", "image": "app:1", "ports": [{"hostPort": 80, "protocol": "TCP"}]}]
    cluster.nominate(make_pod("promised", containers=containers), "n0")
    pod = make_pod(containers=containers)
    assert cluster.fit(pod) == {"n1"}
    cluster.nominate(pod, "n1")
    assert cluster.fit(pod) == {"n1"}
    assert cluster.cache.table.host_ports.rows_using("TCP", 80) == {}


def test_a_promise_counts_from_the_moment_it_is_made_and_no_longer_than_it_holds(cluster: Cluster) -> None:
    pod, promised = make_pod(requests={"cpu": "2"}), make_pod("promised", requests={"cpu": "3"})
    for _ in range(2):
        assert cluster.fit(pod) == {"n0", "n1"}
        cluster.nominate(promised, "n0")
        assert cluster.fit(pod) == {"n1"}
        cluster.nominate(promised, "n1")
        assert cluster.fit(pod) == {"n0"}
        cluster.nominate(promised, "")


def test_a_promise_outlives_its_node(cluster: Cluster) -> None:
    pod = make_pod(requests={"cpu": "2"})
    cluster.nominate(make_pod("promised", requests={"cpu": "3"}), "n0")
    assert cluster.fit(pod) == {"n1"}
    cluster.cache.remove_node(make_node("n0"))
    cluster.cache.set_node(make_node("n2"))
    assert cluster.fit(pod) == {"n1", "n2"}
    cluster.cache.set_node(make_node("n0"))
    assert cluster.fit(pod) == {"n1", "n2"}


# The pod's own promise is tried first


def test_the_promised_node_is_taken_without_a_look_at_the_others(cluster: Cluster) -> None:
    cluster.cache.set_pod(make_pod("busy", node="n0", requests={"cpu": "3"}))
    pod = make_pod("promised", requests={"cpu": "1"}, status={"nominatedNodeName": "n0"})
    decision = cluster.schedule(pod)
    assert (decision.node, decision.evaluated) == ("n0", 1)
    assert cluster.schedule(make_pod("free", requests={"cpu": "1"})).node == "n1"


@pytest.mark.parametrize("name", ["gone", "n0"])
def test_a_promised_node_that_is_no_use_is_one_of_many(cluster: Cluster, name: str) -> None:
    cluster.cache.set_pod(make_pod("busy", node="n0", requests={"cpu": "4"}))
    assert cluster.schedule(make_pod(status={"nominatedNodeName": name})).node == "n1"


def only_on(*nodes: str) -> dict[str, Any]:
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]} for node in nodes]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def test_outside_the_nodes_that_pre_filter_leaves_a_refusal_is_told_beside_the_others(cluster: Cluster) -> None:
    for node in ("n0", "n1"):
        cluster.cache.set_pod(make_pod(f"busy-{node}", node=node, requests={"cpu": "4"}))
    cluster.cache.set_node(make_node("n2"))
    pod = make_pod(affinity=only_on("n1"), status={"nominatedNodeName": "n0"})
    decision = cluster.schedule(pod)
    assert decision.diagnosis is not None
    assert decision.diagnosis.message().startswith(
        "0/3 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector, "
        "1 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )


class Allowing(PreFilter):
    """PreFilter that leaves one node."""

    name = "Allowing"

    def pre_filter(self, ctx: CycleContext, pod: PodInfo) -> PreFilterResult:
        return PreFilterResult(frozenset({"n1"}))


class NoMoreThanTwo(Filter):
    """In the easy form: two pods a node, and an error on nodes with three."""

    name = "NoMoreThanTwo"

    def filter(self, ctx: CycleContext, pod: Pod, node: Any) -> Status | None:
        if len(node.pods) > 2:
            return error("too many to count")
        return unschedulable(f"{len(node.pods)} pods") if len(node.pods) == 2 else None


def test_easy_filters_see_the_promised_pods(cluster: Cluster) -> None:
    cluster.add_filter(NoMoreThanTwo())
    cluster.cache.set_pod(make_pod("there", node="n0"))
    cluster.nominate(make_pod("promised"), "n0")
    assert cluster.fit(make_pod("more")) == {"n1"}
    assert cluster.refusals(make_pod("more"))["n0"] == Status(Code.UNSCHEDULABLE, ("2 pods",), "NoMoreThanTwo")
    assert len(cluster.cache.table.node_info(0).pods) == 1


def test_an_error_with_the_promised_pods_fails_the_attempt(cluster: Cluster) -> None:
    cluster.add_filter(NoMoreThanTwo())
    cluster.cache.set_pod(make_pod("there", node="n0"))
    for number in range(2):
        cluster.nominate(make_pod(f"promised{number}"), "n0")
    status = cluster.schedule(make_pod("more")).status
    assert status.code is Code.ERROR
    assert status.message == 'running "NoMoreThanTwo" filter plugin: too many to count'


def test_an_error_without_the_promised_pods_does_not_matter_where_they_refuse(cluster: Cluster) -> None:
    cluster.add_filter(NoMoreThanTwo())
    for number in range(3):
        cluster.cache.set_pod(make_pod(f"there{number}", node="n0"))
    assert cluster.schedule(make_pod("more")).status.code is Code.ERROR
    cluster.nominate(make_pod("promised", requests={"cpu": "4"}), "n0")
    assert cluster.schedule(make_pod("more")).node == "n1"


def test_the_promised_node_is_tried_even_if_pre_filter_does_not_allow_it(cluster: Cluster) -> None:
    cluster.add_pre_filter(Allowing())
    assert cluster.schedule(make_pod()).node == "n1"
    assert cluster.schedule(make_pod(status={"nominatedNodeName": "n0"})).node == "n0"


# What is kept


def random_guest(rng: random.Random, number: int) -> PodInfo:
    ports = [{"hostPort": rng.choice([80, 81]), "protocol": "TCP"}] if rng.random() < 0.3 else []
    requests = {rng.choice(["cpu", "memory", f"example.com/r{number % 5}"]): "3"}
    containers = [{"name": "c", "image": "app:1", "resources": {"requests": requests}, "ports": ports}]
    return make_info(f"guest{number}", priority=rng.randrange(4), containers=containers)


def test_kept_promises_are_those_read_anew_after_thousands_of_changes() -> None:
    rng = random.Random(5)
    table, nominator = NodeTable(), Nominator()
    kept = NominatedPods(table, nominator)
    names = [f"n{number}" for number in range(8)]
    promised: dict[str, PodInfo] = {}
    for step in range(2500):
        choice, name = rng.random(), rng.choice(names)
        if choice < 0.3:
            info = random_guest(rng, step)
            promised[info.uid] = info
            nominator.nominate(info, name)
        elif choice < 0.5 and promised:
            uid = rng.choice(list(promised))
            nominator.nominate(promised.pop(uid), "")
        elif choice < 0.7:
            table.set_node(make_node(name))
        elif choice < 0.8:
            table.remove_node(name)
        asking = rng.choice([*promised.values(), make_info("asking", priority=rng.randrange(5))])
        guests, anew = kept.beside(asking), NominatedPods(table, nominator).beside(asking)
        assert (guests is None) == (anew is None)
        if guests is None or anew is None:
            continue
        expected = {
            row: [
                info
                for info in nominator.nominated_on(table.names[row])
                if info.pod.priority >= asking.pod.priority and info.uid != asking.uid
            ]
            for row in guests.rows.tolist()
        }
        assert sorted(guests.rows.tolist()) == sorted(anew.rows.tolist())
        assert {row: list(change.added) for row, change in guests.changes.items()} == expected
        for row, infos in expected.items():
            here, plain = guests.charges_on(np.array([row])), charges_of([(row, infos)], table.resources)
            assert np.array_equal(here.requested, plain.requested[: len(here.requested)])
            assert not plain.requested[len(here.requested) :].any()
            assert np.array_equal(here.non_zero, plain.non_zero)
            assert np.array_equal(here.count, plain.count)
            assert sorted(here.ports) == sorted(plain.ports)


def test_promises_are_read_again_only_when_something_about_them_changed(cluster: Cluster) -> None:
    class Counting(Nominator):
        reads = 0

        def nodes(self) -> list[str]:
            self.reads += 1
            return super().nodes()

    nominator = Counting()
    table = cluster.cache.table
    nominated = NominatedPods(table, nominator)
    nominator.nominate(make_info("a", priority=3), "n0")
    for priority in (0, 1, 2, 3, 4):
        found = nominated.beside(make_info("pod", priority=priority))
        assert (found is None) == (priority > 3)
    table.add_pod(make_info("p", node="n0"), "n0")
    table.set_node(make_node("n1", labels={"new": "label"}))
    nominated.beside(make_info("pod"))
    assert nominator.reads == 1
    table.set_node(msgspec.structs.replace(make_node("n0")))
    nominated.beside(make_info("pod"))
    assert nominator.reads == 2
