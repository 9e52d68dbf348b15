"""Both answers of each hint."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kube_pyscheduler.framework.cluster_event import Action, QueueingHint, Resource
from kube_pyscheduler.framework.listers import Listers
from kube_pyscheduler.objects import kinds
from kube_pyscheduler.objects.group import Namespace
from kube_pyscheduler.plugins.inter_pod_affinity.plugin import InterPodAffinity
from tests.builders import make_info, make_node, make_pod
from tests.plugins.hints import Case, answer

ZONE = "topology.kubernetes.io/zone"


def namespace(name: str, **labels: str) -> Namespace:
    document = {"metadata": {"name": name, "labels": labels}}
    decoded: Namespace = kinds.NAMESPACE.decoder.decode(msgspec.json.encode(document))
    return decoded


def ask(resource: Resource, action: Action, pod: Any, old: Any, new: Any) -> bool:
    """Whether the registration for this event wants the pod queued; it must exist. There is a pod to send away, so that
    it does not matter which nodes take the pod now."""
    matching = [r for r in InterPodAffinity().events() if r.event.resource == resource and r.event.action & action]
    assert len(matching) == 1
    assert matching[0].hint is not None
    view = Listers()
    view.namespaces.put(namespace("red", team="red"))
    view.nodes.add_pod(make_info("minor", namespace="elsewhere", priority=-1), "far-away")
    return matching[0].hint(pod, old, new, view) is QueueingHint.QUEUE


def wanting(kind: str, *terms: dict[str, Any], name: str = "waiting", node: str = "", **labels: str) -> Any:
    affinity = {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}
    return make_pod(name, node=node, labels=labels, affinity=affinity)


def term(app: str, **more: Any) -> dict[str, Any]:
    return {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": app}}, **more}


NEAR = wanting("podAffinity", term("db"))
NEAR_BOTH = wanting("podAffinity", term("db"), {"topologyKey": "rack", "labelSelector": {"matchLabels": {"tier": "x"}}})
FAR = wanting("podAntiAffinity", term("db"))
NEAR_RED = wanting("podAffinity", term("db", namespaceSelector={"matchLabels": {"team": "red"}}))
FAR_FROM_RED = wanting("podAntiAffinity", term("db", namespaceSelector={"matchLabels": {"team": "red"}}))
PLAIN = make_pod("waiting", labels={"app": "web"})


def pod(app: str, node: str = "n1", **more: Any) -> Any:
    return make_pod("other", node=node, labels={"app": app, **more.pop("labels", {})}, **more)


HATER = pod("db", affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term("web")]}})


@pytest.mark.parametrize(
    ("waiting", "old", "new", "queues"),
    [
        # Added.
        (NEAR, None, pod("db"), True),
        (NEAR, None, pod("web"), False),
        (NEAR, None, pod("db", node=""), False),
        (NEAR, None, pod("db", node="", status={"nominatedNodeName": "n1"}), True),
        (NEAR, None, pod("db", namespace="elsewhere"), False),
        (NEAR_BOTH, None, pod("db"), False),
        (NEAR_BOTH, None, pod("db", labels={"tier": "x"}), True),
        (NEAR_RED, None, pod("db", namespace="red"), True),
        (NEAR_RED, None, pod("db", namespace="blue"), False),
        (FAR, None, pod("db"), False),
        # Deleted.
        (FAR, pod("db"), None, True),
        (FAR, pod("web"), None, False),
        (FAR, pod("db", node=""), None, False),
        (PLAIN, HATER, None, True),
        (NEAR, HATER, None, False),
        # Relabelled.
        (NEAR, pod("web"), pod("db"), True),
        (NEAR, pod("db"), pod("web"), False),
        (FAR, pod("db"), pod("web"), True),
        (FAR, pod("web"), pod("db"), False),
        (NEAR, NEAR, wanting("podAffinity", term("db"), app="db"), True),
    ],
)
def test_pods_wake_those_that_they_may_help(waiting: Any, old: Any, new: Any, queues: bool) -> None:
    action = Action.ADD if old is None else Action.DELETE if new is None else Action.UPDATE_POD_LABEL
    assert ask(Resource.POD, action, waiting, old, new) == queues


def test_bc_35_a_pod_that_becomes_what_is_asked_for_wakes_the_waiting_one() -> None:
    label = Action.UPDATE_POD_LABEL
    assert ask(Resource.POD, label, NEAR, pod("tmp"), pod("db"))
    assert not ask(Resource.POD, label, NEAR, pod("tmp"), pod("unrelated"))


def test_bc_35_the_end_of_a_pod_that_did_not_want_the_waiting_one_wakes_it() -> None:
    assert ask(Resource.POD, Action.DELETE, PLAIN, HATER, None)
    assert not ask(Resource.POD, Action.DELETE, PLAIN, pod("db"), None)


def node(**labels: str) -> Any:
    return make_node("n", labels={ZONE if key == "zone" else key: value for key, value in labels.items()})


@pytest.mark.parametrize(
    ("waiting", "old", "new", "queues"),
    [
        (NEAR, None, node(zone="a"), True),
        (NEAR, None, node(), False),
        (FAR, None, node(), True),
        (PLAIN, None, node(zone="a"), True),
        (NEAR, node(), node(zone="a"), True),
        (NEAR, node(zone="a"), node(zone="b"), True),
        (NEAR, node(zone="a"), node(), False),
        (NEAR, node(zone="a"), node(zone="a", disk="ssd"), False),
        (FAR, node(zone="a"), node(), True),
        (FAR, node(zone="a"), node(zone="b"), True),
        (FAR, node(), node(zone="a"), False),
    ],
)
def test_nodes_wake_those_that_they_may_help(waiting: Any, old: Any, new: Any, queues: bool) -> None:
    action = Action.ADD if old is None else Action.UPDATE_NODE_LABEL
    assert ask(Resource.NODE, action, waiting, old, new) == queues


@pytest.mark.parametrize(
    ("waiting", "old", "new", "queues"),
    [
        (NEAR_RED, None, namespace("x", team="red"), True),
        (NEAR_RED, None, namespace("x", team="blue"), False),
        (NEAR_RED, namespace("x", team="blue"), namespace("x", team="red"), True),
        (NEAR_RED, namespace("x", team="red"), namespace("x", team="red", other="y"), False),
        (NEAR_RED, namespace("x", team="red"), None, False),
        (FAR_FROM_RED, namespace("x", team="red"), None, True),
        (FAR_FROM_RED, namespace("x", team="red"), namespace("x", team="blue"), True),
        (FAR_FROM_RED, namespace("x", team="blue"), namespace("x", team="red"), False),
        (PLAIN, namespace("default"), namespace("default", team="red"), False),
    ],
)
def test_namespaces_wake_those_whose_terms_select_them(waiting: Any, old: Any, new: Any, queues: bool) -> None:
    action = Action.ADD if old is None else Action.DELETE if new is None else Action.UPDATE
    assert ask(Resource.NAMESPACE, action, waiting, old, new) == queues


def test_a_namespace_that_is_not_meant_any_more_frees_its_pods() -> None:
    red = term("web", namespaceSelector={"matchLabels": {"team": "red"}})
    hater = wanting("podAntiAffinity", red, name="hater", node="n1")
    old = namespace("default", team="red")
    for new, helps in ((namespace("default", team="blue"), True), (namespace("default", team="red", x="y"), False)):
        case = Case(
            "InterPodAffinity",
            Resource.NAMESPACE,
            Action.UPDATE,
            PLAIN,
            old,
            new,
            helps,
            (make_node("n1", labels={ZONE: "a"}), hater),
        )
        assert answer(case) is helps


def test_pods_are_told_apart_by_what_the_hints_read() -> None:
    fragments = {r.fragment for r in InterPodAffinity().events()}
    assert len(fragments) == 1
    fragment = fragments.pop()
    assert fragment is not None
    again = wanting("podAffinity", term("db"))
    assert fragment(NEAR) == fragment(again)
    assert len({fragment(p) for p in (NEAR, NEAR_BOTH, FAR, NEAR_RED, PLAIN)}) == 5
