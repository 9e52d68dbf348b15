"""Both answers of each hint."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kube_pyscheduler.config.args import DefaultConstraint, PodTopologySpreadArgs
from kube_pyscheduler.framework.cluster_event import Action, QueueingHint, Resource
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.objects import kinds
from kube_pyscheduler.plugins.pod_topology_spread.plugin import PodTopologySpread
from tests.builders import make_info, make_node, make_pod
from tests.clusters import Cluster

ZONE = "topology.kubernetes.io/zone"


def ask(
    resource: Resource, action: Action, pod: Any, old: Any, new: Any, plugin: PodTopologySpread | None = None
) -> bool:
    """Whether the registration for this event wants the pod queued; it must exist."""
    events = (plugin or PodTopologySpread()).events()
    matching = [r for r in events if r.event.resource == resource and r.event.action & action]
    assert len(matching) == 1
    assert matching[0].hint is not None
    return matching[0].hint(pod, old, new, view()) is QueueingHint.QUEUE


def view() -> Listers:
    """With a pod to send away, so that it does not matter which nodes take pods now."""
    listers = Listers()
    listers.nodes.add_pod(make_info("minor", namespace="elsewhere", priority=-1), "far-away")
    service = {"metadata": {"name": "s", "namespace": "default"}, "spec": {"selector": {"app": "web"}}}
    listers.services.put(kinds.SERVICE.decoder.decode(msgspec.json.encode(service)))
    return listers


def constraint(app: str = "web", key: str = ZONE, **more: Any) -> dict[str, Any]:
    return {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app}},
        **more,
    }


def waiting(*constraints: dict[str, Any], **more: Any) -> Any:
    return make_pod("waiting", labels={"app": "web"}, topologySpreadConstraints=list(constraints), **more)


def other(app: str, node: str = "n1", **more: Any) -> Any:
    return make_pod("other", node=node, labels={"app": app}, **more)


PLAIN = waiting(constraint())
HONORING = waiting(constraint(nodeTaintsPolicy="Honor"))
TWO = waiting(constraint(), constraint("web", "rack"))
SOFT = waiting(constraint(whenUnsatisfiable="ScheduleAnyway"))
TOLERATING = [{"key": "k", "operator": "Exists"}]
TOLERANT = waiting(constraint(nodeTaintsPolicy="Honor"), tolerations=TOLERATING)
ON_SSD = waiting(constraint(), nodeSelector={"disk": "ssd"})
ENDING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("pod", "old", "new", "queues"),
    [
        (PLAIN, None, other("web"), True),
        (PLAIN, None, other("db"), False),
        (PLAIN, None, other("web", node=""), False),
        (PLAIN, None, other("web", node="", status={"nominatedNodeName": "n1"}), True),
        (PLAIN, None, other("web", namespace="elsewhere"), False),
        (SOFT, None, other("web"), False),
        (PLAIN, other("web"), None, True),
        (PLAIN, other("db"), None, False),
        (PLAIN, other("web"), other("db"), True),
        (PLAIN, other("db"), other("web"), True),
        (PLAIN, other("db"), other("cache"), False),
        (PLAIN, other("web"), other("web"), False),
        # Pods that are going are not counted.
        (PLAIN, other("web"), other("web", metadata=ENDING), True),
        (PLAIN, other("web", metadata=ENDING), None, False),
        (PLAIN, PLAIN, make_pod("waiting", labels={"app": "db"}), True),
        (HONORING, HONORING, waiting(constraint(nodeTaintsPolicy="Honor"), tolerations=TOLERATING), True),
        (PLAIN, PLAIN, waiting(constraint(), tolerations=TOLERATING), False),
    ],
)
def test_pods_wake_those_that_count_them(pod: Any, old: Any, new: Any, queues: bool) -> None:
    action = Action.ADD if old is None else Action.DELETE if new is None else Action.UPDATE_POD_LABEL
    assert ask(Resource.POD, action, pod, old, new) == queues


def node(taint: bool = False, **labels: str) -> Any:
    named = {ZONE if key == "zone" else key: value for key, value in labels.items()}
    return make_node("n", labels=named, taints=[{"key": "k", "effect": "NoSchedule"}] if taint else [])


@pytest.mark.parametrize(
    ("pod", "old", "new", "queues"),
    [
        (PLAIN, None, node(zone="a"), True),
        (PLAIN, None, node(), False),
        (TWO, None, node(zone="a"), False),
        (TWO, None, node(zone="a", rack="r"), True),
        (PLAIN, node(zone="a"), None, True),
        (PLAIN, node(), None, False),
        (PLAIN, node(zone="a"), node(), True),
        (PLAIN, node(), node(zone="a"), True),
        (PLAIN, node(zone="a"), node(zone="b"), True),
        (PLAIN, node(zone="a"), node(zone="a", disk="ssd"), False),
        (PLAIN, node(zone="a"), node(taint=True, zone="a"), False),
        (HONORING, node(zone="a"), node(taint=True, zone="a"), True),
        (TOLERANT, node(zone="a"), node(taint=True, zone="a"), False),
        (ON_SSD, node(zone="a", disk="ssd"), node(zone="a"), True),
        (ON_SSD, node(zone="a", disk="ssd"), node(zone="a", disk="ssd", x="y"), False),
        (PLAIN, node(), node(taint=True), False),
    ],
)
def test_nodes_wake_those_whose_domains_change(pod: Any, old: Any, new: Any, queues: bool) -> None:
    action = Action.ADD if old is None else Action.DELETE if new is None else Action.UPDATE_NODE_LABEL
    assert ask(Resource.NODE, action, pod, old, new) == queues


def test_default_constraints_count_the_pods_of_the_services() -> None:
    default = DefaultConstraint(max_skew=1, topology_key=ZONE, when_unsatisfiable="DoNotSchedule")
    plugin = PodTopologySpread(PodTopologySpreadArgs(default_constraints=(default,), defaulting_type="List"))
    bare = make_pod("waiting", labels={"app": "web"})
    assert ask(Resource.POD, Action.ADD, bare, None, other("web"), plugin)
    assert not ask(Resource.POD, Action.ADD, bare, None, other("db"), plugin)
    assert not ask(Resource.POD, Action.ADD, make_pod("waiting", labels={"app": "db"}), None, other("db"), plugin)


def test_pods_are_told_apart_by_what_the_hints_read() -> None:
    fragments = {r.fragment for r in PodTopologySpread().events()}
    assert len(fragments) == 1
    fragment = fragments.pop()
    assert fragment is not None
    assert fragment(PLAIN) == fragment(waiting(constraint()))
    owner = {"kind": "ReplicaSet", "name": "r", "apiVersion": "apps/v1", "uid": "u", "controller": True}
    bare = make_pod("a")
    owned = make_pod("b", metadata={"ownerReferences": [owner]})
    assert len({fragment(pod) for pod in (PLAIN, HONORING, TWO, bare, owned)}) == 5
    same = [constraint()]
    numbered = [make_pod("n", labels={"app": "web", "index": n}, topologySpreadConstraints=same) for n in "01"]
    assert {fragment(pod) for pod in numbered} == {fragment(PLAIN)}
    stranger = make_pod("s", labels={"app": "db"}, topologySpreadConstraints=[constraint()])
    assert fragment(stranger) != fragment(PLAIN)
    assert fragment(make_pod("a", labels={"app": "web"})) != fragment(make_pod("a", labels={"app": "db"}))


def test_pods_that_were_assumed_together_raise_the_lowest_count_when_the_first_of_them_is_told() -> None:
    cluster = Cluster([make_node("n1", labels={ZONE: "a"}), make_node("n2", labels={ZONE: "b"})])
    cluster.cache.set_pod(other("web", "n2"))
    (hint,) = [r.hint for r in PodTopologySpread().events() if r.event.resource == Resource.POD]
    assert hint is not None
    for name in ("first", "second"):
        cluster.cache.assume(make_info(name, labels={"app": "web"}), "n1")
    answers = []
    for name in ("first", "second"):
        told = make_pod(name, node="n1", labels={"app": "web"})
        cluster.cache.set_pod(told)
        answers.append(hint(PLAIN, None, told, cluster.cache.listers))
    assert answers == [QueueingHint.QUEUE, QueueingHint.SKIP]
