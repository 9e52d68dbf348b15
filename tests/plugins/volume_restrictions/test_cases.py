"""Public cases."""

from __future__ import annotations

from kube_pyscheduler.framework.status import unschedulable
from kube_pyscheduler.objects.pod import Pod
from tests.builders import make_node, make_pod
from tests.clusters import Cluster
from tests.plugins.volume_restrictions.reference import CLAIM
from tests.storage import claim_volumes, make_claim, make_class, make_volume, put


def cluster_with_a_claim_for_one_pod() -> Cluster:
    cluster = Cluster([make_node("n1"), make_node("n2")])
    claim = make_claim("c", volume="v", modes=("ReadWriteOncePod",))
    put(cluster.cache.listers, make_class(), claim, make_volume("v", claim=claim, modes=("ReadWriteOncePod",)))
    return cluster


def user(name: str, priority: int = 0, node: str = "") -> Pod:
    return make_pod(name, priority=priority, node=node, volumes=claim_volumes("c"))


def test_bc_76_a_claim_for_one_pod_keeps_others_waiting_and_gives_way_to_a_higher_priority() -> None:
    cluster = cluster_with_a_claim_for_one_pod()
    holder = user("a", node="n1")
    cluster.cache.set_pod(holder)
    assert cluster.refusals(user("b")) == {name: unschedulable(CLAIM).by("VolumeRestrictions") for name in ("n1", "n2")}
    waiting = cluster.schedule(user("b"))
    assert waiting.node is None
    assert waiting.status.message.startswith(f"0/2 nodes are available: 2 {CLAIM}.")
    preempting = cluster.schedule(user("c", priority=100))
    assert preempting.node is None
    assert preempting.post_filter is not None
    assert preempting.post_filter.nominated == "n1"
    assert [victim.name for victim in preempting.post_filter.victims] == ["a"]
    cluster.cache.remove_pod(holder.uid)
    assert cluster.schedule(user("c", priority=100)).node is not None


def test_bc_76_of_two_pods_that_want_a_free_claim_for_one_pod_one_waits() -> None:
    cluster = cluster_with_a_claim_for_one_pod()
    first = cluster.schedule(user("a"))
    assert first.node is not None
    cluster.cache.set_pod(user("a", node=first.node))
    assert cluster.schedule(user("b")).node is None


def test_a_claim_in_use_on_a_node_that_is_gone_is_free() -> None:
    cluster = cluster_with_a_claim_for_one_pod()
    cluster.cache.set_pod(user("a", node="gone"))
    assert cluster.schedule(user("b")).node is not None
