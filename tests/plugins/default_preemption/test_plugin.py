"""Who may preempt, where it is tried, and what is said of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from kube_pyscheduler.config.args import DefaultPreemptionArgs
from kube_pyscheduler.framework.cluster_event import Action, ClusterEvent, QueueingHint, Resource
from kube_pyscheduler.framework.interfaces import PostFilterResult
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.framework.status import Code
from kube_pyscheduler.objects import kinds
from kube_pyscheduler.objects.pod import Pod
from kube_pyscheduler.plugins.default_preemption.budgets import Budgets
from kube_pyscheduler.plugins.default_preemption.candidates import Candidate, Shortlist, best
from kube_pyscheduler.plugins.default_preemption.plugin import DefaultPreemption
from tests.builders import make_budget, make_info, make_node, make_pod
from tests.clusters import Cluster

WHOLE = {"cpu": "4"}


def preempt(cluster: Cluster, pod: Pod, seed: int = 0) -> tuple[str | None, set[str]]:
    """The node to promise, and the names of the victims."""
    decision = cluster.schedule(pod, seed)
    assert decision.node is None
    result = decision.post_filter or PostFilterResult()
    return result.nominated, {victim.name for victim in result.victims}


def preemption_message(cluster: Cluster, pod: Pod) -> str:
    _before, marker, text = cluster.schedule(pod).status.message.partition("preemption: ")
    return text if marker else ""


def full_cluster(*priorities: int) -> Cluster:
    """One node a priority, each filled by one pod."""
    nodes = [make_node(f"n{number}") for number in range(len(priorities))]
    pods = [
        make_pod(f"p{number}", node=f"n{number}", priority=priority, requests=WHOLE)
        for number, priority in enumerate(priorities)
    ]
    return Cluster(nodes, pods)


def preempted(name: str, node: str, **more: Any) -> Pod:
    """A victim on its way out."""
    target = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    return make_pod(
        name,
        node=node,
        metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"},
        status={"conditions": [target]},
        **more,
    )


# Eligibility


def test_the_least_important_pod_makes_room() -> None:
    assert preempt(full_cluster(5, 3, 4), make_pod("high", priority=10, requests=WHOLE)) == ("n1", {"p1"})


def test_success_adds_nothing_to_the_message() -> None:
    message = full_cluster(0).schedule(make_pod(priority=1, requests=WHOLE)).status.message
    assert message == "0/1 nodes are available: 1 Insufficient cpu."


def test_pods_of_the_same_priority_stay() -> None:
    cluster = full_cluster(5, 7)
    pod = make_pod(priority=5, requests=WHOLE)
    assert preempt(cluster, pod) == ("", set())
    assert preemption_message(cluster, pod) == (
        "0/2 nodes are available: 2 No preemption victims found for incoming pod."
    )


def test_a_policy_of_never_is_respected() -> None:
    cluster = full_cluster(0)
    pod = make_pod(priority=5, requests=WHOLE, preemptionPolicy="Never")
    assert preempt(cluster, pod) == (None, set())
    assert preemption_message(cluster, pod) == "not eligible due to preemptionPolicy=Never."


def test_a_pod_waits_for_victims_that_are_on_their_way_out() -> None:
    cluster = full_cluster(0, 0)
    cluster.cache.set_pod(preempted("p0", "n0", requests=WHOLE, uid="uid-default-p0"))
    pod = make_pod("high", priority=5, requests=WHOLE)
    cluster.nominate(pod, "n0")
    assert preempt(cluster, pod) == (None, set())
    assert preemption_message(cluster, pod) == "not eligible due to a terminating pod on the nominated node."


@pytest.mark.parametrize(
    "leaving",
    [
        make_pod("x", node="n0", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        preempted("x", "n0", priority=5),
        preempted("x", "n1"),
    ],
    ids=["deleted by somebody else", "no less important", "on another node"],
)
def test_other_pods_that_leave_do_not_hold_it_up(leaving: Pod) -> None:
    cluster = full_cluster(0, 1)
    cluster.cache.set_pod(leaving)
    pod = make_pod("high", priority=5, requests=WHOLE)
    cluster.nominate(pod, "n0")
    assert preempt(cluster, pod)[0] in ("n0", "n1")


def test_bc_23_a_nominated_node_that_became_unusable_is_given_up() -> None:
    cluster = full_cluster(0, 3)
    cluster.cache.set_pod(preempted("p0", "n0", requests=WHOLE, uid="uid-default-p0"))
    pod = make_pod("high", priority=5, requests=WHOLE)
    cluster.nominate(pod, "n0")
    cluster.cache.set_node(make_node("n0", taints=[{"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}]))
    assert preempt(cluster, pod) == ("n1", {"p1"})


def test_the_schedulers_own_word_on_a_promise_is_newer_than_the_status() -> None:
    cluster = full_cluster(0, 3)
    cluster.cache.set_pod(preempted("p0", "n0", requests=WHOLE, uid="uid-default-p0"))
    pod = make_pod("high", priority=5, requests=WHOLE, status={"nominatedNodeName": "n0"})
    assert preempt(cluster, pod) == (None, set())
    cluster.nominate(pod, "")
    assert preempt(cluster, pod)[0] == "n0"


# Where it is tried


def test_only_nodes_that_a_pods_end_can_help_are_tried() -> None:
    cluster = full_cluster(0, 0)
    cluster.cache.set_node(make_node("n0", taints=[{"key": "a", "effect": "NoSchedule"}]))
    pod = make_pod(priority=5, requests=WHOLE)
    assert preempt(cluster, pod) == ("n1", {"p1"})
    too_big = make_pod(priority=5, requests={"cpu": "5"})
    assert preempt(cluster, too_big) == ("", set())
    assert preemption_message(cluster, too_big) == (
        "0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )


def test_the_message_counts_nodes_by_what_they_answered() -> None:
    cluster = full_cluster(0, 9, 0)
    cluster.cache.set_node(make_node("n2", taints=[{"key": "a", "effect": "NoSchedule"}]))
    cluster.cache.set_pod(make_pod("important", node="n0", priority=9, requests={"cpu": "1"}))
    assert preemption_message(cluster, make_pod(priority=5, requests=WHOLE)) == (
        "0/3 nodes are available: 1 Insufficient cpu, 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )


@pytest.mark.parametrize(
    ("nodes", "percentage", "absolute", "wanted"),
    [
        (5, 10, 100, 5),
        (2000, 10, 100, 200),
        (1999, 10, 100, 199),
        (600, 10, 100, 100),
        (50, 0, 1, 1),
        (50, 100, 0, 50),
        (9, 10, 0, 0),
    ],
)
def test_enough_candidates(nodes: int, percentage: int, absolute: int, wanted: int) -> None:
    plugin = DefaultPreemption(DefaultPreemptionArgs(percentage, absolute))
    assert plugin._wanted(nodes) == wanted


def test_the_search_starts_anywhere_and_ends_when_there_are_enough() -> None:
    args = {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 1}
    config = {"pluginConfig": [{"name": "DefaultPreemption", "args": args}]}
    nodes = [make_node(f"n{number}") for number in range(6)]
    pods = [make_pod(f"p{number}", node=f"n{number}", requests=WHOLE) for number in range(6)]
    cluster = Cluster(nodes, pods, config)
    pod = make_pod(priority=5, requests=WHOLE)
    assert {preempt(cluster, pod, seed)[0] for seed in range(60)} == {node.name for node in nodes}
    assert preempt(cluster, pod, 7) == preempt(cluster, pod, 7)


def test_the_search_goes_on_behind_nodes_that_were_tried_in_vain() -> None:
    args = {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 1}
    config = {"pluginConfig": [{"name": "DefaultPreemption", "args": args}]}
    pods = [make_pod(f"p{n}", node=f"n{n}", priority=0 if n == 11 else 9, requests=WHOLE) for n in range(12)]
    cluster = Cluster([make_node(f"n{number}") for number in range(12)], pods, config)
    for seed in range(12):
        assert preempt(cluster, make_pod(priority=5, requests=WHOLE), seed) == ("n11", {"p11"})


def test_where_no_candidate_is_wanted_none_is_found() -> None:
    """A share of a few nodes may be none, as upstream."""
    args = {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 0}
    config = {"pluginConfig": [{"name": "DefaultPreemption", "args": args}]}
    cluster = Cluster([make_node("n0")], [make_pod("p", node="n0", requests=WHOLE)], config)
    pod = make_pod(priority=5, requests=WHOLE)
    assert preempt(cluster, pod) == ("", set())
    assert preemption_message(cluster, pod) == "0/1 nodes are available: 1 Preemption is not helpful for scheduling."


def test_preemption_may_be_disabled() -> None:
    config = {"plugins": {"postFilter": {"disabled": [{"name": "DefaultPreemption"}]}}}
    cluster = Cluster([make_node("n0")], [make_pod("p", node="n0", requests=WHOLE)], config)
    pod = make_pod(priority=5, requests=WHOLE)
    assert preempt(cluster, pod)[1] == set()
    assert "preemption" not in cluster.schedule(pod).status.message


# Victims


def test_no_more_pods_go_than_must() -> None:
    sizes = {"a": ("1", 1), "b": ("2", 3), "c": ("1", 2)}
    pods = [make_pod(name, node="n0", priority=p, requests={"cpu": cpu}) for name, (cpu, p) in sizes.items()]
    cluster = Cluster([make_node("n0")], pods)
    assert preempt(cluster, make_pod(priority=9, requests={"cpu": "1"})) == ("n0", {"a"})
    assert preempt(cluster, make_pod(priority=9, requests={"cpu": "2"})) == ("n0", {"a", "c"})
    assert preempt(cluster, make_pod(priority=3, requests={"cpu": "2"})) == ("n0", {"a", "c"})
    assert preempt(cluster, make_pod(priority=2, requests={"cpu": "2"})) == ("", set())


def test_of_equals_the_one_that_runs_shortest_goes() -> None:
    pods = [
        make_pod(name, node="n0", requests={"cpu": "2"}, status={"startTime": start} if start else {})
        for name, start in (("old", "2026-01-01T00:00:00Z"), ("young", "2026-01-02T00:00:00Z"))
    ]
    cluster = Cluster([make_node("n0")], pods)
    pod = make_pod(priority=9, requests={"cpu": "2"})
    assert preempt(cluster, pod) == ("n0", {"young"})
    cluster.cache.remove_pod("uid-default-young")
    cluster.cache.set_pod(make_pod("waiting", node="n0", requests={"cpu": "2"}))
    assert preempt(cluster, pod) == ("n0", {"waiting"})


def test_victims_come_in_order_of_importance() -> None:
    pods = [
        make_pod(f"p{priority}", node="n0", priority=priority, requests={"cpu": "1"}, labels={"app": "x"})
        for priority in (2, 4, 1, 3)
    ]
    cluster = Cluster([make_node("n0")], pods)
    cluster.cache.listers.pod_disruption_budgets.put(make_budget("keep", {"matchLabels": {"app": "x"}}, allowed=2))
    decision = cluster.schedule(make_pod(priority=9, requests=WHOLE))
    assert decision.post_filter is not None
    assert [victim.name for victim in decision.post_filter.victims] == ["p4", "p3", "p2", "p1"]


def test_a_host_port_can_be_freed() -> None:
    container = {"name": "c", "image": "app:1", "ports": [{"hostPort": 80, "protocol": "TCP"}]}
    pods = [
        make_pod("holder", node="n0", priority=3, containers=[container]),
        make_pod("bystander", node="n0", priority=1),
    ]
    cluster = Cluster([make_node("n0")], pods)
    assert preempt(cluster, make_pod(priority=9, containers=[container])) == ("n0", {"holder"})


def test_a_host_port_with_two_holders_is_thought_free_once_one_of_them_is_gone() -> None:
    """Upstream keeps ports of a node as a set. No scheduler puts two holders on one node."""
    container = {"name": "c", "image": "app:1", "ports": [{"hostPort": 80, "protocol": "TCP"}]}
    pods = [
        make_pod(name, node="n0", priority=rank, containers=[container]) for name, rank in (("low", 3), ("high", 9))
    ]
    cluster = Cluster([make_node("n0")], pods)
    pod = make_pod(priority=9, containers=[container])
    assert preempt(cluster, pod) == ("n0", {"low"})
    assert cluster.refusals(pod)["n0"].plugin == "NodePorts"


def test_affinity_to_the_victims_makes_a_node_useless() -> None:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    cluster = full_cluster(0)
    cluster.cache.set_pod(make_pod("web", node="n0", labels={"app": "web"}, requests={"cpu": "0"}))
    wants = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pod = make_pod(priority=9, requests=WHOLE, affinity=wants)
    assert preempt(cluster, pod) == ("", set())
    assert preemption_message(cluster, pod) == "0/1 nodes are available: 1 node(s) didn't match pod affinity rules."


def test_a_promise_to_an_equal_leaves_no_room() -> None:
    cluster = full_cluster(0, 1)
    cluster.nominate(make_pod("equal", priority=9, requests=WHOLE), "n0")
    assert preempt(cluster, make_pod("high", priority=9, requests=WHOLE)) == ("n1", {"p1"})
    assert preempt(cluster, make_pod("higher", priority=10, requests=WHOLE)) == ("n0", {"p0"})


def test_bc_76_a_claim_for_one_pod_can_be_taken_from_a_lesser_one() -> None:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "single"}}]
    others = [{"name": name} for name in ("VolumeBinding", "VolumeZone", "NodeVolumeLimits")]
    config = {"plugins": {"multiPoint": {"disabled": others}}}
    cluster = Cluster([make_node("n1"), make_node("n2")], [make_pod("a", node="n1", volumes=volumes)], config)
    claim = {"metadata": {"name": "single", "namespace": "default"}, "spec": {"accessModes": ["ReadWriteOncePod"]}}
    decoder = kinds.PERSISTENT_VOLUME_CLAIM.decoder
    cluster.cache.listers.persistent_volume_claims.put(decoder.decode(msgspec.json.encode(claim)))
    low, high = make_pod("b", volumes=volumes), make_pod("c", priority=100, volumes=volumes)
    refusals = cluster.refusals(low)
    assert {status.code for status in refusals.values()} == {Code.UNSCHEDULABLE}
    assert set(refusals) == {"n1", "n2"}
    assert preempt(cluster, low) == ("", set())
    assert preempt(cluster, high) == ("n1", {"a"})


# Budgets


def test_bc_19_as_many_violations_then_the_lesser_of_the_most_important_victims() -> None:
    pods = [
        make_pod("high", node="w1", priority=1000, requests={"cpu": "2"}),
        make_pod("low", node="w1", labels={"app": "x"}, requests={"cpu": "2"}),
        make_pod("mid", node="w2", priority=100, labels={"app": "x"}, requests=WHOLE),
    ]
    cluster = Cluster([make_node("w1"), make_node("w2")], pods)
    cluster.cache.listers.pod_disruption_budgets.put(make_budget("none", {"matchLabels": {"app": "x"}}))
    assert preempt(cluster, make_pod(priority=10000, requests=WHOLE)) == ("w2", {"mid"})


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
@pytest.mark.parametrize(("disrupted", "violations"), [(["b"], 0), ([], 1)])
def test_bc_20_a_disruption_that_is_counted_already_is_not_counted_again(
    order: Sequence[str], disrupted: list[str], violations: int
) -> None:
    budget = make_budget("budget", {"matchLabels": {"app": "x"}}, allowed=1, disrupted=disrupted)
    victims = [make_info(name, labels={"app": "x"}) for name in order]
    assert sum(Budgets([budget]).violated_by(victims)) == violations


@pytest.mark.parametrize(
    ("selector", "labels"),
    [
        (None, {"app": "x"}),
        ({}, {"app": "x"}),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["y"]}]}, {}),
        ({"matchExpressions": [{"key": "app", "operator": "Like", "values": ["x"]}]}, {"app": "x"}),
        ({"matchLabels": {"app": "y"}}, {"app": "x"}),
    ],
    ids=["no selector", "empty selector", "no labels", "nonsense", "no match"],
)
def test_budgets_that_protect_nobody(selector: dict[str, Any] | None, labels: dict[str, str]) -> None:
    assert Budgets([make_budget("b", selector)]).violated_by([make_info(labels=labels)]) == [False]


def test_a_budget_is_for_its_namespace() -> None:
    budget = make_budget("b", {"matchLabels": {"app": "x"}}, namespace="other")
    victims = [make_info(namespace=namespace, labels={"app": "x"}) for namespace in ("default", "other")]
    assert Budgets([budget]).violated_by(victims) == [False, True]


def test_a_victim_uses_up_all_budgets_that_cover_it() -> None:
    budgets = [make_budget("one", {"matchLabels": {"app": "x"}}, allowed=1)]
    budgets.append(make_budget("two", {"matchLabels": {"tier": "y"}}, allowed=2))
    victims = [make_info(name, labels={"app": "x", "tier": "y"}) for name in "abc"]
    assert Budgets(budgets).violated_by(victims) == [False, True, True]


def test_pods_whose_budget_is_used_up_are_the_first_to_stay() -> None:
    pods = [
        make_pod("plain", node="n0", priority=5, requests={"cpu": "2"}),
        make_pod("kept", node="n0", priority=1, requests={"cpu": "2"}, labels={"app": "x"}),
    ]
    cluster = Cluster([make_node("n0")], pods)
    pod = make_pod(priority=9, requests={"cpu": "2"})
    assert preempt(cluster, pod) == ("n0", {"kept"})
    budgets = cluster.cache.listers.pod_disruption_budgets
    budgets.put(make_budget("b", {"matchLabels": {"app": "x"}}))
    assert preempt(cluster, pod) == ("n0", {"plain"})
    budgets.put(make_budget("b", {"matchLabels": {"app": "x"}}, allowed=1))
    assert preempt(cluster, pod) == ("n0", {"kept"})


# The choice


def candidate(node: str, *victims: tuple[int, int], violations: int = 0) -> Candidate:
    """``victims``: (priority, start) of each, the most important first."""
    infos = tuple(make_info(f"{node}-{number}", priority=priority) for number, (priority, _) in enumerate(victims))
    return Candidate(node, infos, violations, victims[0][1])


@pytest.mark.parametrize(
    ("worse", "better"),
    [
        (candidate("w", (1, 0), violations=1), candidate("b", (9, 0), (9, 0))),
        (candidate("w", (5, 9)), candidate("b", (4, 0), (4, 0), (4, 0))),
        (candidate("w", (5, 9), (3, 9)), candidate("b", (5, 0), (2, 0))),
        (candidate("w", (-5, 9), (-9, 9)), candidate("b", (-5, 0))),
        (candidate("w", (5, 7), (2, 9)), candidate("b", (5, 8), (2, 1))),
    ],
    ids=["violations", "most important victim", "sum", "fewer", "started later"],
)
def test_the_rules_in_order(worse: Candidate, better: Candidate) -> None:
    assert best([worse, better]) == [better]
    assert best([better, worse]) == [better]


def test_fewer_victims_only_after_equal_sums() -> None:
    """A victim adds 2³¹ to the sum, so only one of the least priority of all adds nothing."""
    one = candidate("one", (100, 0))
    two = candidate("two", (100, 0), (-(2**31), 0))
    assert best([two, one]) == [one]


def test_equals_are_all_named_and_one_is_drawn() -> None:
    equals = [candidate(name, (1, 0)) for name in "abc"]
    assert best(equals) == equals
    cluster = full_cluster(1, 1, 1)
    pod = make_pod(priority=5, requests=WHOLE)
    assert {preempt(cluster, pod, seed)[0] for seed in range(30)} == {"n0", "n1", "n2"}


def test_a_shortlist_is_complete_with_one_that_breaks_no_budget() -> None:
    shortlist = Shortlist(2)
    shortlist.take(candidate(name, (1, 0), violations=1) for name in "abc")
    assert not shortlist.is_complete
    shortlist.take([candidate("d", (1, 0)), candidate("e", (1, 0))])
    assert shortlist.is_complete
    assert [found.node for found in shortlist.candidates()] == ["d", "a", "b"]


# The queue


class Evicting:
    """Preemptions under way for the pod busy, whose victim is p0."""

    def __init__(self) -> None:
        self.attempts = 0

    def attempted(self) -> None:
        self.attempts += 1

    def is_running(self, uid: str) -> bool:
        return uid == "uid-default-busy"

    def is_evicting(self, uid: str) -> bool:
        return uid == "uid-default-p0"


def evicting(cluster: Cluster) -> Evicting:
    preemptions = Evicting()
    for plugin in cluster.profile.post_filter:
        if isinstance(plugin, DefaultPreemption):
            plugin.preemptions = preemptions
    return preemptions


def test_the_preemptor_is_kept_out_while_its_victims_are_told_to_go() -> None:
    plugin = DefaultPreemption()
    assert plugin.pre_enqueue(make_pod("busy"), Listers()) is None
    plugin.preemptions = Evicting()
    status = plugin.pre_enqueue(make_pod("busy"), Listers())
    assert status is not None
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.reasons == ("waiting for the preemption for this pod to be finished",)
    assert plugin.pre_enqueue(make_pod("idle"), Listers()) is None


def test_victims_that_were_told_to_go_are_waited_for_before_the_watch_shows_it() -> None:
    cluster = full_cluster(0, 0)
    pod = make_pod("high", priority=5, requests=WHOLE)
    cluster.nominate(pod, "n0")
    evicting(cluster)
    assert preempt(cluster, pod) == (None, set())
    cluster.nominate(pod, "n1")
    assert preempt(cluster, pod)[0] is not None


def test_attempts_are_counted_whatever_comes_of_them() -> None:
    cluster = full_cluster(0, 9)
    preemptions = evicting(cluster)
    for priority in (1, 0):
        cluster.schedule(make_pod(priority=priority, requests=WHOLE))
    assert preemptions.attempts == 2


def test_the_end_of_a_pod_opens_its_gate_and_wakes_nobody() -> None:
    (registration,) = DefaultPreemption().events()
    assert registration.event.matches(ClusterEvent(Resource.POD, Action.DELETE))
    assert not registration.event.matches(ClusterEvent(Resource.POD, Action.ADD))
    assert registration.hint is not None
    gone = make_pod("gone", node="n0")
    assert registration.hint(make_pod(), gone, None, Listers()) is QueueingHint.SKIP
