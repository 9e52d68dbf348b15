"""Public cases of inter-pod affinity."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kube_pyscheduler.objects import kinds
from kube_pyscheduler.objects.group import Namespace
from kube_pyscheduler.objects.pod import Pod
from tests.builders import make_node, make_pod
from tests.clusters import Cluster

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
FAR = "node(s) didn't match pod anti-affinity rules"


def namespace(name: str, **labels: str) -> Namespace:
    document = {"metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name, **labels}}}
    decoded: Namespace = kinds.NAMESPACE.decoder.decode(msgspec.json.encode(document))
    return decoded


def required(kind: str, *terms: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}}


def excluding(key: str, value: str) -> dict[str, Any]:
    """Anti-affinity to every pod with an id, outside namespaces with this label."""
    return required(
        "podAntiAffinity",
        {
            "topologyKey": HOSTNAME,
            "labelSelector": {"matchExpressions": [{"key": "id", "operator": "Exists"}]},
            "namespaceSelector": {"matchExpressions": [{"key": key, "operator": "NotIn", "values": [value]}]},
        },
    )


@pytest.fixture
def cluster() -> Cluster:
    """One node; namespaces wa and wb; a pod with an id in wa."""
    found = Cluster([make_node("n1")], [make_pod("p0", namespace="wa", node="n1", labels={"id": "1"})])
    found.cache.listers.namespaces.put(namespace("wa"))
    found.cache.listers.namespaces.put(namespace("wb"))
    return found


def test_bc_01_an_excluded_namespace_is_excluded_in_every_attempt(cluster: Cluster) -> None:
    pod = make_pod("p1", namespace="wa", **excluding("kubernetes.io/metadata.name", "wa"))
    assert cluster.fit(pod) == {"n1"}
    assert cluster.fit(pod) == {"n1"}
    assert cluster.schedule(pod).node == "n1"


def test_bc_01_other_namespaces_are_not_excluded(cluster: Cluster) -> None:
    cluster.cache.set_pod(make_pod("p2", namespace="wb", node="n1", labels={"id": "2"}))
    pod = make_pod("p1", namespace="wa", **excluding("kubernetes.io/metadata.name", "wa"))
    assert cluster.refusals(pod)["n1"].reasons == (FAR,)


def test_bc_01_a_namespace_whose_labels_change_is_selected_anew(cluster: Cluster) -> None:
    pod = make_pod("p1", namespace="wb", **excluding("team", "red"))
    assert cluster.refusals(pod)["n1"].reasons == (FAR,)
    cluster.cache.listers.namespaces.put(namespace("wa", team="red"))
    assert cluster.fit(pod) == {"n1"}
    cluster.cache.listers.namespaces.put(namespace("wa", team="blue"))
    assert cluster.refusals(pod)["n1"].reasons == (FAR,)


def test_bc_01_a_namespace_made_later_is_selected(cluster: Cluster) -> None:
    term = {
        "topologyKey": HOSTNAME,
        "labelSelector": {},
        "namespaceSelector": {"matchLabels": {"team": "red"}},
    }
    pod = make_pod("p1", namespace="wb", **required("podAntiAffinity", term))
    cluster.cache.set_pod(make_pod("p2", namespace="late", node="n1"))
    assert cluster.fit(pod) == {"n1"}
    cluster.cache.listers.namespaces.put(namespace("late", team="red"))
    assert cluster.refusals(pod)["n1"].reasons == (FAR,)


def _web_front() -> Pod:
    """Near to all pods of app=web, and to all of tier=fe, being one itself."""
    return make_pod(
        "incoming",
        labels={"app": "web", "tier": "fe"},
        **required(
            "podAffinity",
            {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "web"}}},
            {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"tier": "fe"}}},
        ),
    )


NODES = [make_node("n1", labels={ZONE: "a"}), make_node("n2", labels={ZONE: "b"}), make_node("n3")]


def test_bc_02_a_pod_that_matches_one_of_several_terms_does_not_end_the_exception_for_the_first() -> None:
    cluster = Cluster(NODES, [make_pod("q", node="n1", labels={"app": "web"})])
    assert cluster.fit(_web_front()) == {"n1", "n2"}
    assert cluster.refusals(_web_front())["n3"].reasons == ("node(s) didn't match pod affinity rules",)


def test_bc_02_a_pod_that_matches_all_terms_does() -> None:
    cluster = Cluster(NODES, [make_pod("q", node="n1", labels={"app": "web", "tier": "fe"})])
    assert cluster.fit(_web_front()) == {"n1"}


def test_bc_02_pods_on_nodes_that_are_not_there_do_not_count() -> None:
    cluster = Cluster(NODES, [make_pod("q", node="lost", labels={"app": "web", "tier": "fe"})])
    assert cluster.fit(_web_front()) == {"n1", "n2"}
    cluster.cache.set_node(make_node("lost", labels={ZONE: "b"}))
    assert cluster.fit(_web_front()) == {"n2", "lost"}
